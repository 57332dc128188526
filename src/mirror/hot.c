/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/hot.h"

#include <errno.h>
#include <string.h>

#include "librpmirror.h"
#include "mirror/errmsg.h"

#define HOT_BATCH  256 /* number of extents that are recorded together */
#define HOT_COOLED 16  /* number of slots that are freed together */

int hot_open(struct hot *hot, int fd)
{
	struct meta_store store;
	struct error err = {0};

	memset(hot, 0, sizeof(*hot));
	if (metafile_attach(&hot->file, fd, &err))
		return errmsg_fail(RPMIRROR_E_PROVIDER, "%s", err.text);
	store = metafile_store(&hot->file);
	if (meta_load(&hot->meta, &store, &err)) {
		hot_close(hot);
		return errmsg_fail(RPMIRROR_E_PROVIDER, "the copy's metadata: %s", err.text);
	}
	/* all ones, so that slots of former epochs stay */
	memset(hot->last, 0xff, sizeof(hot->last));
	hot->is_loaded = true;
	return 0;
}

void hot_close(struct hot *hot)
{
	if (hot->is_loaded)
		meta_fini(&hot->meta);
	hot->is_loaded = false;
	metafile_close(&hot->file);
}

struct hot_use {
	const struct hot *hot;
	uint64_t retired;
};

static bool hot_is_busy(void *arg, uint32_t extent)
{
	const struct hot_use *use = arg;

	return use->hot->last[use->hot->meta.hot_index[extent] - 1] > use->retired;
}

static int hot_cool(struct hot *hot, uint64_t retired)
{
	struct hot_use use = {hot, retired};
	uint32_t victims[HOT_COOLED];
	uint32_t n = meta_hot_victims(&hot->meta, victims, HOT_COOLED, hot_is_busy, &use);

	return n ? meta_hot_cool(&hot->meta, victims, n) : -EBUSY;
}

/* Mark one batch of extents, some of which are cold. */
static int hot_warm(struct hot *hot, const uint32_t *extents, uint32_t n, uint64_t retired)
{
	int rc = meta_hot_mark(&hot->meta, extents, n);

	/* -ENOSPC may also mean that the medium is full: then freeing slots does not help. */
	while (rc == -ENOSPC && !hot->meta.broken) {
		rc = hot_cool(hot, retired);
		if (!rc)
			rc = meta_hot_mark(&hot->meta, extents, n);
	}
	return rc;
}

static int hot_use(struct hot *hot, const uint32_t *extents, uint32_t n, uint64_t seq,
		   uint64_t retired)
{
	int rc = hot_warm(hot, extents, n, retired);

	for (uint32_t i = 0; i < n && !rc; i++)
		hot->last[hot->meta.hot_index[extents[i]] - 1] = seq;
	return rc;
}

int hot_mark(struct hot *hot, const struct mirror_range *v, uint32_t n, uint64_t seq,
	     uint64_t retired)
{
	uint32_t extents[HOT_BATCH], count = 0;
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t extent = meta_extent_of(v[i].offset);

		for (; extent <= meta_extent_of(v[i].offset + v[i].len - 1); extent++) {
			if (count && extents[count - 1] == extent)
				continue;
			if (count == HOT_BATCH) {
				rc = hot_use(hot, extents, count, seq, retired);
				count = 0;
			}
			extents[count++] = extent;
		}
	}
	return rc ? rc : hot_use(hot, extents, count, seq, retired);
}

int hot_retire(struct hot *hot)
{
	return meta_hot_retire(&hot->meta);
}

int hot_end(struct hot *hot)
{
	uint32_t extents[HOT_BATCH], n;
	int rc = 0;

	while (!rc && (n = meta_hot_list(&hot->meta, extents, HOT_BATCH)))
		rc = meta_hot_cool(&hot->meta, extents, n < HOT_BATCH ? n : HOT_BATCH);
	return rc;
}
