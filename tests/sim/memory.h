/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h -- the memory of one end in two layers: the cache, which the RNIC accesses, and the
 * medium, which survives a power cut and receives bytes only from write-backs.
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
	AREA_TARGET0, /* targets of the peer's Writes and Reads */
	AREA_TARGET1,
	AREA_LEASE,   /* target of the peer's Writes, until the peer invalidates the area's STag */
	AREA_WORDS,   /* words for the peer's atomics, Reads and Flushes */
	AREA_SINK,    /* destination of this end's Reads */
	AREA_RECV,    /* buffers for receives of this end */
	AREA_SCRATCH, /* target of those peer's Writes whose contents are not checked */
	AREA_SOURCE,  /* source of this end that changes even while its bytes are sent */
	AREA_STAGE,   /* sources of this end that change after their bytes are sent */
	AREA_COUNT
};

struct area {
	uint64_t off, len; /* offset and length in the arena */
	uint64_t iova;
	uint32_t stag; /* kept after the area is deregistered */
	struct mr *mr;
	bool gone;        /* the region is deregistered, so no byte must change any more */
	bool is_volatile; /* the area has no medium */
	bool lasting;     /* write-backs of the area work even after its deregistration */
	/* the host's page cache, for an area whose bytes can be written back after its
	 * deregistration */
	uint8_t *pages;
};

/* A copy of the bytes that a digest covers. */
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
	struct list digested; /* list of struct digested, kept until the next run */
	struct mr *pool_mr;
	uint32_t pool_stag;
};

/* Returns the pool, which is read-only and the same in every run. */
const uint8_t *memory_pool(void);

/* Lay out areas of these lengths, register them, and fill both layers. */
void memory_init(struct memory *m, struct prng *rng, const uint64_t len[AREA_COUNT],
		 struct mr_table *mrs, struct ibv_pd *pd);
/* Deregister the remaining regions. Returns false if a region still has a user. */
bool memory_fini(struct memory *m);
void memory_free(struct memory *m);
/* Returns the VEXT_DURABILITY_* of an area. */
uint32_t memory_durability(const struct memory *m, enum area_kind kind);
/* Fill in a digest of these bytes, and keep a copy of the bytes. */
void memory_digest(struct memory *m, uint64_t off, const uint8_t *bytes, uint64_t len,
		   struct vext_digest *digest);
/* Returns the bytes that this digest covers, or NULL if there is no such digest. */
struct digested *memory_digested(const struct memory *m, uint64_t off, uint64_t len,
				 const uint8_t *sum);
/* Returns the memory from which the arena's bytes at `off` are written back. Those bytes lie in one
 * area. */
const uint8_t *memory_pages(struct memory *m, uint64_t off);
/* Returns the area that contains this offset in the arena, or NULL. */
struct area *memory_area_at(struct memory *m, uint64_t off);
/* returns the TO on the wire */
uint64_t memory_to(const struct memory *m, enum area_kind kind, uint64_t off);
/* Let the host use the region's memory for other purposes. Call this after the region was
 * deregistered. */
void memory_retire(struct memory *m, enum area_kind kind);
/* Returns the offset of a changed byte outside all live areas, or -1. */
int64_t memory_find_damage(const struct memory *m);

#endif
