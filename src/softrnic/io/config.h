/* SPDX-License-Identifier: BSD-3-Clause */
/* config.h -- the environment variables of softrnic(7), read once. */
#ifndef IO_CONFIG_H
#define IO_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "softrnic/io/link_addr.h"

#define CONFIG_UIDS_MAX 16

enum config_crc { CONFIG_CRC_AUTO, CONFIG_CRC_ON, CONFIG_CRC_OFF };
enum config_ack { CONFIG_ACK_AUTO, CONFIG_ACK_ON, CONFIG_ACK_OFF };

struct config {
	enum config_crc crc; /* SOFTRNIC_CRC */
	/* SOFTRNIC_ACK: does a completion prove that the peer has received the data? */
	enum config_ack ack;
	uint64_t spin_ns;    /* SOFTRNIC_SPIN_US */
	bool spins_on_spare; /* spin only on a CPU that seems to be spare */
	unsigned threads;    /* SOFTRNIC_THREADS: greatest number of progress threads */
	uint64_t refused_ns; /* SOFTRNIC_REFUSED_MS: time for which a refused dial is repeated */
	/* SOFTRNIC_CONNECT_MS: time limit of dial and start-up together */
	uint64_t connect_ns;
	/* SOFTRNIC_REQUEST_MS: time limit for an inbound request to arrive */
	uint64_t request_ns;
	uint64_t drain_ns; /* SOFTRNIC_DRAIN_MS: time limit of disconnect and destroy */
	/*
	 * SOFTRNIC_LIVENESS_MS: a silence of this length means a lost peer; CLOCK_NEVER: no limit
	 */
	uint64_t liveness_ns;
	/* SOFTRNIC_VIOLATIONS_PER_S: limit for one address; 0: no limit */
	uint64_t violations_per_s;
	/* SOFTRNIC_RETRY_MS: least retry time of a queue pair without an id */
	uint64_t retry_ns;
	unsigned qp_ports[2];        /* SOFTRNIC_QP_PORTS=lo-hi; 0: the kernel chooses the ports */
	bool qp_any_source;          /* SOFTRNIC_QP_ANY_SOURCE */
	bool strict_psn;             /* SOFTRNIC_STRICT_PSN */
	struct link_addr qp_address; /* SOFTRNIC_GIDS if it is a single address; else LINK_NONE */
	bool extensions;             /* SOFTRNIC_EXTENSIONS=0: do not offer extensions to iWARP */
	/* SOFTRNIC_PEER_RFC7306=1: assume that a peer without consent supports RFC 7306 */
	bool peer_rfc7306;
	bool strict_persist; /* RPMA_STRICT_PERSIST */
	bool shm;            /* SOFTRNIC_SHM */
	/* SOFTRNIC_SHM_AFTER: number of messages after which a connection gets rings */
	uint64_t shm_after;
	/* SOFTRNIC_SHM_KIB: greatest size of one ring in bytes; a power of two */
	uint64_t shm_ring;
	/* SOFTRNIC_SHM_MAX_MIB: limit for all rings of the process, in bytes */
	uint64_t shm_max;
	/* SOFTRNIC_SHM_UIDS: users that are permitted besides the process's own user */
	uid_t shm_uids[CONFIG_UIDS_MAX];
	unsigned n_shm_uids;
	/* number that the kernel shows for users that have no number in this name space */
	uid_t overflow_uid;
	const char *trace; /* SOFTRNIC_TRACE, an absolute path; NULL: tracing is off */
	/* SOFTRNIC_TRACE_SNAPLEN: greatest traced length of a packet; 0: no limit */
	uint64_t trace_snaplen;
	/* SOFTRNIC_IDENTITY: true if the device looks like RoCE v2, false for iWARP */
	bool roce;
	/* SOFTRNIC_GIDS: list of addresses; NULL: the addresses of the interfaces */
	const char *gids;
	uint64_t trace_bytes; /* SOFTRNIC_TRACE_BYTES: limit of the trace file; 0: no limit */
};

const struct config *config_get(void);

#endif
