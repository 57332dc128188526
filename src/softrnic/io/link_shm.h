/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm.h -- rings in shared memory as a link, for a connection that began over another link.
 *
 * The other link, called the link below, stays. It carries each direction until this direction is
 * switched to its ring. After that it shows that the peer has closed its sending direction, is
 * gone, or is unreachable.
 */
#ifndef IO_LINK_SHM_H
#define IO_LINK_SHM_H

#include "softrnic/io/link.h"
#include "softrnic/io/link_shm_memory.h"

/* Allocate the link. This must precede passing the memory to the peer, because the peer may use the
 * memory immediately. Returns NULL if out of memory. */
struct link *link_shm_alloc(void);
void link_shm_free(struct link *l); /* frees a link before link_shm_init(); accepts NULL */
/* Initialise the link. It takes over the memory, the link `below`, and the socket `fd`, which the
 * source watches. */
void link_shm_init(struct link *l, struct link *below, struct eng_source *src, bool initiator,
		   const struct shm_memory *memory, int fd);
bool link_is_shm(const struct link *l);
/* From now on sending (tx) or receiving (rx) uses the ring. No byte of this direction may be left
 * on the link below. */
void link_shm_switch_tx(struct link *l);
void link_shm_switch_rx(struct link *l);
bool link_shm_receives(const struct link *l); /* is the receiving direction switched? */
/* The word that the peer writes in shared memory. SHM_GIVEN_UP means that the bytes in the peer's
 * ring must not be executed. The peer may write any value. */
const atomic_uint *link_shm_given_up(const struct link *l);
/* Undo link_shm_init() if no direction is switched: *l becomes the link below. */
void link_shm_undo(struct link **l);

#endif
