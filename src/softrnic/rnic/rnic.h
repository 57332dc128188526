/* SPDX-License-Identifier: BSD-3-Clause */
/* rnic.h -- the limits of this software RNIC. ibv_query_device() reports these limits, and every
 * check of bounds uses them. */
#ifndef RNIC_RNIC_H
#define RNIC_RNIC_H

#include "verbs_ext/values.h"

#define RNIC_MAX_QP      65536
#define RNIC_MAX_QP_WR   32768
#define RNIC_MAX_SGE     16
#define RNIC_MAX_INLINE  1024
#define RNIC_MAX_CQE     1048576
#define RNIC_MAX_SRQ_WR  32768
#define RNIC_RNR_TIMES   32            /* InfiniBand's codes of the time until a retry */
#define RNIC_MAX_RD_ATOM 128           /* greatest IRD and ORD; siw has the same limit */
#define RNIC_MAX_MSG     0xffffffffull /* RFC 5041 s5: a message is shorter than 2^32 bytes */
/* limit for a QP's Sends that arrived before their receives, in bytes */
#define RNIC_PARK_BYTES (256u << 10)
#define RNIC_PARK_MSGS  256
/* replaces RNIC_PARK_BYTES after some time without receives: qp_rx_widen() */
#define RNIC_PARK_MORE (8u << 20)
/* limit for bytes in excess of RNIC_PARK_BYTES, of all QPs together */
#define RNIC_PARK_ALL (64ull << 20)

/* If a region has any of these rights, a peer can address it. */
#define RNIC_REMOTE_ACCESS                                                                         \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |             \
	 VEXT_ACCESS_FLUSH_GLOBAL | VEXT_ACCESS_FLUSH_PERSISTENT)

/* If a region has any of these rights, a peer can address it, directly or through a window. */
#define RNIC_REACHED (RNIC_REMOTE_ACCESS | IBV_ACCESS_MW_BIND)

#endif
