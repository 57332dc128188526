/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.h -- starts a session without ssh: both ends prove that they have the secret.
 *
 * The listener sends the greeting and receives the proof, for many connections in one process and
 * without waiting. After the proof a separate process for this connection answers.
 */
#ifndef RPMEMD_DIRECT_H
#define RPMEMD_DIRECT_H

#include "rpmem/wire/stream.h"

#define DIRECT_PROOF_MS 5000 /* time limit for the initiator's proof */

/* The result of a proof, for the process that serves the initiator. */
struct direct_start {
	struct wire_exchange exchange;
	struct secret secret;
};

/* Send the greeting. ERROR_FAILED, ERROR_UNREACHED: the connection cannot be used any more. */
int direct_greet(struct wire_stream *stream, struct wire_exchange *exchange, struct error *err);
/*
 * Receive the initiator's proof, which no further byte may follow. -EAGAIN: the proof has not come
 * yet. ERROR_FAILED, ERROR_UNREACHED: the text has the reason.
 */
int direct_receive_proof(struct wire_stream *stream, struct wire_proof *proof, struct error *err);
/* Check the initiator's proof. ERROR_REFUSED: the initiator has another secret, and a refusal was
 * sent. */
int direct_check_proof(struct wire_stream *stream, const struct secret *secret,
		       const struct wire_proof *proof, struct wire_exchange *exchange,
		       struct error *err);
/* Send this end's proof. failure: the errno and the text if this end cannot serve, else NULL. */
int direct_answer(struct wire_stream *stream, const struct direct_start *start,
		  const struct error *failure, struct error *err);
/* Seal the stream from the next frame on. */
void direct_seal(struct wire_stream *stream, const struct direct_start *start,
		 struct wire_key *lane_key);

#endif
