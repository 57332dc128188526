/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_callers.h -- accepts callers at a responder's Unix socket, one of which is its peer. The
 * other callers are closed, so that the peer can be served. No call waits; the source reports when
 * to continue.
 */
#ifndef IO_LINK_SHM_CALLERS_H
#define IO_LINK_SHM_CALLERS_H

#include "base/shm_state.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm_socket.h"

#define SHM_CALLS_MAX   64 /* limit of calls by callers that are not the peer */
#define SHM_CALLERS_MAX 4  /* limit of connected callers that have not sent their nonce */

struct shm_caller {
	int fd;
	uint8_t nonce[EXT_LINK_TOKEN]; /* sent to the caller; each caller gets a different nonce */
};

struct shm_callers {
	struct eng_source *src;
	int listener; /* -1: not listening */
	unsigned calls;
	unsigned n_silent; /* number of callers in the array; the oldest is first */
	struct shm_caller silent[SHM_CALLERS_MAX];
};

void shm_callers_init(struct shm_callers *c, struct eng_source *src);
void shm_callers_fini(struct shm_callers *c); /* may be called several times */
void shm_callers_forked(struct shm_callers *c);
/* This function and the next two return SHM_NONE, or the reason of a failure. */
enum shm_state shm_callers_listen(struct shm_callers *c, const uint8_t name[EXT_LINK_TOKEN]);
/* Find the next caller whose NONCE packet has arrived. `nonce` is the nonce that this caller was
 * sent. *fd is the caller's socket, which then belongs to the calling function; -1: there is none
 * yet. */
enum shm_state shm_callers_next(struct shm_callers *c, int *fd, uint8_t nonce[EXT_LINK_TOKEN],
				struct shm_packet *call);

/* Add the descriptor to the source. If this fails, the descriptor is closed. */
enum shm_state shm_callers_watch(struct eng_source *src, int fd);
void shm_callers_close(struct eng_source *src, int fd); /* close a watched descriptor; accepts -1 */

#endif
