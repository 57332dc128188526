/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm.h -- rings in shared memory as a link, for a connection that has begun over another one.
 *
 * The link below stays: it carries each direction until that is switched, and afterwards the news
 * that the peer has ended its sending, is gone, or unreachable.
 */
#ifndef IO_LINK_SHM_H
#define IO_LINK_SHM_H

#include "softrnic/io/link.h"
#include "softrnic/io/link_shm_memory.h"

/*
 * Called before the peer gets the memory, as the peer may use it at once. NULL: no memory for the
 * link.
 */
struct link *link_shm_alloc(void);
void link_shm_free(struct link *l); /* frees a link that is not initialised; accepts NULL */
/* The memory and the socket, which the source watches, are the link's, and so is `below`. */
void link_shm_init(struct link *l, struct link *below, struct eng_source *src, bool initiator,
		   const struct shm_memory *memory, int fd);
bool link_is_shm(const struct link *l);
/* Bytes go, or come, through the rings from now on. The other link has none in that direction. */
void link_shm_switch_tx(struct link *l);
void link_shm_switch_rx(struct link *l);
bool link_shm_receives(const struct link *l); /* it is switched */
/* SHM_GIVEN_UP: nothing that is in the peer's ring counts any more. The peer may write anything to
 * it. */
const atomic_uint *link_shm_given_up(const struct link *l);
/* Undo link_shm_init(), while nothing is switched: the link below takes its place. */
void link_shm_undo(struct link **l);

#endif
