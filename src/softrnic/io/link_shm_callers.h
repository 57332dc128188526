/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_callers.h -- the callers at the Unix socket of a responder, one of which is its peer.
 * The others are closed, so that the peer gets its turn. No call waits; the source reports when to
 * go on.
 */
#ifndef IO_LINK_SHM_CALLERS_H
#define IO_LINK_SHM_CALLERS_H

#include "base/shm_state.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm_socket.h"

#define SHM_CALLS_MAX   64 /* that may be in vain */
#define SHM_CALLERS_MAX 4  /* that are connected and silent */

struct shm_caller {
	int fd;
	uint8_t nonce[EXT_LINK_TOKEN]; /* that it was sent; each gets another one */
};

struct shm_callers {
	struct eng_source *src;
	int listener; /* -1: none */
	unsigned calls;
	unsigned n_silent; /* the oldest first */
	struct shm_caller silent[SHM_CALLERS_MAX];
};

void shm_callers_init(struct shm_callers *c, struct eng_source *src);
void shm_callers_fini(struct shm_callers *c); /* may be repeated */
void shm_callers_forked(struct shm_callers *c);
/* SHM_NONE, or why not; that of the next two as well. */
enum shm_state shm_callers_listen(struct shm_callers *c, const uint8_t name[EXT_LINK_TOKEN]);
/* The descriptor of the next caller whose NONCE packet has come, and the nonce that it was sent.
 * The descriptor is then the caller's to close. fd -1: there is none yet. */
enum shm_state shm_callers_next(struct shm_callers *c, int *fd, uint8_t nonce[EXT_LINK_TOKEN],
				struct shm_packet *call);

/* Report the descriptor to the source, too; if that fails it is closed. */
enum shm_state shm_callers_watch(struct eng_source *src, int fd);
void shm_callers_close(struct eng_source *src, int fd); /* one that is watched; accepts -1 */

#endif
