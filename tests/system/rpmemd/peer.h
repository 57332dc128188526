/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h -- an initiator for the tests of rpmemd: the test follows the protocol step by step, or
 * breaks it.
 *
 * A step that must succeed fails the test otherwise. A step that can be expected to fail returns
 * its result.
 */
#ifndef RPMEMD_PEER_H
#define RPMEMD_PEER_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rpmem/wire/lane.h"
#include "rpmem/wire/stream.h"

#define PEER_LANES 64
/* size of the peer's memory, and of the part of the pool that is used */
#define PEER_SIZE (4ul << 20)

struct peer_lane {
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *messages; /* memory for requests and answers of the general method */
	uint8_t *bytes;
	uint32_t id;
};

/* If all members are zero, the peer has ended. */
struct peer {
	bool is_begun;
	pid_t pid; /* process id of the daemon; 0: this peer started no daemon */
	/* this end of the daemon's pipes; with a socket, both are the socket, and err is -1 */
	int in, out, err;
	struct wire_stream stream;
	struct wire_greeting greeting;
	struct wire_answer answer; /* the answer that was received last */
	struct wire_pool_answer pool;
	struct wire_key lane_key;
	struct rpma_peer *rpma;
	struct rpma_mr_local *mr;
	uint8_t *memory; /* PEER_SIZE bytes, from which the lanes write */
	struct peer_lane lanes[PEER_LANES];
};

/* peer_folder() makes a new folder for pool sets, and returns its absolute path;
 * peer_folder_remove() removes it. */
const char *peer_folder(void);
void peer_folder_remove(void);
/*
 * peer_path() returns "FOLDER/name" in a static buffer; peer_make_set() makes a pool set there with
 * one part of this size, in the file NAME.part.
 */
const char *peer_path(const char *name);
void peer_make_set(const char *name, unsigned long size);

/* Start rpmemd with --poolset-dir and a log on standard error, and receive its greeting. The
 * options end with NULL. */
void peer_start(struct peer *p, const char *const options[]);
/* Connect to a listening rpmemd. If `secret` is NULL, only receive the greeting. Returns 0, or the
 * errno that the daemon's answer or the protocol determines. */
int peer_connect(struct peer *p, const char *port, const struct secret *secret);
/* Send a request, and receive its answer. Returns the status in the answer. */
unsigned peer_ask(struct peer *p, enum wire_type type, const uint8_t *body, size_t len);
unsigned peer_create(struct peer *p, const char *name, uint64_t size, uint32_t lanes);
unsigned peer_open(struct peer *p, const char *name, uint64_t size, uint32_t lanes);
unsigned peer_lanes(struct peer *p, uint32_t first, uint32_t count);
unsigned peer_deep(struct peer *p, uint64_t offset, uint64_t length);
unsigned peer_close(struct peer *p, uint32_t flags);

/* Connect a lane to the port with this key. Returns the resulting event. */
enum rpma_conn_event peer_dial(struct peer *p, unsigned lane, const struct wire_key *key,
			       uint16_t port);
/* Announce a lane, and connect it. Returns 0, or librpma's error. */
int peer_lane_up(struct peer *p, unsigned lane);
/* Copy bytes of memory to the pool, and make them durable. Returns 0, or the error. */
int peer_persist(struct peer *p, unsigned lane, uint64_t offset, uint64_t len);
/* Drop the lanes without a disconnect, like a killed initiator. */
void peer_drop_lanes(struct peer *p);

/* Wait until the daemon exits. Returns its wait status. */
int peer_wait(struct peer *p);
/* Returns the text that the daemon has written to standard error so far, in a static buffer. */
const char *peer_stderr(struct peer *p);
/* End the peer, and its daemon. */
void peer_end(struct peer *p);

#endif
