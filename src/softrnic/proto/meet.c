/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/meet.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"

#define MEET_MAGIC   0x73525150u /* the bytes "sRQP" */
#define MEET_VERSION 1u
#define MEET_FLAG_UC 1u

int meet_data_encode(void *buf, size_t size, const struct meet_data *data)
{
	struct wcursor c = wcursor_init(buf, size);

	wcursor_be32(&c, MEET_MAGIC);
	wcursor_u8(&c, MEET_VERSION);
	wcursor_u8(&c, data->uc ? MEET_FLAG_UC : 0);
	wcursor_be16(&c, 0);
	wcursor_be32(&c, data->from.qpn);
	wcursor_be32(&c, data->to.qpn);
	wcursor_bytes(&c, data->from.gid, MEET_GID_LEN);
	wcursor_bytes(&c, data->to.gid, MEET_GID_LEN);
	wcursor_be32(&c, data->rq_psn);
	wcursor_be32(&c, data->sq_psn);
	wcursor_u8(&c, data->path_mtu);
	wcursor_u8(&c, data->max_dest_rd_atomic);
	wcursor_u8(&c, data->max_rd_atomic);
	wcursor_u8(&c, data->reason);
	wcursor_be32(&c, 0);
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

static void meet_get_gid(struct rcursor *c, uint8_t gid[MEET_GID_LEN])
{
	const uint8_t *bytes = rcursor_bytes(c, MEET_GID_LEN);

	if (bytes)
		memcpy(gid, bytes, MEET_GID_LEN);
}

/* Read the fixed part of the message, up to the names of the two ends. */
static const char *meet_get_head(struct rcursor *c, struct meet_data *data)
{
	uint32_t magic = rcursor_be32(c);
	uint8_t version = rcursor_u8(c), flags = rcursor_u8(c);
	uint16_t zero = rcursor_be16(c);

	if (c->bad || magic != MEET_MAGIC)
		return "they do not begin with sRQP";
	if (version != MEET_VERSION)
		return "they have another version";
	if (flags & ~MEET_FLAG_UC || zero)
		return "they have an unknown flag";
	data->uc = flags & MEET_FLAG_UC;
	return NULL;
}

static uint32_t meet_get_limits(struct rcursor *c, struct meet_data *data)
{
	data->rq_psn = rcursor_be32(c);
	data->sq_psn = rcursor_be32(c);
	data->path_mtu = rcursor_u8(c);
	data->max_dest_rd_atomic = rcursor_u8(c);
	data->max_rd_atomic = rcursor_u8(c);
	data->reason = rcursor_u8(c);
	return rcursor_be32(c);
}

/* Check that the numbers of queue pairs and the packet sequence numbers fit into 24 bits. */
static const char *meet_check(const struct meet_data *data)
{
	if (data->from.qpn > MEET_QPN_MAX || data->to.qpn > MEET_QPN_MAX)
		return "a queue pair's number has more than 24 bits";
	if (data->rq_psn > MEET_QPN_MAX ||
	    (data->sq_psn > MEET_QPN_MAX && data->sq_psn != MEET_NO_PSN))
		return "a packet sequence number has more than 24 bits";
	if (data->path_mtu > MEET_MTU_MAX)
		return "the path MTU is none of verbs";
	return data->reason > MEET_MALFORMED ? "the reason is unknown" : NULL;
}

int meet_data_decode(const void *buf, size_t len, struct meet_data *data, const char **why)
{
	struct rcursor c = rcursor_init(buf, len);

	*data = (struct meet_data){.uc = false};
	*why = len == MEET_LEN ? meet_get_head(&c, data) : "there are not 64 of them";
	if (*why)
		return -EBADMSG;
	data->from.qpn = rcursor_be32(&c);
	data->to.qpn = rcursor_be32(&c);
	meet_get_gid(&c, data->from.gid);
	meet_get_gid(&c, data->to.gid);
	*why = meet_get_limits(&c, data) ? "their last 4 are not 0" : meet_check(data);
	return *why ? -EBADMSG : 0;
}

bool meet_end_equals(const struct meet_end *a, const struct meet_end *b)
{
	return a->qpn == b->qpn && !memcmp(a->gid, b->gid, MEET_GID_LEN);
}

const char *meet_reason_str(uint8_t reason)
{
	switch (reason) {
	case MEET_NO_QP:
		return "no queue pair has that number";
	case MEET_NOT_PEER:
		return "the queue pair expects another peer";
	case MEET_BUSY:
		return "the queue pair is busy";
	case MEET_MALFORMED:
		return "the request is malformed";
	default:
		return "without a reason";
	}
}
