/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm.h -- rings in shared memory as a link, for a connection that began over another link.
 *
 * The link below stays. It carries each direction until that direction is switched. Afterwards it
 * shows that the peer has ended its sending, is gone, or is unreachable.
 */
#ifndef IO_LINK_SHM_H
#define IO_LINK_SHM_H

#include "softrnic/io/link.h"
#include "softrnic/io/link_shm_memory.h"

/* Allocate the link before the peer gets the memory, because the peer may use the memory at once.
 * Returns NULL if out of memory. */
struct link *link_shm_alloc(void);
void link_shm_free(struct link *l); /* frees a link that is not initialised; accepts NULL */
/* The link takes over the memory, the socket, which the source watches, and `below`. */
void link_shm_init(struct link *l, struct link *below, struct eng_source *src, bool initiator,
		   const struct shm_memory *memory, int fd);
bool link_is_shm(const struct link *l);
/* From now on this direction uses the rings. The other link has no bytes left in this direction. */
void link_shm_switch_tx(struct link *l);
void link_shm_switch_rx(struct link *l);
bool link_shm_receives(const struct link *l); /* receiving is switched */
/* The peer's word. SHM_GIVEN_UP: the bytes in the peer's ring no longer count. The peer may write
 * any value. */
const atomic_uint *link_shm_given_up(const struct link *l);
/* Undo link_shm_init() while nothing is switched: the link below replaces the link. */
void link_shm_undo(struct link **l);

#endif
