/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/filemap.h"
#include "base/pagecache.h"
#include "base/text.h"

/* Number of bytes read into memory in one step. After each step the watch decides whether to
 * continue. */
#define MAPFILE_SLICE (8u << 20)

static struct newfile_opts mapfile_newfile_opts(const struct mapfile_opts *opts, uint64_t size)
{
	return (struct newfile_opts){.path = opts->path,
				     .size = size,
				     .scratch = opts->scratch,
				     .is_private = opts->is_private,
				     .watch = opts->watch};
}

static int mapfile_create(struct mapfile *map, const struct mapfile_opts *opts, struct error *err)
{
	struct newfile_opts made = mapfile_newfile_opts(opts, opts->size);
	int rc;

	if (!access(opts->path, F_OK))
		return error_set(err, ERROR_LOCAL, EEXIST, "%s exists already", opts->path);
	rc = newfile_make(&made, &map->fd, err);
	if (rc)
		return rc;
	map->size = opts->size;
	map->made = opts->path;
	return 0;
}

static int mapfile_not_regular(const char *path, struct error *err)
{
	return error_set(err, ERROR_LOCAL, EINVAL,
			 "%s is not a regular file; only files can be served", path);
}

static int mapfile_too_small(const struct mapfile_opts *opts, uint64_t has, struct error *err)
{
	bool in_bytes = has % 1024 || opts->size % 1024;

	return error_set(err, ERROR_LOCAL, EFBIG,
			 "%s is too small: it has %s, and %s are to be served", opts->path,
			 in_bytes ? text_bytes(has).text : text_size(has).text,
			 in_bytes ? text_bytes(opts->size).text : text_size(opts->size).text);
}

static int mapfile_check_existing(struct mapfile *map, const struct mapfile_opts *opts,
				  struct error *err)
{
	struct newfile_opts reserved;
	struct stat st;
	int rc;

	if (fstat(map->fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", opts->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return mapfile_not_regular(opts->path, err);
	if (st.st_size == 0)
		return error_set(err, ERROR_LOCAL, ENODATA, "%s is empty", opts->path);
	if (opts->size > (uint64_t)st.st_size)
		return mapfile_too_small(opts, (uint64_t)st.st_size, err);
	map->size = opts->size ? opts->size : (uint64_t)st.st_size;
	/* Reserve all blocks: otherwise a remote write to a hole could find the disk full, too
	 * late to report the failure. */
	reserved = mapfile_newfile_opts(opts, map->size);
	rc = newfile_reserve(map->fd, &reserved, err);
	/*
	 * A crash must not undo the file's name or size, because flushed bytes would be lost with
	 * them.
	 */
	return rc ? rc : newfile_settle(map->fd, opts->path, err);
}

static int mapfile_open_existing(struct mapfile *map, const struct mapfile_opts *opts,
				 struct error *err)
{
	/* O_NONBLOCK: opening a pipe must fail as "not a regular file", not wait for a reader */
	map->fd = open(opts->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (map->fd >= 0)
		return mapfile_check_existing(map, opts, err);
	if (errno == ENOENT)
		return error_set(err, ERROR_LOCAL, ENOENT, "%s does not exist", opts->path);
	if (errno == EISDIR)
		return mapfile_not_regular(opts->path, err);
	return error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s", opts->path,
			 strerror(errno));
}

static int mapfile_map(struct mapfile *map, const char *path, int prot, struct error *err)
{
	map->addr = filemap(map->fd, map->size, prot);
	if (map->addr == MAP_FAILED) {
		map->addr = NULL;
		return error_set(err, ERROR_LOCAL, errno, "cannot map %s of %s: %s",
				 text_size(map->size).text, path, strerror(errno));
	}
	return 0;
}

/*
 * Read the pages into memory now, so that no client waits for them. Leave them clean, because
 * msync() would write-protect dirty pages again. Kernels before 5.14 cannot do this.
 */
static int mapfile_bring_in(struct mapfile *map, const char *path,
			    const struct newfile_watch *watch, struct error *err)
{
	struct newfile_progress progress = {.path = path, .what = "read in", .total = map->size};
	int rc = 0;

	while (!rc && progress.done < map->size) {
		uint64_t left = map->size - progress.done;
		uint64_t len = left < MAPFILE_SLICE ? left : MAPFILE_SLICE;

		if (madvise((char *)map->addr + progress.done, len, MADV_POPULATE_READ))
			return 0;
		progress.done += len;
		rc = newfile_ask(watch, &progress, err);
	}
	return rc;
}

static int mapfile_map_for_service(struct mapfile *map, const char *path,
				   const struct newfile_watch *watch, struct error *err)
{
	int rc = mapfile_map(map, path, PROT_READ | PROT_WRITE, err);

	if (rc)
		return rc;
	rc = rpma_utils_get_durability(map->addr, map->size, &map->durability, NULL, 0);
	if (rc)
		return error_set(err, ERROR_LOCAL, rc, "cannot determine how durable %s is: %s",
				 path, rpma_err_last());
	return mapfile_bring_in(map, path, watch, err);
}

int mapfile_open(struct mapfile *map, const struct mapfile_opts *opts, struct error *err)
{
	int rc;

	memset(map, 0, sizeof(*map));
	map->fd = -1;
	rc = opts->create ? mapfile_create(map, opts, err) : mapfile_open_existing(map, opts, err);
	if (!rc && flock(map->fd, LOCK_EX | LOCK_NB))
		rc = error_set(err, ERROR_LOCAL, errno, "%s is being served already", opts->path);
	/*
	 * Drop cached pages that an earlier server could not write to the disk: the kernel counts
	 * them as clean.
	 */
	if (!rc && opts->from_medium && !opts->create)
		rc = pagecache_evict(map->fd, opts->path, &map->cached, err);
	if (!rc)
		rc = mapfile_map_for_service(map, opts->path, opts->watch, err);
	if (rc)
		mapfile_discard(map);
	return rc;
}

int mapfile_open_scratch(struct mapfile *map, const char *beside, uint64_t size, struct error *err)
{
	struct newfile_opts opts = {.path = beside, .size = size, .is_private = true};
	struct newfile nf;
	struct error why = {0};
	int rc = newfile_open(&nf, &opts, &why);

	memset(map, 0, sizeof(*map));
	map->fd = -1;
	if (rc)
		return error_set(err, rc, why.cause,
				 "the scratch file beside %s cannot be made: %s", beside, why.text);
	if (nf.temp[0])
		unlink(nf.temp);
	map->fd = nf.fd;
	map->size = size;
	rc = mapfile_map_for_service(map, beside, NULL, err);
	if (rc)
		mapfile_close(map);
	return rc;
}

int mapfile_open_readonly(struct mapfile *map, const char *path, struct error *err)
{
	struct stat st;
	int rc;

	*map = (struct mapfile){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (map->fd < 0 || fstat(map->fd, &st)) {
		rc = error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s", path,
			       strerror(errno));
	} else {
		map->size = (uint64_t)st.st_size;
		rc = mapfile_map(map, path, PROT_READ, err);
	}
	if (rc)
		mapfile_close(map);
	return rc;
}

void mapfile_close(struct mapfile *map)
{
	if (map->addr)
		munmap(map->addr, map->size);
	if (map->fd >= 0)
		close(map->fd);
	map->addr = NULL;
	map->fd = -1;
}

void mapfile_discard(struct mapfile *map)
{
	if (map->made)
		unlink(map->made);
	map->made = NULL;
	mapfile_close(map);
}
