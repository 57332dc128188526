/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet.h -- the messages by which two queue pairs connect ("meet") without rdma_cm: the private
 * data of an MPA request and of its reply (doc/wire.md s15). Each end has the name that it would
 * have in RoCE: the queue pair's number and the GID.
 */
#ifndef PROTO_MEET_H
#define PROTO_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEET_LEN     64
#define MEET_GID_LEN 16
#define MEET_QPN_MAX 0xffffffu
#define MEET_NO_PSN  0xffffffffu /* the sender is not in RTS yet */
#define MEET_NO_RD   0xffu       /* max_rd_atomic is unknown because the sender is not in RTS yet */
#define MEET_MTU_MAX 5u          /* IBV_MTU_4096 */

/* Reasons to reject a request. The reply with MPA's reject bit carries the reason. */
enum meet_reason {
	MEET_REASON_NONE = 0,
	MEET_NO_QP = 1,     /* the process has no queue pair with this number */
	MEET_NOT_PEER = 2,  /* the queue pair expects another peer */
	MEET_BUSY = 3,      /* the queue pair is connected, or too many requests wait for it */
	MEET_MALFORMED = 4, /* these 64 bytes are malformed, or more bytes follow them */
};

struct meet_end {
	uint32_t qpn;
	uint8_t gid[MEET_GID_LEN];
};

struct meet_data {
	bool uc; /* true: an unreliable connection; false: a reliable one */
	struct meet_end from, to;
	uint32_t rq_psn, sq_psn; /* sequence numbers of the sender; sq_psn may be MEET_NO_PSN */
	uint8_t path_mtu;        /* enum ibv_mtu; 0 in a reject */
	uint8_t max_dest_rd_atomic;
	uint8_t max_rd_atomic; /* may be MEET_NO_RD */
	uint8_t reason;        /* enum meet_reason */
};

/* Returns the number of bytes written (always MEET_LEN), or -ENOSPC. */
int meet_data_encode(void *buf, size_t size, const struct meet_data *data);
/* Returns 0, or -EBADMSG with a text in *why. */
int meet_data_decode(const void *buf, size_t len, struct meet_data *data, const char **why);
/* Do both ends have the same queue pair number and GID? */
bool meet_end_equals(const struct meet_end *a, const struct meet_end *b);
const char *meet_reason_str(uint8_t reason);

#endif
