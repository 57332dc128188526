/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_layers.h -- a store for a copy's metadata with a cache and a medium. Stores go to the cache;
 * bytes that are made durable, or written back at any other time, reach the medium. Power is cut at
 * a chosen persist call; the medium then has any mixture of 8-byte words.
 */
#ifndef TESTLIB_TWO_LAYERS_H
#define TESTLIB_TWO_LAYERS_H

#include <stdbool.h>

#include "mirror/core/meta.h"

struct two_layers {
	uint8_t *cache, *medium;
	uint64_t len;
	uint64_t seed;
	uint32_t persists; /* number of calls so far */
	uint32_t cut_at;   /* the call that does not return; 0: each call returns */
	bool is_cut;
	uint64_t lie_from, lie_to; /* bytes persisted in this range do not reach the medium */
};

void two_layers_init(struct two_layers *t, uint64_t len, uint64_t seed);
void two_layers_fini(struct two_layers *t);
/* A store over the whole memory; its persist() returns -ESHUTDOWN after the power is cut. */
struct meta_store two_layers_store(struct two_layers *t);
/* Write back any words of the caches: about n of 256; 0: none, 256: all. */
void two_layers_write_back(struct two_layers *t, unsigned of_256);
/* Cut the power, unless it is cut, and restore it: the cache gets the medium's content. */
void two_layers_reboot(struct two_layers *t);
/* Copy the content of another pair of layers of the same length. */
void two_layers_copy(struct two_layers *t, const struct two_layers *from);

#endif
