/* SPDX-License-Identifier: BSD-3-Clause */
/* meeting_rig.h -- names and dials for tests of how queue pairs without rdma_cm connect. */
#ifndef MEETING_RIG_H
#define MEETING_RIG_H

#include <string.h>

#include "softrnic/stream/meeting.h"

static inline struct meet_end rig_end(uint32_t qpn, uint8_t host)
{
	struct meet_end e = {.qpn = qpn};

	memset(e.gid, host, MEET_GID_LEN);
	return e;
}

static inline struct meeting_inbound rig_inbound(struct meet_end from, struct meet_end to)
{
	return (struct meeting_inbound){.data = {.from = from, .to = to}};
}

#endif
