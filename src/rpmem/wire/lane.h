/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- messages on a lane, which is one connection of librpma: the private data of its start,
 * and the messages of the general method.
 *
 * Pure. The connect request contains a proof, made with the lane key, of the right to this lane at
 * this port. The request's 44 bytes fit into the 56 bytes that InfiniBand's connection manager
 * carries. The daemon's reply (up to 192 of 196 possible bytes) has a proof, too, and contains the
 * descriptor of the pool's memory. To refuse a lane, the daemon may accept it with a refusal in the
 * reply and disconnect, because not every provider delivers the private data of a reject. Both
 * decoders accept a longer buffer, because InfiniBand pads private data.
 */
#ifndef RPMEM_WIRE_LANE_H
#define RPMEM_WIRE_LANE_H

#include "rpmem/wire/proof.h"

#define WIRE_LANE_REQUEST 44
#define WIRE_LANE_REPLY   192
#define WIRE_DESC_MAX     64

enum wire_lane_status {
	WIRE_LANE_OK,
	/* the key is wrong, or the lane was not announced or is already connected */
	WIRE_LANE_UNPROVEN,
	WIRE_LANE_FAILED, /* the daemon cannot serve the lane */
	WIRE_LANE_STATUS_END,
};

struct wire_lane_reply {
	uint8_t status; /* enum wire_lane_status; the members below are valid only with OK */
	uint8_t mr_len, pcfg_len;
	uint8_t mr[WIRE_DESC_MAX]; /* the pool's descriptor from rpma_mr_get_descriptor() */
	/* the daemon's descriptor from rpma_peer_cfg_get_descriptor() */
	uint8_t pcfg[WIRE_DESC_MAX];
};

/* Write the request to buf[WIRE_LANE_REQUEST]; port is the port in the daemon's answer. */
size_t wire_lane_request_encode(const struct wire_key *key, uint32_t lane, uint16_t port,
				uint8_t *buf);
/* Returns false for another protocol, another version, or a request without a proof by this key for
 * this port. */
bool wire_lane_request_decode(const struct wire_key *key, uint16_t port, const uint8_t *buf,
			      size_t len, uint32_t *lane);
/* Encode the reply into buf[WIRE_LANE_REPLY]. */
size_t wire_lane_reply_encode(const struct wire_key *key, uint32_t lane, uint16_t port,
			      const struct wire_lane_reply *reply, uint8_t *buf);
bool wire_lane_reply_decode(const struct wire_key *key, uint32_t lane, uint16_t port,
			    const uint8_t *buf, size_t len, struct wire_lane_reply *reply);

/*
 * The general method: after its Writes the initiator sends a request; the daemon writes the range
 * back and answers with the same id. Before the daemon accepts a lane, it posts WIRE_PERSIST_DEPTH
 * receives of WIRE_PERSIST_REQUEST bytes on the lane. The initiator has at most that many
 * unanswered requests.
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
	uint32_t error; /* errno; a failure is final for the pool */
};

size_t wire_persist_encode(const struct wire_persist *m, uint8_t *buf);
size_t wire_persisted_encode(const struct wire_persisted *m, uint8_t *buf);
bool wire_persist_decode(const uint8_t *buf, size_t len, struct wire_persist *m);
bool wire_persisted_decode(const uint8_t *buf, size_t len, struct wire_persisted *m);

#endif
