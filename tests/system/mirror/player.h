/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * player.h -- the test plays a role itself: a process that maps a set, or a primary that connects
 * to other daemons. The test decides each message. A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_PLAYER_H
#define SYSTEM_MIRROR_PLAYER_H

#include <librpma.h>

#include "hosts.h"
#include "mirror/wire/packet.h"
#include "mirror/wire/proof.h"

#define PLAYER_WAIT_MS 20000

/* A connection to the UNIX socket of a daemon. */
struct player {
	int fd;
	uint32_t next_id;
	int data_fd, meta_fd; /* descriptors that arrived with the answer MAPPED, or -1 */
	struct packet in;     /* the packet that was received last */
};

/* The initial value of a player that is not open. */
#define PLAYER_NONE                                                                                \
	{                                                                                          \
		.fd = -1, .data_fd = -1, .meta_fd = -1                                             \
	}

void player_open(struct player *p, const struct hosts *h, unsigned i);
/* Close the player. PLAYER_NONE and a closed player are permitted, too. */
void player_close(struct player *p);
void player_send(struct player *p, struct packet *out);
/* Send an answer with the id in `out`. Returns false if the daemon has exited. */
bool player_answer(struct player *p, struct packet *out);
/* Send a packet. Returns false if the daemon has exited. */
bool player_try_send(struct player *p, struct packet *out);
/* Receive packets until one has this type, and skip unrequested packets. */
struct packet *player_expect(struct player *p, enum packet_type type);
/* Receive the next packet of any type. Returns NULL if the daemon has closed the connection. */
struct packet *player_next(struct player *p, int timeout_ms);
/* Send a packet, and return its answer. */
struct packet *player_ask(struct player *p, struct packet *out, enum packet_type type);
/* Send MAP. Returns the status in the answer. */
enum packet_status player_map(struct player *p, uint8_t flags);
/* After a MAP: promote the member of this host. *now gets the record. */
void player_recover(struct player *p, struct register_entry *now);
/* Like player_recover(), then serve. All other members of S are excluded. They have not promised
 * this epoch, so they no longer report their copies as whole. */
void player_promote(struct player *p, struct register_entry *now);

/* A connection to a daemon, made with librpma. */
struct talk {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_mr_local *mr;
	struct greeting greeting;
	struct greeting_reply reply;
	struct message in, grant;
	struct rpma_mr_remote *data, *ring;
	/* buffers of receives; the last buffer is for sending */
	uint8_t buf[MESSAGE_OUTSTANDING + 1][MESSAGE_SIZE];
	uint8_t page[4096];
	struct rpma_mr_local *page_mr;
};

/* Connect with these bytes as private data. If the result is ESTABLISHED, t->reply is the daemon's
 * reply. */
enum rpma_conn_event talk_dial(struct talk *t, const struct hosts *h, unsigned i, const void *bytes,
			       size_t len);
/* Connect as slot `from` to the daemon of host i, and receive the reply to the greeting. Returns
 * its status. */
enum greeting_status talk_connect(struct talk *t, const struct hosts *h, unsigned i, unsigned from,
				  enum greeting_kind kind, struct mirror_epoch epoch);
/* Send PROVE with this key (NULL: zeros). Returns the status of the GRANT. */
enum greeting_status talk_prove(struct talk *t, const uint8_t *key);
/* Call talk_connect(). If the set has a secret file, then call talk_prove() with its key. */
enum greeting_status talk_open(struct talk *t, const struct hosts *h, unsigned i, unsigned from,
			       enum greeting_kind kind, struct mirror_epoch epoch);
void talk_close(struct talk *t);
/* Returns false if the connection has ended. */
bool talk_send(struct talk *t, const void *bytes, size_t len);
/* Receive the next message into t->in. Returns false if the connection is closed. */
bool talk_receive(struct talk *t);
/* Send a request of this type. Returns the answer; without an answer the test fails. */
struct message *talk_ask(struct talk *t, enum message_type type);
/* Write 8 bytes at this offset, and flush them. Returns the status of the completion. */
enum ibv_wc_status talk_flush(struct talk *t, uint64_t offset, uint64_t value);

#endif
