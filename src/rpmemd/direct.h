/* SPDX-License-Identifier: BSD-3-Clause */
/* direct.h -- the start of a session without ssh: both ends prove that they know the secret. */
#ifndef RPMEMD_DIRECT_H
#define RPMEMD_DIRECT_H

#include "rpmem/wire/stream.h"

#define DIRECT_PROOF_MS 5000

/* Is there room for an initiator that has proved itself? 0, or an errno with words in err. NULL:
 * there always is. */
struct direct_admission {
	int (*ask)(void *arg, struct error *err);
	void *arg;
};

/* Greeting, proofs, keys; from then on the stream is sealed. The lanes' key is returned.
 * ERROR_REFUSED: the initiator does not know the secret (EACCES), or is not admitted. ERROR_FAILED:
 * it does not follow the protocol, or in time. */
int direct_authenticate(struct wire_stream *stream, const struct secret *secret,
			const struct direct_admission *admission, struct wire_key *lane_key,
			struct error *err);

#endif
