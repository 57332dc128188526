/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h -- an initiator for the tests of rpmemd, which follows the protocol step by step, or
 * breaks it.
 *
 * Steps that must work fail the test otherwise; steps that a test expects to fail return a result.
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
#define PEER_SIZE  (4ul << 20) /* size of its memory, and of the part of the pool in use */

struct peer_lane {
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *messages; /* of the general method: requests and answers */
	uint8_t *bytes;
	uint32_t id;
};

/* All zeros: the peer has ended. */
struct peer {
	bool is_begun;
	pid_t pid;        /* process of the daemon; 0: this peer started none */
	int in, out, err; /* the ends of its pipes; or the socket, with err -1 */
	struct wire_stream stream;
	struct wire_greeting greeting;
	struct wire_answer answer; /* the last answer */
	struct wire_pool_answer pool;
	struct wire_key lane_key;
	struct rpma_peer *rpma;
	struct rpma_mr_local *mr;
	uint8_t *memory; /* PEER_SIZE bytes, from which the lanes write */
	struct peer_lane lanes[PEER_LANES];
};

/* Make a folder for pool sets anew for the test, and return its absolute path; remove the
 * folder. */
const char *peer_folder(void);
void peer_folder_remove(void);
/*
 * "FOLDER/name" (static); and a pool set there with one part of that size, in the file NAME.part.
 */
const char *peer_path(const char *name);
void peer_make_set(const char *name, unsigned long size);

/* Start rpmemd with --poolset-dir and a log on standard error, and take its greeting. Options end
 * with NULL. */
void peer_start(struct peer *p, const char *const options[]);
/*
 * Connect to a listening rpmemd. secret NULL: take only the greeting. 0, or the errno from the
 * daemon or the protocol.
 */
int peer_connect(struct peer *p, const char *port, const struct secret *secret);
/* Send a request, and take the answer. Returns the answer's status. */
unsigned peer_ask(struct peer *p, enum wire_type type, const uint8_t *body, size_t len);
unsigned peer_create(struct peer *p, const char *name, uint64_t size, uint32_t lanes);
unsigned peer_open(struct peer *p, const char *name, uint64_t size, uint32_t lanes);
unsigned peer_lanes(struct peer *p, uint32_t first, uint32_t count);
unsigned peer_deep(struct peer *p, uint64_t offset, uint64_t length);
unsigned peer_close(struct peer *p, uint32_t flags);

/* Connect a lane to the port, with this key. Returns the resulting event. */
enum rpma_conn_event peer_dial(struct peer *p, unsigned lane, const struct wire_key *key,
			       uint16_t port);
/* Announce a lane, and connect the lane. Returns 0, or librpma's error. */
int peer_lane_up(struct peer *p, unsigned lane);
/* Copy bytes of memory to the pool and make them durable. Returns 0, or the failure. */
int peer_persist(struct peer *p, unsigned lane, uint64_t offset, uint64_t len);
/* Drop the lanes, like a killed initiator. */
void peer_drop_lanes(struct peer *p);

/* Wait for the daemon's end. Returns the daemon's wait status. */
int peer_wait(struct peer *p);
/* The daemon's output on standard error so far (static). */
const char *peer_stderr(struct peer *p);
/* End the peer, including the daemon. */
void peer_end(struct peer *p);

#endif
