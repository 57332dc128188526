/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/queues.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- send queue --------------------------------------------------------------------------- */

int sq_init(struct sq *sq, const struct ibv_qp_cap *cap)
{
	size_t sges = cap->max_send_sge * sizeof(struct ibv_sge);
	size_t tail = sges > cap->max_inline_data ? sges : cap->max_inline_data;

	sq->depth = cap->max_send_wr;
	sq->stop = SQ_NO_STOP;
	sq->stride = (sizeof(struct sq_wr) + tail + 15) & ~(size_t)15;
	sq->size = sq->depth * sq->stride;
	if (sq->depth == 0)
		return 0;
	sq->slots = calloc(sq->depth, sq->stride);
	return sq->slots ? 0 : -ENOMEM;
}

void sq_fini(struct sq *sq)
{
	free(sq->slots);
	sq->slots = NULL;
}

struct sq_wr *sq_find(const struct sq *sq, uint64_t pos)
{
	for (uint64_t i = sq->head; i < sq->tail; i++) {
		struct sq_wr *wr = sq_at(sq, i);

		if (i == sq->next || wr->end_pos > pos)
			return wr;
	}
	return NULL;
}

/* --- the peer's requests ------------------------------------------------------------------ */

#define IRQ_FIRST 4u

void irq_init(struct irq *irq, uint32_t depth)
{
	*irq = (struct irq){.depth = depth};
}

void irq_fini(struct irq *irq)
{
	free(irq->ring);
	irq->ring = NULL;
	irq->size = 0;
}

int irq_grow(struct irq *irq)
{
	uint32_t wanted = irq->size ? 2 * irq->size : IRQ_FIRST;
	uint32_t size = wanted < irq->depth ? wanted : irq->depth;
	struct irq_entry *ring = calloc(size, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < irq->count; i++)
		ring[i] = irq->ring[(irq->head + i) % irq->size];
	free(irq->ring);
	irq->ring = ring;
	irq->size = size;
	irq->head = 0;
	return 0;
}

void irq_trim(struct irq *irq)
{
	if (irq->count > 0)
		return;
	irq_fini(irq);
	irq->head = 0;
}

/* --- Send segments without a receive ------------------------------------------------------ */

/* The bytes by which a parked segment counts against the limit. An empty segment also counts, so
 * that a peer cannot send an unlimited number of empty ones. */
static uint32_t park_cost(uint32_t len)
{
	return (uint32_t)sizeof(struct park_seg) + len;
}

struct park_seg *park_first(const struct park *park)
{
	struct list *node = list_first(&park->segs);

	return node ? container_of(node, struct park_seg, link) : NULL;
}

/* Bytes that all wide parks together hold in excess of their normal limits. */
static _Atomic uint64_t park_more;

static bool park_is_ordinary(const struct park *park, uint32_t len)
{
	return park->bytes + park_cost(len) <= RNIC_PARK_BYTES && park->msgs < RNIC_PARK_MSGS;
}

bool park_has_room(const struct park *park, uint32_t len)
{
	if (park_is_ordinary(park, len))
		return true;
	return park->wide && park->bytes + park_cost(len) <= RNIC_PARK_MORE &&
	       atomic_load(&park_more) + park_cost(len) <= RNIC_PARK_ALL;
}

struct park_seg *park_add(struct park *park, const struct ddp_hdr *hdr, const uint8_t *bytes,
			  uint32_t len)
{
	struct park_seg *seg = malloc(sizeof(*seg) + len);

	if (!seg)
		return NULL;
	seg->hdr = *hdr;
	seg->len = len;
	seg->written = 0;
	seg->more = !park_is_ordinary(park, len);
	if (seg->more)
		atomic_fetch_add(&park_more, park_cost(len));
	if (len > 0)
		memcpy(seg->bytes, bytes, len);
	list_add_tail(&park->segs, &seg->link);
	park->bytes += park_cost(len);
	park->msgs += hdr->last;
	return seg;
}

void park_drop(struct park *park, struct park_seg *seg)
{
	list_del(&seg->link);
	park->bytes -= park_cost(seg->len);
	park->msgs -= seg->hdr.last;
	if (seg->more)
		atomic_fetch_sub(&park_more, park_cost(seg->len));
	if (park_is_empty(park))
		park->wide = false;
	free(seg);
}

void park_clear(struct park *park)
{
	struct park_seg *seg;

	while ((seg = park_first(park)))
		park_drop(park, seg);
}
