/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
const struct header_sds pool_devices = {0};

static int pool_no_memory(const struct poolset_pool *pool, struct error *err)
{
	return error_set(err, ERROR_LOCAL, ENOMEM, "%s: not enough memory", pool->parts.name);
}

/* Delete the pool, which closes and unlocks its files. */
static void pool_delete(struct poolset_pool *pool)
{
	if (pool->memory.base)
		munmap(pool->memory.base, pool->memory.size);
	parts_fini(&pool->parts);
	free(pool->headers);
	free(pool->pages);
	free(pool);
}

static int pool_new(const struct poolset_place *place, struct poolset_pool **out, struct error *err)
{
	struct poolset_pool *pool = calloc(1, sizeof(*pool));
	int rc;

	*out = NULL;
	if (!pool)
		return error_set(err, ERROR_LOCAL, ENOMEM, "not enough memory");
	rc = parts_load(&pool->parts, place, err);
	if (!rc)
		rc = parts_measure(&pool->parts, err);
	if (rc) {
		pool_delete(pool);
		return rc;
	}
	*out = pool;
	return 0;
}

int pool_alloc_headers(struct poolset_pool *pool, struct error *err)
{
	unsigned count = pool->parts.nheaders;

	if (!count)
		return 0;
	pool->headers = calloc(count, sizeof(*pool->headers));
	pool->pages = calloc(count, sizeof(*pool->pages));
	return pool->headers && pool->pages ? 0 : pool_no_memory(pool, err);
}

int pool_check_size(const struct poolset_pool *pool, uint64_t size, struct error *err)
{
	if (size <= pool->parts.pool_size)
		return 0;
	return error_set(err, ERROR_LOCAL, EFBIG, "%s is a pool of %s, but %s are needed",
			 pool->parts.name, text_bytes(pool->parts.pool_size).text,
			 text_bytes(size).text);
}

int pool_read_headers(struct poolset_pool *pool, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < pool->parts.nheaders; i++) {
		if (pool->parts.list[i].fd >= 0)
			rc = part_read_header(&pool->parts.list[i], pool->pages[i], err);
		if (!rc)
			header_decode(pool->pages[i], &pool->headers[i]);
	}
	return rc;
}

int pool_write_headers(struct poolset_pool *pool, struct error *err)
{
	int rc = 0;

	for (unsigned i = pool->parts.nheaders; !rc && i-- > 0;) {
		header_encode(&pool->headers[i], pool->pages[i]);
		rc = part_write_header(&pool->parts.list[i], pool->pages[i], 0, HEADER_BYTES, err);
	}
	return rc;
}

static int pool_check_headers(struct poolset_pool *pool, struct error *err)
{
	struct header_set set = {.pages = pool->pages,
				 .count = pool->parts.nheaders,
				 .is_single = pool->parts.options & SETTEXT_SINGLEHDR};
	const char **names = calloc(set.count ? set.count : 1, sizeof(*names));
	int rc;

	if (!names)
		return pool_no_memory(pool, err);
	for (unsigned i = 0; i < set.count; i++)
		names[i] = pool->parts.list[i].path;
	set.names = names;
	rc = header_check(&set, err);
	free(names);
	return rc;
}

static int pool_take_over(struct poolset_pool *pool, struct error *err)
{
	struct header *h = &pool->headers[0];

	if (!pool->parts.nheaders || !header_has_sds(h))
		return 0;
	if (header_sds_is_lost(pool->pages[0], &pool_devices))
		return error_set(
			err, ERROR_LOCAL, EINVAL,
			"%s was in use at a power failure that its devices did not survive, or was "
			"in use on other devices: its content may be incomplete",
			pool->parts.list[0].path);
	h->sds = pool_devices;
	h->sds.dirty = 1;
	header_encode(h, pool->pages[0]);
	pool->is_dirty = true;
	return part_write_header(&pool->parts.list[0], pool->pages[0], 0, HEADER_BYTES, err);
}

static int pool_open(struct poolset_pool *pool, uint64_t size, struct error *err)
{
	int rc;

	if (!pool->parts.count)
		return error_set(err, ERROR_LOCAL, ENOENT,
				 "%s: there is no part in its directories", pool->parts.name);
	rc = pool_check_size(pool, size, err);
	if (!rc)
		rc = pool_alloc_headers(pool, err);
	if (!rc)
		rc = parts_open_existing(&pool->parts, false, err);
	if (!rc)
		rc = pool_read_headers(pool, err);
	if (!rc)
		rc = pool_check_headers(pool, err);
	if (!rc)
		rc = parts_map(&pool->parts, &pool->memory, err);
	return rc ? rc : pool_take_over(pool, err);
}

/* The pool set file stays locked only until this function is called. */
static int pool_settle(struct poolset_pool *pool, int rc, struct poolset_pool **out)
{
	if (rc) {
		pool_delete(pool);
		return rc;
	}
	if (pool->parts.set_fd >= 0)
		close(pool->parts.set_fd);
	pool->parts.set_fd = -1;
	*out = pool;
	return 0;
}

int poolset_create(const struct poolset_place *place, uint64_t size,
		   const struct poolset_attr *attr, struct poolset_pool **out, struct error *err)
{
	struct poolset_pool *pool;
	int rc = pool_new(place, &pool, err);

	return rc ? rc : pool_settle(pool, pool_create(pool, size, attr, err), out);
}

int poolset_open(const struct poolset_place *place, uint64_t size, struct poolset_attr *attr,
		 struct poolset_pool **out, struct error *err)
{
	struct poolset_pool *pool;
	int rc = pool_new(place, &pool, err);

	if (!rc)
		rc = pool_settle(pool, pool_open(pool, size, err), out);
	if (rc || !attr)
		return rc;
	memset(attr, 0, sizeof(*attr));
	if (pool->parts.nheaders)
		header_get_attr(&pool->headers[0], attr);
	return 0;
}

const struct poolset_memory *poolset_memory(const struct poolset_pool *pool)
{
	return &pool->memory;
}

int poolset_close(struct poolset_pool *pool, struct error *err)
{
	int rc = 0;

	if (pool->is_dirty) {
		pool->headers[0].sds.dirty = 0;
		header_encode(&pool->headers[0], pool->pages[0]);
		rc = part_write_header(&pool->parts.list[0], pool->pages[0], 0, HEADER_BYTES, err);
	}
	pool_delete(pool);
	return rc;
}

int poolset_discard(struct poolset_pool *pool, struct error *err)
{
	int rc = 0;

	if (pool->is_created)
		pool_undo_create(pool);
	for (unsigned i = 0; !pool->is_created && i < pool->parts.count; i++) {
		int failed = part_remove(&pool->parts.list[i], rc ? NULL : err);

		rc = rc ? rc : failed;
	}
	pool_delete(pool);
	return rc;
}
