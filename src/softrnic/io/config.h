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
	enum config_ack ack;       /* SOFTRNIC_ACK: a completion means that the peer has the data */
	uint64_t spin_ns;          /* SOFTRNIC_SPIN_US */
	unsigned threads;          /* SOFTRNIC_THREADS: limit of progress threads */
	uint64_t refused_ns;       /* SOFTRNIC_REFUSED_MS: repeats a refused dial this long */
	uint64_t connect_ns;       /* SOFTRNIC_CONNECT_MS: dial and start-up */
	uint64_t request_ns;       /* SOFTRNIC_REQUEST_MS: inbound request */
	uint64_t drain_ns;         /* SOFTRNIC_DRAIN_MS: disconnect and destroy */
	uint64_t liveness_ns;      /* SOFTRNIC_LIVENESS_MS: greatest silence; CLOCK_NEVER */
	uint64_t violations_per_s; /* SOFTRNIC_VIOLATIONS_PER_S: of one address; 0: no limit */
	uint64_t retry_ns;    /* SOFTRNIC_RETRY_MS: minimum of a plain queue pair's retry time */
	unsigned qp_ports[2]; /* SOFTRNIC_QP_PORTS=lo-hi; 0: the kernel chooses */
	bool qp_any_source;   /* SOFTRNIC_QP_ANY_SOURCE */
	bool strict_psn;      /* SOFTRNIC_STRICT_PSN */
	struct link_addr qp_address; /* SOFTRNIC_GIDS, if that is one address; else LINK_NONE */
	bool extensions;             /* SOFTRNIC_EXTENSIONS=0: plain iWARP, no offers */
	bool peer_rfc7306;   /* SOFTRNIC_PEER_RFC7306=1: peers without consent know RFC 7306 */
	bool strict_persist; /* RPMA_STRICT_PERSIST */
	bool shm;            /* SOFTRNIC_SHM */
	uint64_t shm_after;  /* SOFTRNIC_SHM_AFTER: messages after which a connection gets rings */
	uint64_t shm_ring;   /* SOFTRNIC_SHM_KIB: limit of one ring in bytes; a power of two */
	uint64_t shm_max;    /* SOFTRNIC_SHM_MAX_MIB: limit of all rings of the process, in bytes */
	uid_t shm_uids[CONFIG_UIDS_MAX]; /* SOFTRNIC_SHM_UIDS: users permitted besides our own */
	unsigned n_shm_uids;
	/* user number that the kernel shows for users without a number in this name space */
	uid_t overflow_uid;
	const char *trace;      /* SOFTRNIC_TRACE, an absolute path; NULL: tracing is off */
	uint64_t trace_snaplen; /* SOFTRNIC_TRACE_SNAPLEN: limit of each packet; 0: no limit */
	bool roce;              /* SOFTRNIC_IDENTITY: the device looks like RoCE v2, not iWARP */
	const char *gids;       /* SOFTRNIC_GIDS: addresses; NULL: those of the interfaces */
	uint64_t trace_bytes;   /* SOFTRNIC_TRACE_BYTES: limit of all packets; 0: no limit */
};

const struct config *config_get(void);

#endif
