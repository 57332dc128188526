/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_memory.h -- the memory of two rings: a sealed memory file that one end makes and the
 * other one is passed. Nothing of it is used before its seals, its size and its page size are
 * checked, and its pages are there: otherwise a load or store could raise SIGBUS.
 */
#ifndef IO_LINK_SHM_MEMORY_H
#define IO_LINK_SHM_MEMORY_H

#include <stdint.h>

#include "base/shm_state.h"
#include "softrnic/io/link_shm_ring.h"
#include "softrnic/stream/stream.h"

#define SHM_RING_MIN (4u << 10) /* bytes of one ring; a power of two, and a multiple of a page */
#define SHM_RING_MAX (16u << 20)

struct shm_memory {
	void *base; /* NULL: none */
	uint64_t ring_size;
};

/*
 * Bytes of one ring for a further connection: the fewer, the more of what all of them may have is
 * taken. The peer's own answer to this question is the most; 0: it gave none.
 */
uint64_t shm_memory_ring_size(uint64_t peers);
/* New memory; *fd is the caller's to pass and close. 0 or -errno. */
int shm_memory_new(uint64_t ring_size, struct shm_memory *m, int *fd);
/* Map the memory of the peer, which gives this size for its rings. -EPERM: the file lacks a
 * property that it must have. */
int shm_memory_take(int fd, uint64_t ring_size, struct shm_memory *m);
enum shm_state shm_memory_why(int err);     /* why one of these failed */
void shm_memory_free(struct shm_memory *m); /* accepts a zeroed one */
/* Ring 0 carries the initiator's bytes, ring 1 the responder's. */
void shm_memory_ring(const struct shm_memory *m, unsigned which, struct ring *r);
/* The writer's word about the bytes of its ring. GIVEN_UP: the reader executes nothing more of
 * them, from now on. STANDS: the reader executes them also after a reset of the link below. 0: it
 * executes them until such a reset. */
enum { SHM_GIVEN_UP = QP_GIVEN_UP, SHM_STANDS = 2 };
atomic_uint *shm_memory_given_up(const struct shm_memory *m, unsigned which);
/* In a forked child, which has no such mapping. */
void shm_memory_forked(struct shm_memory *m);

#endif
