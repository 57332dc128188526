/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_callers.h -- the callers at a responder's Unix socket, one of which is its peer. The
 * others are closed, so that the peer gets its turn. No call waits; the source reports when to
 * continue.
 */
#ifndef IO_LINK_SHM_CALLERS_H
#define IO_LINK_SHM_CALLERS_H

#include "base/shm_state.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm_socket.h"

#define SHM_CALLS_MAX   64 /* limit of calls in vain */
#define SHM_CALLERS_MAX 4  /* limit of connected, silent callers */

struct shm_caller {
	int fd;
	uint8_t nonce[EXT_LINK_TOKEN]; /* sent to the caller; each caller gets another one */
};

struct shm_callers {
	struct eng_source *src;
	int listener; /* -1: none */
	unsigned calls;
	unsigned n_silent; /* the oldest comes first */
	struct shm_caller silent[SHM_CALLERS_MAX];
};

void shm_callers_init(struct shm_callers *c, struct eng_source *src);
void shm_callers_fini(struct shm_callers *c); /* may be called again */
void shm_callers_forked(struct shm_callers *c);
/* Returns SHM_NONE, or the reason of the failure; so do the next two functions. */
enum shm_state shm_callers_listen(struct shm_callers *c, const uint8_t name[EXT_LINK_TOKEN]);
/* Find the next caller whose NONCE packet has arrived; `nonce` is the one that it was sent. *fd
 * then belongs to the calling function; -1: there is none yet. */
enum shm_state shm_callers_next(struct shm_callers *c, int *fd, uint8_t nonce[EXT_LINK_TOKEN],
				struct shm_packet *call);

/* Add the descriptor to the source; on failure close it. */
enum shm_state shm_callers_watch(struct eng_source *src, int fd);
void shm_callers_close(struct eng_source *src, int fd); /* a watched descriptor; accepts -1 */

#endif
