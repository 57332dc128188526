/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h -- one connection to a member's daemon: control, lane or bulk, or one that observes.
 *
 * It connects, greets, proves and gets its grant, or ends; no call here waits. The background
 * thread calls link_step() when one of the descriptors is readable, or in each turn.
 */
#ifndef MIRROR_PEER_LINK_H
#define MIRROR_PEER_LINK_H

#include <librpma.h>

#include "mirror/wire/message.h"
#include "mirror/wire/proof.h"

#define LINK_MESSAGES 8 /* received and not taken */
#define LINK_SENDS    8 /* on their way */

enum link_state {
	LINK_DOWN,
	LINK_CONNECTING,
	LINK_PROVING,
	LINK_READY,
	LINK_ENDED /* `why` has the reason; close it */
};

/* The part that is the same for all connections to a member. */
struct link_place {
	struct rpma_peer *peer;
	struct rpma_cq *cq; /* for operations; NULL: one of its own */
	uint32_t sq_size;
	int timeout_ms; /* time limit for a connect, and for silence of the peer */
	/* PROOF_KEY; *key is NULL: the set has no secret. Both may change when a set gets its
	 * first secret. */
	const uint8_t *const *key;
	const char *self; /* this end, for texts about versions: "this librpmirror" */
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
	struct message_grant grant;  /* READY */
	struct rpma_mr_remote *data; /* LANE, BULK */
	struct rpma_mr_remote *ring; /* LANE */
	enum greeting_status status; /* ENDED by a refusal */
	bool lacks_secret;           /* ENDED, as only one end has a secret */
	struct mirror_epoch known;   /* and the epoch that was promised there */
	uint64_t deadline_ms;        /* until READY */
	struct message inbox[LINK_MESSAGES];
	unsigned inbox_first, inbox_count;
	char why[256];
	uint32_t medium_error; /* ENDED as the medium there has failed: its errno; else 0 */
};

/* From DOWN. A failure is reported like one of a later step. */
void link_open(struct link *l, const struct link_place *place, const char *host, uint16_t port,
	       const struct greeting *greeting, uint64_t now_ms);
/* After this no post goes out, and no memory of it is read. */
void link_close(struct link *l);

/* The descriptors to wait for; fewer while there are none. */
unsigned link_fds(const struct link *l, int fds[2]);
void link_step(struct link *l, uint64_t now_ms);
/* Break the connection: the next link_step() finds it ENDED. */
void link_fail(struct link *l, const char *why);
/* The same, with the reason of a failed completion. */
void link_fail_by(struct link *l, const struct ibv_wc *wc);

/* READY: false ends it. */
bool link_send(struct link *l, const struct message *m);
bool link_receive(struct link *l, struct message *m);

#endif
