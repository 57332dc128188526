/* SPDX-License-Identifier: BSD-3-Clause */
/* model_impl.h -- the inside of the model, for its own files. */
#ifndef SIM_MODEL_IMPL_H
#define SIM_MODEL_IMPL_H

#include "model.h"

/* Bytes of the peer's [off, off+len), and how old and how new each may be. */
struct model_view {
	const char *name;
	const uint8_t *bytes;
	uint64_t off, len;
	const uint16_t *floor; /* indexed by arena offset */
	unsigned end;          /* only operations before this one count */
};

const char *model_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool model_writes(const struct op *op);
/* m->floor: for each byte of [off, off+len) 1 + the last write to the byte before operation
 * `end`. */
void model_floor(struct model *m, unsigned end, uint64_t off, uint64_t len);
/* From now on everything written here before operation `id` must survive a power cut. */
const char *model_on_durable(struct model *m, unsigned id, uint64_t off, uint64_t len,
			     const struct memory *peer, const struct area *a);
/* The flush `id` has taken effect. */
const char *model_flushed(struct model *m, unsigned id, const struct memory *peer);
const char *model_check_view(const struct model *m, const struct memory *peer,
			     const struct model_view *view);

#endif
