/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "poolset/impl.h"

static int pool_exists(const struct poolset_pool *pool, unsigned index, struct error *err)
{
	const char *path = pool->parts.list[index].path;

	if (index > 0 && header_is_zero(pool->pages[0]))
		return error_set(err, ERROR_LOCAL, EEXIST,
				 "%s has a pool header and the first part has none: an "
				 "interrupted creation, or a part of another pool (rpmemd "
				 "--remove removes it)",
				 path);
	return error_set(err, ERROR_LOCAL, EEXIST, "%s has a pool already", path);
}

static int pool_check_empty(struct poolset_pool *pool, struct error *err)
{
	int rc = pool_read_headers(pool, err);

	for (unsigned i = 0; !rc && i < pool->parts.nheaders; i++)
		if (!header_is_zero(pool->pages[i]))
			rc = pool_exists(pool, i, err);
	return rc;
}

static int pool_make_headers(struct poolset_pool *pool, const struct poolset_attr *attr,
			     struct error *err)
{
	struct poolset_attr full;

	if (!pool->parts.nheaders)
		return 0;
	full = *attr;
	pool_complete_attr(&full);
	for (unsigned i = 0; i < pool->parts.nheaders; i++) {
		struct header *h = &pool->headers[i];
		struct stat st;

		memset(h, 0, sizeof(*h));
		header_fresh_uuid(h->uuid);
		if (fstat(pool->parts.list[i].fd, &st))
			return error_set(err, ERROR_LOCAL, errno, "%s: %s",
					 pool->parts.list[i].path, strerror(errno));
		h->crtime = (uint64_t)st.st_ctime;
	}
	pool_apply_attr(pool, &full);
	pool->is_dirty = header_has_sds(&pool->headers[0]);
	pool->headers[0].sds = pool_devices;
	pool->headers[0].sds.dirty = pool->is_dirty;
	return 0;
}

void pool_undo_create(struct poolset_pool *pool)
{
	static const uint8_t zero[HEADER_BYTES];

	for (unsigned i = 0; i < pool->parts.nheaders; i++) {
		struct part *part = &pool->parts.list[i];

		if (!part->is_made && part->fd >= 0)
			part_write_header(part, zero, 0, sizeof(zero), NULL);
	}
	parts_unmake(&pool->parts);
}

static int pool_create_headers(struct poolset_pool *pool, const struct poolset_attr *attr,
			       struct error *err)
{
	int rc = pool_make_headers(pool, attr, err);

	if (!rc)
		rc = parts_map(&pool->parts, &pool->memory, err);
	if (!rc)
		rc = pool_write_headers(pool, err);
	if (rc)
		pool_undo_create(pool);
	return rc;
}

int pool_create(struct poolset_pool *pool, uint64_t size, const struct poolset_attr *attr,
		struct error *err)
{
	struct parts *parts = &pool->parts;
	int rc = pool_check_attr(pool, attr, err);

	if (!rc)
		rc = parts_extend_directories(parts, size, err);
	if (!rc)
		rc = pool_check_size(pool, size, err);
	if (!rc)
		rc = pool_alloc_headers(pool, err);
	if (!rc)
		rc = parts_open_existing(parts, true, err);
	/*
	 * Check the existing parts before anything is created, because they may make the creation
	 * impossible.
	 */
	if (!rc)
		rc = pool_check_empty(pool, err);
	if (!rc)
		rc = parts_make_missing(parts, err);
	if (rc) {
		parts_unmake(parts);
		return rc;
	}
	pool->is_created = true;
	return pool_create_headers(pool, attr, err);
}
