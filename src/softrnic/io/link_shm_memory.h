/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_memory.h -- the memory of two rings: a sealed memory file that one end makes and passes
 * to the other end. Before an end uses the memory, it checks the seals, the size, the page size,
 * and that all pages exist. Without these checks a load or store could raise SIGBUS.
 */
#ifndef IO_LINK_SHM_MEMORY_H
#define IO_LINK_SHM_MEMORY_H

#include <stdint.h>

#include "base/shm_state.h"
#include "softrnic/io/link_shm_ring.h"
#include "softrnic/stream/stream.h"

/* least size of a ring in bytes; sizes are powers of two and multiples of a page */
#define SHM_RING_MIN (4u << 10)
#define SHM_RING_MAX (16u << 20)

struct shm_memory {
	void *base; /* NULL: there is no memory */
	uint64_t ring_size;
};

/*
 * Returns the size of a ring for one more connection. The more of the common limit is in use, the
 * smaller the ring. `peers` is the result of this function at the peer, and the maximum of this
 * result; 0: the peer stated none.
 */
uint64_t shm_memory_ring_size(uint64_t peers);
/* Make new memory. The caller must pass the descriptor *fd to the peer and close *fd. Returns 0 or
 * -errno. */
int shm_memory_new(uint64_t ring_size, struct shm_memory *m, int *fd);
/* Map the peer's memory, whose rings have the given size. Returns 0 or -errno; -EPERM if the file
 * lacks a required property. */
int shm_memory_take(int fd, uint64_t ring_size, struct shm_memory *m);
/* converts an error of shm_memory_new() or shm_memory_take() to a reason */
enum shm_state shm_memory_why(int err);
void shm_memory_free(struct shm_memory *m); /* accepts a struct of zeros */
/* Ring 0 carries the initiator's bytes, ring 1 the responder's. */
void shm_memory_ring(const struct shm_memory *m, unsigned which, struct ring *r);
/*
 * Values of the word that the writer of a ring sets. SHM_GIVEN_UP: from now on the reader must not
 * execute the ring's bytes. SHM_STANDS: the reader executes the bytes even after a reset of the
 * link below. 0: the reader executes the bytes until such a reset.
 */
enum { SHM_GIVEN_UP = QP_GIVEN_UP, SHM_STANDS = 2 };
atomic_uint *shm_memory_given_up(const struct shm_memory *m, unsigned which);
/* Called in a forked child, where the mapping does not exist. */
void shm_memory_forked(struct shm_memory *m);

#endif
