/* SPDX-License-Identifier: BSD-3-Clause */
/* direct.h -- the direct way: a TCP connection to
 * `rpmemd --listen`, and the proofs of both ends. */
#ifndef RPMEM_DIRECT_H
#define RPMEM_DIRECT_H

#include "rpmem/target.h"
#include "rpmem/wire/stream.h"

/* A connected socket; 0 or an errno. */
int direct_connect(const struct target *target, uint64_t deadline, int *fd);
/*
 * The greeting has come: prove that this end knows the secret of RPMEM_SECRET_FILE, check that the
 * other one does, and seal the stream. lane_key is that of the session. 0 or an errno.
 */
int direct_prove(struct wire_stream *stream, const struct wire_greeting *greeting, const char *who,
		 uint64_t deadline, struct wire_key *lane_key);

#endif
