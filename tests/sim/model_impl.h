/* SPDX-License-Identifier: BSD-3-Clause */
/* model_impl.h -- declarations that the files of the model share. */
#ifndef SIM_MODEL_IMPL_H
#define SIM_MODEL_IMPL_H

#include "model.h"

/* Bytes [off, off+len) of the peer, and for each byte the oldest and the newest permitted
 * version. */
struct model_view {
	const char *name;
	const uint8_t *bytes;
	uint64_t off, len;
	const uint16_t *floor; /* the oldest permitted version, by offset in the arena */
	unsigned end;          /* only operations with a smaller number count */
};

const char *model_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool model_writes(const struct op *op);
/* Fill m->floor: for each byte of [off, off+len), 1 + the last operation before `end` that wrote
 * the byte. */
void model_floor(struct model *m, unsigned end, uint64_t off, uint64_t len);
/*
 * From now on, all bytes that operations before `id` wrote to this range must survive a power cut.
 */
const char *model_on_durable(struct model *m, unsigned id, uint64_t off, uint64_t len,
			     const struct memory *peer, const struct area *a);
/* Note that the flush `id` has taken effect. */
const char *model_flushed(struct model *m, unsigned id, const struct memory *peer);
const char *model_check_view(const struct model *m, const struct memory *peer,
			     const struct model_view *view);

#endif
