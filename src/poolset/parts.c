/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pagecache.h"
#include "base/text.h"
#include "poolset/devdax.h"
#include "poolset/place.h"

static int parts_no_memory(const struct parts *parts, struct error *err)
{
	return error_set(err, ERROR_LOCAL, ENOMEM, "%s: not enough memory", parts->name);
}

int parts_add(struct parts *parts, const char *path, uint64_t size, unsigned replica,
	      struct error *err)
{
	struct part *list = parts->list;
	unsigned count = parts->count;
	bool is_first = !count || replica >= parts->nreplicas;
	char *copy;

	/* The array is full when the count is a power of two. */
	if ((count & (count - 1)) == 0)
		list = realloc(list, (count ? 2 * count : 1) * sizeof(*list));
	copy = list ? strdup(path) : NULL;
	if (list)
		parts->list = list;
	if (!copy)
		return parts_no_memory(parts, err);
	parts->nreplicas = replica + 1;
	list[count] = (struct part){.path = copy, .fd = -1, .size = size, .align = HEADER_BYTES};
	list[count].has_header = !(parts->options & SETTEXT_NOHDRS) &&
				 (is_first || !(parts->options & SETTEXT_SINGLEHDR));
	parts->nheaders += list[count].has_header;
	parts->count++;
	return 0;
}

static int parts_add_from_text(struct parts *parts, const struct settext_part *text,
			       struct error *err)
{
	struct devdax dax = {0};
	struct stat st;
	bool is_device =
		!stat(text->path, &st) && S_ISCHR(st.st_mode) && devdax_probe(st.st_rdev, &dax);
	int rc;

	if (!is_device && !text->size)
		return error_set(err, ERROR_LOCAL, access(text->path, F_OK) ? errno : EINVAL,
				 "%s:%u: AUTO is for a device DAX, which %s is not", parts->name,
				 text->line, text->path);
	rc = parts_add(parts, text->path, text->size ? text->size : dax.size, text->replica, err);
	if (!rc && is_device) {
		parts->list[parts->count - 1].is_device = true;
		parts->list[parts->count - 1].align = dax.align;
	}
	return rc;
}

static int parts_from_text(struct parts *parts, const struct settext *set, struct error *err)
{
	unsigned ndirectories = 0;
	struct stat st;
	int rc = 0;

	parts->options = set->options;
	for (unsigned i = 0; i < set->nparts; i++)
		ndirectories += !stat(set->parts[i].path, &st) && S_ISDIR(st.st_mode);
	if (ndirectories && ndirectories < set->nparts)
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "%s: directories and files in one pool set", parts->name);
	if (ndirectories)
		rc = parts_from_directories(parts, set, err);
	for (unsigned i = 0; !ndirectories && !rc && i < set->nparts; i++)
		rc = parts_add_from_text(parts, &set->parts[i], err);
	parts->nreplicas = set->nreplicas;
	parts->nremotes = set->nremotes;
	parts->replica_line = set->replica_line;
	return rc;
}

static int parts_parse(struct parts *parts, const char *bytes, size_t len, struct error *err)
{
	struct settext set;
	int rc = settext_parse(&set, parts->name, bytes, len, err);

	if (!rc)
		rc = parts_from_text(parts, &set, err);
	settext_fini(&set);
	return rc;
}

/* The parser refuses longer texts, so read only one byte more than its limit. */
static int parts_read_text(struct parts *parts, struct error *err)
{
	size_t len = 0, max = SETTEXT_BYTES_MAX + 1;
	char *bytes = malloc(max);
	ssize_t got = 1;
	int rc;

	if (!bytes)
		return parts_no_memory(parts, err);
	while (got > 0 && len < max) {
		got = pread(parts->set_fd, bytes + len, max - len, (off_t)len);
		len += got > 0 ? (size_t)got : 0;
	}
	rc = got < 0 ? error_set(err, ERROR_LOCAL, errno, "cannot read %s: %s", parts->name,
				 strerror(errno))
		     : parts_parse(parts, bytes, len, err);
	free(bytes);
	return rc;
}

/* The named file is the pool itself. */
static int parts_from_plain(struct parts *parts, const struct poolset_place *place,
			    const struct stat *st, struct error *err)
{
	struct devdax dax;
	bool is_device = S_ISCHR(st->st_mode) && devdax_probe(st->st_rdev, &dax);
	struct part *part;
	int rc;

	close(parts->set_fd);
	parts->set_fd = -1;
	if (!S_ISREG(st->st_mode) && !is_device)
		return error_set(err, ERROR_LOCAL, EINVAL, "%s is neither a file nor a device DAX",
				 parts->name);
	parts->is_plain = true;
	rc = parts_add(parts, parts->name, is_device ? dax.size : (uint64_t)st->st_size, 0, err);
	if (rc)
		return rc;
	part = &parts->list[0];
	part->is_device = is_device;
	part->align = is_device ? dax.align : HEADER_BYTES;
	/* Open the file now, because the name might lead to another file later. */
	return place_open(place, O_RDWR, &part->fd, err);
}

static bool parts_is_set_file(int fd, const struct stat *st)
{
	char start[SETTEXT_SIGNATURE_LEN];

	return S_ISREG(st->st_mode) && pread(fd, start, sizeof(start), 0) == sizeof(start) &&
	       !memcmp(start, SETTEXT_SIGNATURE, sizeof(start));
}

static int parts_load_file(struct parts *parts, const struct poolset_place *place,
			   struct error *err)
{
	struct stat st;
	int rc = place_open(place, O_RDONLY, &parts->set_fd, err);

	if (rc)
		return rc;
	if (fstat(parts->set_fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", parts->name, strerror(errno));
	if (!parts_is_set_file(parts->set_fd, &st))
		return parts_from_plain(parts, place, &st, err);
	if (flock(parts->set_fd, LOCK_EX | LOCK_NB))
		return error_set(err, ERROR_LOCAL, errno,
				 errno == EWOULDBLOCK ? "%s is in use by another process"
						      : "cannot lock %s",
				 parts->name);
	return parts_read_text(parts, err);
}

int parts_load(struct parts *parts, const struct poolset_place *place, struct error *err)
{
	int rc;

	*parts = (struct parts){.set_fd = -1, .nreplicas = 1};
	if (asprintf(&parts->name, "%s/%s", place->dir, place->name) < 0)
		parts->name = NULL;
	rc = parts->name ? parts_load_file(parts, place, err)
			 : error_set(err, ERROR_LOCAL, ENOMEM, "not enough memory");
	if (rc)
		parts_fini(parts);
	return rc;
}

void parts_fini(struct parts *parts)
{
	for (unsigned i = 0; i < parts->count; i++) {
		struct part *part = &parts->list[i];

		if (part->header)
			munmap(part->header, part->align);
		part_close(part);
		free(part->path);
	}
	for (unsigned i = 0; i < parts->ndirectories; i++)
		free(parts->directories[i]);
	free(parts->directories);
	free(parts->list);
	free(parts->name);
	if (parts->set_fd >= 0)
		close(parts->set_fd);
	*parts = (struct parts){.set_fd = -1};
}

static int parts_check_part(const struct parts *parts, const struct part *part, struct error *err)
{
	if (part->size > INT64_MAX)
		return error_set(err, ERROR_LOCAL, EINVAL, "%s: %s is too large for a file",
				 part->path, text_size(part->size).text);
	if (part->size < POOLSET_MIN_PART)
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "%s: %s is too small for a part of a pool; it must have %s",
				 part->path, text_size(part->size).text,
				 text_size(POOLSET_MIN_PART).text);
	if (part->is_device != parts->list[0].is_device)
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "%s: all parts must be device DAX, or none", parts->name);
	return 0;
}

/* A mapping cannot begin right behind a header if the device's alignment is larger than a
 * header. */
static int parts_check_align(const struct parts *parts, struct error *err)
{
	for (unsigned i = 0; parts->nheaders > 1 && i < parts->count; i++)
		if (parts->list[i].align != HEADER_BYTES)
			return error_set(err, ERROR_LOCAL, EINVAL,
					 "%s: several devices with an alignment of %s need the "
					 "option SINGLEHDR or NOHDRS",
					 parts->name, text_size(parts->list[i].align).text);
	return 0;
}

int parts_check_replicas(const char *name, unsigned count, unsigned line, struct error *err)
{
	return count > 1 ? error_set(err, ERROR_LOCAL, EINVAL,
				     "%s:%u: REPLICA: the target of replication has one replica "
				     "only",
				     name, line)
			 : 0;
}

int parts_measure(struct parts *parts, struct error *err)
{
	uint64_t size = 0;
	bool overflow = false;
	int rc = parts_check_replicas(parts->name, parts->nreplicas, parts->replica_line, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < parts->count; i++) {
		rc = parts_check_part(parts, &parts->list[i], err);
		if (rc)
			return rc;
		overflow |= __builtin_add_overflow(size, part_usable(&parts->list[i]), &size);
	}
	if (overflow || size > INT64_MAX)
		return error_set(err, ERROR_LOCAL, EINVAL, "%s: the parts are too large together",
				 parts->name);
	/* The mapped pool contains the first header, but none of the other headers. */
	if (parts->nheaders)
		size -= (uint64_t)(parts->nheaders - 1) * HEADER_BYTES;
	parts->pool_size = size;
	return parts_check_align(parts, err);
}

/* Drop cached pages that an earlier session could not write to the disk: the kernel counts them as
 * clean. */
static int parts_drop_cached(const struct part *part, struct error *err)
{
	uint64_t stay = 0;
	int rc = part->is_device ? 0 : pagecache_evict(part->fd, part->path, &stay, err);

	if (rc)
		return rc;
	if (stay)
		LOG_WARNING(
			"%s of %s stay in the page cache, because another program has mapped them: "
			"if an earlier write to the disk failed, they are not on the disk",
			text_size(stay).text, part->path);
	return 0;
}

int parts_open_existing(struct parts *parts, bool may_be_missing, struct error *err)
{
	for (unsigned i = 0; i < parts->count; i++) {
		struct part *part = &parts->list[i];
		struct error failure;
		int rc = part_open(part, &failure);

		if (rc && may_be_missing && failure.cause == ENOENT)
			continue;
		if (!rc)
			rc = part_check(part, &failure);
		if (!rc)
			rc = parts_drop_cached(part, &failure);
		if (rc && err)
			*err = failure;
		if (rc)
			return rc;
	}
	return 0;
}
