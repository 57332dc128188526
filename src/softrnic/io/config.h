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
	enum config_crc crc;       /* SOFTRNIC_CRC */
	enum config_ack ack;       /* SOFTRNIC_ACK: completions mean "at the peer" */
	uint64_t spin_ns;          /* SOFTRNIC_SPIN_US */
	unsigned threads;          /* SOFTRNIC_THREADS: progress threads at most */
	uint64_t refused_ns;       /* SOFTRNIC_REFUSED_MS: a refused dial is repeated for so long */
	uint64_t connect_ns;       /* SOFTRNIC_CONNECT_MS: dial and start-up */
	uint64_t request_ns;       /* SOFTRNIC_REQUEST_MS: inbound request */
	uint64_t drain_ns;         /* SOFTRNIC_DRAIN_MS: disconnect and destroy */
	uint64_t liveness_ns;      /* SOFTRNIC_LIVENESS_MS: a silent peer is lost; CLOCK_NEVER */
	uint64_t violations_per_s; /* SOFTRNIC_VIOLATIONS_PER_S: of one address; 0: any number */
	uint64_t retry_ns;    /* SOFTRNIC_RETRY_MS: least time of a plain queue pair's retries */
	unsigned qp_ports[2]; /* SOFTRNIC_QP_PORTS=lo-hi; 0: the kernel chooses */
	bool qp_any_source;   /* SOFTRNIC_QP_ANY_SOURCE */
	bool strict_psn;      /* SOFTRNIC_STRICT_PSN */
	struct link_addr qp_address; /* SOFTRNIC_GIDS, if it is one address; else LINK_NONE */
	bool extensions;             /* SOFTRNIC_EXTENSIONS=0: plain iWARP, nothing offered */
	bool peer_rfc7306;   /* SOFTRNIC_PEER_RFC7306=1: peers without consent know RFC 7306 */
	bool strict_persist; /* RPMA_STRICT_PERSIST */
	bool shm;            /* SOFTRNIC_SHM */
	uint64_t shm_after;  /* SOFTRNIC_SHM_AFTER: messages after which a connection gets rings */
	uint64_t shm_ring;   /* SOFTRNIC_SHM_KIB: bytes of one ring at most; a power of two */
	uint64_t shm_max;    /* SOFTRNIC_SHM_MAX_MIB: bytes of all rings of the process */
	uid_t shm_uids[CONFIG_UIDS_MAX]; /* SOFTRNIC_SHM_UIDS: permitted beside our own */
	unsigned n_shm_uids;
	/* number that the kernel shows for a user without a number in this name space */
	uid_t overflow_uid;
	const char *trace;      /* SOFTRNIC_TRACE, an absolute path; NULL: nothing is traced */
	uint64_t trace_snaplen; /* SOFTRNIC_TRACE_SNAPLEN: of each packet; 0: all of it */
	bool roce;              /* SOFTRNIC_IDENTITY: the device looks like RoCE v2, not iWARP */
	const char *gids;       /* SOFTRNIC_GIDS: its addresses; NULL: those of the interfaces */
	uint64_t trace_bytes;   /* SOFTRNIC_TRACE_BYTES: of all packets; 0: any number */
};

const struct config *config_get(void);

#endif
