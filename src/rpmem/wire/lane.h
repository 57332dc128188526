/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- messages on a lane, which is one connection of librpma: the private data of its start,
 * and the messages of the general method.
 *
 * Pure. The connect request proves its lane and its port with the lane key; its 44 bytes fit into
 * the 56 that InfiniBand's connection manager carries. The daemon's reply (up to 192 bytes of the
 * 196 possible) has a proof, too, and brings the descriptor of the pool's memory. The daemon may
 * accept with a refusal and disconnect, as not every provider delivers private data of a reject.
 * Both decoders take a longer buffer: InfiniBand pads.
 */
#ifndef RPMEM_WIRE_LANE_H
#define RPMEM_WIRE_LANE_H

#include "rpmem/wire/proof.h"

#define WIRE_LANE_REQUEST 44
#define WIRE_LANE_REPLY   192
#define WIRE_DESC_MAX     64

enum wire_lane_status {
	WIRE_LANE_OK,
	/* wrong key, or the lane was not announced or is already connected */
	WIRE_LANE_UNPROVEN,
	WIRE_LANE_FAILED, /* the daemon cannot serve the lane */
	WIRE_LANE_STATUS_END,
};

struct wire_lane_reply {
	uint8_t status; /* enum wire_lane_status; the other members are valid only with OK */
	uint8_t mr_len, pcfg_len;
	uint8_t mr[WIRE_DESC_MAX];   /* rpma_mr_get_descriptor() of the pool */
	uint8_t pcfg[WIRE_DESC_MAX]; /* rpma_peer_cfg_get_descriptor() */
};

/* Write the request to buf[WIRE_LANE_REQUEST]; port is the port in the daemon's answer. */
size_t wire_lane_request_encode(const struct wire_key *key, uint32_t lane, uint16_t port,
				uint8_t *buf);
/* Returns false for another protocol, another version, or a request without a proof by this key for
 * this port. */
bool wire_lane_request_decode(const struct wire_key *key, uint16_t port, const uint8_t *buf,
			      size_t len, uint32_t *lane);
/* Writes to buf[WIRE_LANE_REPLY]. */
size_t wire_lane_reply_encode(const struct wire_key *key, uint32_t lane, uint16_t port,
			      const struct wire_lane_reply *reply, uint8_t *buf);
bool wire_lane_reply_decode(const struct wire_key *key, uint32_t lane, uint16_t port,
			    const uint8_t *buf, size_t len, struct wire_lane_reply *reply);

/*
 * The general method: after its writes the initiator sends a request; the daemon writes the range
 * back and answers with the same id. Before the daemon accepts a lane, it posts WIRE_PERSIST_DEPTH
 * receives of WIRE_PERSIST_REQUEST bytes on it. The initiator has at most that many requests
 * unanswered.
 */
#define WIRE_PERSIST_DEPTH   16
#define WIRE_PERSIST_REQUEST 24
#define WIRE_PERSIST_ANSWER  12

struct wire_persist {
	uint32_t id;
	uint64_t offset, length; /* range of the pool */
};

struct wire_persisted {
	uint32_t id;
	uint32_t error; /* errno, which is final for the pool */
};

size_t wire_persist_encode(const struct wire_persist *m, uint8_t *buf);
size_t wire_persisted_encode(const struct wire_persisted *m, uint8_t *buf);
bool wire_persist_decode(const uint8_t *buf, size_t len, struct wire_persist *m);
bool wire_persisted_decode(const uint8_t *buf, size_t len, struct wire_persisted *m);

#endif
