/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.h -- starts a session without ssh: a TCP connection to `rpmemd --listen`, and the proofs
 * of both ends.
 */
#ifndef RPMEM_DIRECT_H
#define RPMEM_DIRECT_H

#include "rpmem/target.h"
#include "rpmem/wire/stream.h"

/* Connect a socket to the target. Returns 0 or an errno. */
int direct_connect(const struct target *target, uint64_t deadline, int *fd);
/*
 * After the greeting: prove that this end has the secret of RPMEM_SECRET_FILE, check the other
 * end's proof, and seal the stream. lane_key gets the key for the session's lanes. Returns 0 or an
 * errno.
 */
int direct_prove(struct wire_stream *stream, const struct wire_greeting *greeting, const char *who,
		 uint64_t deadline, struct wire_key *lane_key);

#endif
