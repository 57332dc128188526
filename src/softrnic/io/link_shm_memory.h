/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_memory.h -- the memory of two rings: a sealed memory file that one end makes and passes
 * to the other. An end uses the memory only after it has checked the seals, the size and the page
 * size, and that all pages exist: otherwise a load or store could raise SIGBUS.
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
 * Bytes of one ring for a further connection. The more of the common limit is in use, the smaller
 * the ring. peers: the peer's own answer to this question, which is the maximum; 0: the peer gave
 * none.
 */
uint64_t shm_memory_ring_size(uint64_t peers);
/* Make new memory. The caller passes *fd to the peer and closes it. Returns 0 or -errno. */
int shm_memory_new(uint64_t ring_size, struct shm_memory *m, int *fd);
/* Map the peer's memory, whose rings have the given size. -EPERM: the file lacks a required
 * property. */
int shm_memory_take(int fd, uint64_t ring_size, struct shm_memory *m);
enum shm_state shm_memory_why(int err);     /* the reason of a failure of the two */
void shm_memory_free(struct shm_memory *m); /* accepts zeroed memory */
/* Ring 0 carries the initiator's bytes, ring 1 the responder's. */
void shm_memory_ring(const struct shm_memory *m, unsigned which, struct ring *r);
/*
 * The writer's word about its ring's bytes. GIVEN_UP: from now on the reader must not execute them.
 * STANDS: the reader executes them even after a reset of the link below. 0: the reader executes
 * them until such a reset.
 */
enum { SHM_GIVEN_UP = QP_GIVEN_UP, SHM_STANDS = 2 };
atomic_uint *shm_memory_given_up(const struct shm_memory *m, unsigned which);
/* In a forked child, which has no such mapping. */
void shm_memory_forked(struct shm_memory *m);

#endif
