/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/two_layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unit.h"

#define RING_END (META_RING_AT + INTENT_RING_BYTES)

void two_layers_init(struct two_layers *t, uint64_t len, uint64_t seed)
{
	*t = (struct two_layers){.len = len, .seed = seed | 1};
	t->cache = aligned_alloc(4096, len);
	t->medium = aligned_alloc(4096, len);
	assert_non_null(t->cache);
	assert_non_null(t->medium);
	memset(t->cache, 0, len);
	memset(t->medium, 0, len);
}

void two_layers_fini(struct two_layers *t)
{
	free(t->cache);
	free(t->medium);
}

static void two_layers_mix(struct two_layers *t, uint64_t from, uint64_t to, unsigned of_256)
{
	for (uint64_t at = from; at < to; at += 8)
		if (memcmp(t->medium + at, t->cache + at, 8) &&
		    (test_random(&t->seed) >> 33) % 256 < of_256)
			memcpy(t->medium + at, t->cache + at, 8);
}

/* Leave out the ring, which is never persisted and is most of the memory. */
void two_layers_write_back(struct two_layers *t, unsigned of_256)
{
	two_layers_mix(t, 0, META_RING_AT, of_256);
	two_layers_mix(t, RING_END, t->len, of_256);
}

static void two_layers_cut(struct two_layers *t)
{
	static const unsigned shares[] = {0, 16, 128, 240, 256};

	t->is_cut = true;
	two_layers_write_back(t, shares[test_random(&t->seed) % ARRAY_LEN(shares)]);
}

static int two_layers_persist(void *arg, uint64_t offset, uint64_t len)
{
	struct two_layers *t = arg;

	assert_true(offset <= t->len && len <= t->len - offset);
	if (t->is_cut)
		return -ESHUTDOWN;
	if (++t->persists == t->cut_at) {
		two_layers_cut(t);
		return -ESHUTDOWN;
	}
	for (uint64_t at = offset; at < offset + len; at++)
		if (at < t->lie_from || at >= t->lie_to)
			t->medium[at] = t->cache[at];
	return 0;
}

struct meta_store two_layers_store(struct two_layers *t)
{
	return (struct meta_store){
		.base = t->cache, .len = t->len, .persist = two_layers_persist, .arg = t};
}

void two_layers_reboot(struct two_layers *t)
{
	if (!t->is_cut)
		two_layers_cut(t);
	t->is_cut = false;
	t->persists = t->cut_at = 0;
	memcpy(t->cache, t->medium, t->len);
}

void two_layers_copy(struct two_layers *t, const struct two_layers *from)
{
	memcpy(t->cache, from->cache, t->len);
	memcpy(t->medium, from->medium, t->len);
}
