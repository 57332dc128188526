/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.h -- the start of a session without ssh: both ends prove that they know the secret.
 *
 * The listener greets and takes the initiator's proof, for many connections in one process and
 * without waiting; the process of a connection whose initiator has proved itself answers.
 */
#ifndef RPMEMD_DIRECT_H
#define RPMEMD_DIRECT_H

#include "rpmem/wire/stream.h"

#define DIRECT_PROOF_MS 5000 /* for the initiator */

/* What a proof leaves for the process that serves the initiator. */
struct direct_start {
	struct wire_exchange exchange;
	struct secret secret;
};

/* Send the greeting. ERROR_FAILED, ERROR_UNREACHED: the connection is none any more. */
int direct_greet(struct wire_stream *stream, struct wire_exchange *exchange, struct error *err);
/* The initiator's proof, which nothing may follow. -EAGAIN: it has not come. ERROR_FAILED,
 * ERROR_UNREACHED: as it says. */
int direct_receive_proof(struct wire_stream *stream, struct wire_proof *proof, struct error *err);
/* ERROR_REFUSED: the initiator has another secret, and was told so. */
int direct_check_proof(struct wire_stream *stream, const struct secret *secret,
		       const struct wire_proof *proof, struct wire_exchange *exchange,
		       struct error *err);
/* Prove this end, with an errno and words where it cannot serve (failure, or NULL). */
int direct_answer(struct wire_stream *stream, const struct direct_start *start,
		  const struct error *failure, struct error *err);
/* From now on the stream is sealed. */
void direct_seal(struct wire_stream *stream, const struct direct_start *start,
		 struct wire_key *lane_key);

#endif
