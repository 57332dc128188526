/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h -- one connection to a member's daemon. Its kind is control, lane, bulk, observe or
 * restore (wire/greeting.h).
 *
 * A connection connects, greets, proves the secret and gets its grant, or is closed. No call here
 * waits. The background thread calls link_step() when one of the descriptors is readable, and in
 * each pass of its loop.
 */
#ifndef MIRROR_PEER_LINK_H
#define MIRROR_PEER_LINK_H

#include <librpma.h>

#include "mirror/wire/message.h"
#include "mirror/wire/proof.h"

#define LINK_MESSAGES 8 /* largest number of messages received and not taken */
#define LINK_SENDS    8 /* largest number of outstanding sends */

enum link_state {
	LINK_DOWN,
	LINK_CONNECTING,
	LINK_PROVING,
	LINK_READY,
	LINK_ENDED /* `why` has the reason; the caller has to close the link */
};

/* The data that all connections to a member share. */
struct link_place {
	struct rpma_peer *peer;
	struct rpma_cq *cq; /* queue for operations; NULL: the connection gets a separate queue */
	uint32_t sq_size;
	int timeout_ms; /* time limit for a connect, and for silence of the peer */
	/* PROOF_KEY bytes; *key NULL: the set has no secret. *key and the bytes may change when
	 * a set gets its first secret. */
	const uint8_t *const *key;
	/* name of this end for texts about versions, such as "this librpmirror" */
	const char *self;
};

struct link_buffers {
	uint8_t in[LINK_MESSAGES][MESSAGE_SIZE], out[LINK_SENDS][MESSAGE_SIZE];
};

struct link {
	enum link_state state;
	const struct link_place *place;
	struct rpma_conn *conn;
	struct rpma_cq *rcq;
	struct link_buffers *buffers;
	struct rpma_mr_local *mr;
	uint64_t sent, sends_done;
	struct proof_exchange exchange;
	struct message_grant grant;  /* valid in the state READY */
	struct rpma_mr_remote *data; /* valid for LANE and BULK */
	struct rpma_mr_remote *ring; /* valid for LANE */
	enum greeting_status status; /* ENDED by a refusal: the status of the refusal */
	bool lacks_secret;           /* ENDED because only one of the two ends has a secret */
	struct mirror_epoch known;   /* the epoch that the refusing daemon has promised */
	uint64_t deadline_ms;        /* time limit for READY */
	struct message inbox[LINK_MESSAGES];
	unsigned inbox_first, inbox_count;
	char why[256];
	/* ENDED because the member's medium has failed: the errno; else 0 */
	uint32_t medium_error;
};

/* Begin a connection; l must be DOWN. A failure is reported like a failure of a later step. */
void link_open(struct link *l, const struct link_place *place, const char *host, uint16_t port,
	       const struct greeting *greeting, uint64_t now_ms);
/* Close the connection. After the return nothing is sent, and the connection's memory is not read
 * any more. */
void link_close(struct link *l);

/* Store the descriptors to wait for in fds, and return their number (0 to 2). */
unsigned link_fds(const struct link *l, int fds[2]);
void link_step(struct link *l, uint64_t now_ms);
/* Break the connection: the next link_step() finds it ENDED. */
void link_fail(struct link *l, const char *why);
/* Break the connection because of a failed completion. */
void link_fail_by(struct link *l, const struct ibv_wc *wc);

/* Send a message in the state READY. If the call returns false, the connection is closed. */
bool link_send(struct link *l, const struct message *m);
bool link_receive(struct link *l, struct message *m);

#endif
