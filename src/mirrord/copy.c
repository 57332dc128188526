/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a set's copy: opened when they are there, and registered. */
#include <errno.h>
#include <libpmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mirror/core/killpoint.h"
#include "mirror/file/metafile.h"
#include "mirrord/impl.h"

enum mirror_copy copy_state(const struct set *s)
{
	return s->is_open ? member_copy(&s->member, s->register_answers) : MIRROR_COPY_FAILED;
}

static int copy_write_back(const struct set *s, uint64_t offset, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = offset / page * page;
	char *base = s->meta_file.addr;

	if (s->meta_file.durability == RPMA_DURABILITY_DAX) {
		pmem_persist(base + offset, len);
		return 0;
	}
	return msync(base + from, offset + len - from, MS_SYNC) ? -errno : 0;
}

/* Every durable step of the copy's rules passes here. */
static int copy_persist(void *arg, uint64_t offset, uint64_t len)
{
	int rc;

	killpoint(KILLPOINT_persist_before);
	rc = copy_write_back(arg, offset, len);
	killpoint(KILLPOINT_persist_after);
	return rc;
}

/* The file may have come from elsewhere, or be another set's. */
static int copy_check(struct set *s, struct error *err)
{
	const struct meta_super *super = &s->meta.super;

	if (strcmp(super->set, s->conf->name) != 0)
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "the metadata of %s are of set '%s' and not of '%s'",
				 s->conf->data, super->set, s->conf->name);
	if (s->data.size < super->size)
		return error_set(err, ERROR_LOCAL, EFBIG,
				 "%s has %llu bytes, the set has %llu: the file was truncated",
				 s->conf->data, (unsigned long long)s->data.size,
				 (unsigned long long)super->size);
	return 0;
}

void copy_meta_path(const struct set *s, char *path, size_t size)
{
	if (s->conf->meta[0])
		snprintf(path, size, "%s", s->conf->meta);
	else
		snprintf(path, size, "%s.rpmirror", s->conf->data);
}

static int copy_open_meta(struct set *s, struct error *err)
{
	char path[MIRROR_PATH_MAX + 16];
	struct mapfile_opts opts = {.path = path};
	struct meta_store store = {.persist = copy_persist, .arg = s};
	int rc;

	copy_meta_path(s, path, sizeof(path));
	rc = mapfile_open(&s->meta_file, &opts, err);
	if (rc)
		return rc;
	store.base = s->meta_file.addr;
	store.len = s->meta_file.size;
	rc = meta_load(&s->meta, &store, err);
	if (rc) {
		mapfile_close(&s->meta_file);
		return rc;
	}
	rc = member_init(&s->member, &s->meta, &s->daemon->boot);
	if (!rc)
		return 0;
	meta_fini(&s->meta);
	mapfile_close(&s->meta_file);
	return error_set(err, ERROR_LOCAL, -rc, "the metadata in %s cannot be used: %s", path,
			 strerror(-rc));
}

/* They may have been restored, copied or exchanged since. */
static int copy_note_files(struct set *s, struct error *err)
{
	struct member_verdict v = {.answer = MEMBER_YES};
	struct meta_files files;
	int rc = metafile_identify(s->data.fd, s->meta_file.fd, &files);

	if (rc)
		return error_set(err, ERROR_LOCAL, -rc, "%s: %s", s->conf->data, strerror(-rc));
	member_set_files(&s->member, &files, &v);
	return v.answer == MEMBER_YES ? 0 : error_set(err, ERROR_LOCAL, EIO, "%s", v.text);
}

static int copy_open_data(struct set *s, struct error *err)
{
	struct mapfile_opts opts = {.path = s->conf->data};
	int rc = mapfile_open(&s->data, &opts, err);

	if (rc)
		return rc;
	rc = copy_check(s, err);
	if (!rc)
		rc = copy_note_files(s, err);
	if (!rc && rpma_mr_reg(s->daemon->peer, s->data.addr, s->data.size, RPMA_MR_USAGE_WRITE_SRC,
			       &s->anchor))
		rc = error_set(err, ERROR_LOCAL, EIO, "%s cannot be registered: %s", s->conf->data,
			       rpma_err_last());
	if (rc)
		mapfile_close(&s->data);
	return rc;
}

static int copy_load_secret(struct set *s, struct error *err)
{
	s->has_secret = s->conf->secret_file[0] != '\0';
	return s->has_secret ? secret_load(&s->secret, s->conf->secret_file, err) : 0;
}

int copy_open(struct set *s)
{
	int rc = copy_load_secret(s, &s->why_not);

	if (!rc)
		rc = copy_open_meta(s, &s->why_not);
	if (rc)
		return rc;
	rc = copy_open_data(s, &s->why_not);
	if (rc) {
		member_fini(&s->member);
		meta_fini(&s->meta);
		mapfile_close(&s->meta_file);
		return rc;
	}
	s->is_open = true;
	LOG_NOTICE("set %s: copy %s is open, %s", s->conf->name, s->conf->data,
		   mirror_copy_2str(copy_state(s)));
	return 0;
}

void copy_close(struct set *s)
{
	if (!s->is_open)
		return;
	links_end_all(s->daemon, s);
	rpma_mr_dereg(&s->anchor);
	member_fini(&s->member);
	meta_fini(&s->meta);
	mapfile_close(&s->data);
	mapfile_close(&s->meta_file);
	secret_forget(&s->secret);
	s->is_open = false;
}
