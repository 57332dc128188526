/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_layers.h -- a store for a copy's metadata with a cache and a medium. Writes go to the cache.
 * Persisted bytes, and bytes that are written back at any other time, reach the medium. At a chosen
 * persist call the power is cut: the medium then has any mixture of old and new 8-byte words.
 */
#ifndef TESTLIB_TWO_LAYERS_H
#define TESTLIB_TWO_LAYERS_H

#include <stdbool.h>

#include "mirror/core/meta.h"

struct two_layers {
	uint8_t *cache, *medium;
	uint64_t len;
	uint64_t seed;
	uint32_t persists; /* number of persist calls so far */
	uint32_t cut_at;   /* the persist call at which the power is cut; 0: none */
	bool is_cut;
	uint64_t lie_from, lie_to; /* bytes persisted in this range do not reach the medium */
};

void two_layers_init(struct two_layers *t, uint64_t len, uint64_t seed);
void two_layers_fini(struct two_layers *t);
/* Returns a store over all of the memory; its persist() returns -ESHUTDOWN after the power is
 * cut. */
struct meta_store two_layers_store(struct two_layers *t);
/* Write back each word of the cache with a probability of of_256 / 256. */
void two_layers_write_back(struct two_layers *t, unsigned of_256);
/* Cut the power unless it is cut already, and restore it: the cache gets the medium's content. */
void two_layers_reboot(struct two_layers *t);
/* Copy the content of another object of the same length. */
void two_layers_copy(struct two_layers *t, const struct two_layers *from);

#endif
