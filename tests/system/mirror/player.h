/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * player.h -- roles that a test can take: a process that maps a set, and the connections of a
 * primary. The test decides each message. A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_PLAYER_H
#define SYSTEM_MIRROR_PLAYER_H

#include <librpma.h>

#include "hosts.h"
#include "mirror/wire/packet.h"
#include "mirror/wire/proof.h"

#define PLAYER_WAIT_MS 20000

/* A connection to a daemon's UNIX socket. */
struct player {
	int fd;
	uint32_t next_id;
	int data_fd, meta_fd; /* descriptors that came with MAPPED, or -1 */
	struct packet in;     /* the last packet received */
};

/* A player that is not open yet. */
#define PLAYER_NONE                                                                                \
	{                                                                                          \
		.fd = -1, .data_fd = -1, .meta_fd = -1                                             \
	}

void player_open(struct player *p, const struct hosts *h, unsigned i);
/* PLAYER_NONE and a player that is closed already are permitted, too. */
void player_close(struct player *p);
void player_send(struct player *p, struct packet *out);
/* Send an answer with the id in `out`. False: the daemon is gone. */
bool player_answer(struct player *p, struct packet *out);
/* False: the daemon is gone. */
bool player_try_send(struct player *p, struct packet *out);
/* The next packet of that type; unrequested ones before it are skipped. */
struct packet *player_expect(struct player *p, enum packet_type type);
/* The next packet of any type; NULL: the daemon has closed the connection. */
struct packet *player_next(struct player *p, int timeout_ms);
/* Send a packet, and return the answer. */
struct packet *player_ask(struct player *p, struct packet *out, enum packet_type type);
/* Send MAP; returns the status in the answer. */
enum packet_status player_map(struct player *p, uint8_t flags);
/* After a MAP: promote the host's member. *now is the record. */
void player_recover(struct player *p, struct register_entry *now);
/*
 * The same, then serve. All other members of S are excluded; they have not promised this epoch, so
 * they do not count themselves as whole any more.
 */
void player_promote(struct player *p, struct register_entry *now);

/* A connection to a daemon through librpma. */
struct talk {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_mr_local *mr;
	struct greeting greeting;
	struct greeting_reply reply;
	struct message in, grant;
	struct rpma_mr_remote *data, *ring;
	uint8_t buf[MESSAGE_OUTSTANDING + 1][MESSAGE_SIZE]; /* the last one is for sending */
	uint8_t page[4096];
	struct rpma_mr_local *page_mr;
};

/* Dial with these bytes as private data. With ESTABLISHED, t->reply is the daemon's reply. */
enum rpma_conn_event talk_dial(struct talk *t, const struct hosts *h, unsigned i, const void *bytes,
			       size_t len);
/*
 * Connect as slot `from` to host i's daemon, up to the reply to the greeting. Returns its status.
 */
enum greeting_status talk_connect(struct talk *t, const struct hosts *h, unsigned i, unsigned from,
				  enum greeting_kind kind, struct mirror_epoch epoch);
/* Send PROVE with that key (NULL: zeros). Returns the GRANT's status. */
enum greeting_status talk_prove(struct talk *t, const uint8_t *key);
/* talk_connect(), then talk_prove() with the key of the set's secret file, if there is one. */
enum greeting_status talk_open(struct talk *t, const struct hosts *h, unsigned i, unsigned from,
			       enum greeting_kind kind, struct mirror_epoch epoch);
void talk_close(struct talk *t);
/* False: the connection has ended. */
bool talk_send(struct talk *t, const void *bytes, size_t len);
/* Receive the next message in t->in. False: the connection has ended. */
bool talk_receive(struct talk *t);
/* Ask, and return the answer; without an answer the test fails. */
struct message *talk_ask(struct talk *t, enum message_type type);
/* Write 8 bytes at the offset and flush them. Returns the completion's status. */
enum ibv_wc_status talk_flush(struct talk *t, uint64_t offset, uint64_t value);

#endif
