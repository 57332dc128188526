/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h -- the memory of one end in two layers: the cache, which the RNIC accesses, and the
 * medium, which survives a power cut and gets bytes only by write-backs.
 *
 * Registered areas are between guard zones, which must never change.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "prng.h"
#include "softrnic/rnic/mr.h"
#include "verbs_ext/verbs_ext.h"

#define POOL_LEN   (4u << 20) /* random bytes, from which operations take their data */
#define OP_LEN_MAX (256u << 10)

enum area_kind {
	AREA_TARGET0, /* the peer writes and reads here */
	AREA_TARGET1,
	AREA_LEASE,   /* the peer writes to this area until it invalidates the STag */
	AREA_WORDS,   /* for the peer's atomics, reads and flushes */
	AREA_SINK,    /* destination of this end's reads */
	AREA_RECV,    /* receives of this end */
	AREA_SCRATCH, /* the peer writes to this area, too; the contents are not checked */
	AREA_SOURCE,  /* changes even while its bytes are being sent */
	AREA_STAGE,   /* sources that change after they are sent */
	AREA_COUNT
};

struct area {
	uint64_t off, len; /* offset and length in the arena */
	uint64_t iova;
	uint32_t stag; /* the rest of the host's memory after the deregistration */
	struct mr *mr;
	bool gone;        /* deregistered: from then on no byte may change */
	bool is_volatile; /* the area has no medium */
	bool lasting;     /* write-backs of the area need no registration */
	uint8_t *pages;   /* for a detachable area that is deregistered: the host's page cache */
};

/* The bytes that a digest covers. */
struct digested {
	struct list link;
	uint8_t sum[32];
	uint64_t off, len;
	uint8_t bytes[];
};

struct memory {
	uint8_t *cache, *medium;
	uint64_t room, size;
	const uint8_t *initial; /* the initial content of both layers */
	struct area area[AREA_COUNT];
	bool is_dax;
	struct list digested; /* struct digested, until the next run */
	struct mr *pool_mr;
	uint32_t pool_stag;
};

/* The pool is the same in every run; read-only. */
const uint8_t *memory_pool(void);

/* Lay out areas of these lengths, register them, fill both layers. */
void memory_init(struct memory *m, struct prng *rng, const uint64_t len[AREA_COUNT],
		 struct mr_table *mrs, struct ibv_pd *pd);
/* Deregister the regions that are left. Returns false if a region is still held. */
bool memory_fini(struct memory *m);
void memory_free(struct memory *m);
/* Returns the VEXT_DURABILITY_* of an area. */
uint32_t memory_durability(const struct memory *m, enum area_kind kind);
/* Fill in a digest of these bytes, and keep the bytes. */
void memory_digest(struct memory *m, uint64_t off, const uint8_t *bytes, uint64_t len,
		   struct vext_digest *digest);
/* Returns the bytes of a digest, or NULL. */
struct digested *memory_digested(const struct memory *m, uint64_t off, uint64_t len,
				 const uint8_t *sum);
/* The memory to write back for the arena's bytes from off on; the bytes belong to one area. */
const uint8_t *memory_pages(struct memory *m, uint64_t off);
/* The area that contains the arena offset, or NULL. */
struct area *memory_area_at(struct memory *m, uint64_t off);
uint64_t memory_to(const struct memory *m, enum area_kind kind, uint64_t off); /* TO on the wire */
/* The region is deregistered: from now on its memory has another use. */
void memory_retire(struct memory *m, enum area_kind kind);
/* The offset of a changed byte outside all live areas, or -1. */
int64_t memory_find_damage(const struct memory *m);

#endif
