/* SPDX-License-Identifier: BSD-3-Clause */
/* mirror_impl.h -- makes the hosts of a mirrored set for one measurement. */
#ifndef BENCH_MIRROR_IMPL_H
#define BENCH_MIRROR_IMPL_H

#include <librpmirror.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/case.h"

#define MIRROR_SET       "bench"
#define MIRROR_HOSTS_MAX 8

struct mirror_hosts {
	const struct bench_case *c;
	unsigned count;   /* number of hosts; the first host is the initiator's */
	char folder[256]; /* folder of the copies, the register, sockets and logs */
	/* away: folder of the other hosts' copies, which is the folder of the set or one in
	 * tgt_where */
	char away[256];
	uint64_t size; /* size of the mirrored file */
	pid_t daemons[MIRROR_HOSTS_MAX];
	uint64_t writebacks;   /* sum over all lanes; valid after the lanes have ended */
	uint64_t shm_rx_bytes; /* sum over all lanes; valid after the lanes have ended */
	bool is_volatile;      /* the copies are in memory only */
};

/* Make a folder with the copies of a set, all of them in-sync, and start a rpmirrord for each. */
void mirror_hosts_start(struct mirror_hosts *h, const struct bench_case *c, unsigned count,
			uint64_t size);
/*
 * End the daemons, read their counters from their logs, and clean up. Call this when no process
 * maps the set.
 */
void mirror_hosts_stop(struct mirror_hosts *h);
/* Start one daemon. */
void mirror_host_start(struct mirror_hosts *h, unsigned i);
void mirror_host_kill(struct mirror_hosts *h, unsigned i);
/* Make later calls of librpmirror in this process use the daemon of host i. */
void mirror_host_enter(const struct mirror_hosts *h, unsigned i);

/* The following functions are in mirror_long.c: measurements that are more than calls in a loop. */
struct result;
struct samples;
void mirror_failover(struct mirror_hosts *h, struct result *result, struct samples *samples);
void mirror_switch_over(struct mirror_hosts *h, struct result *result, struct samples *samples);
void mirror_resync(struct mirror_hosts *h, struct result *result, struct samples *samples);

void mirror_must(int ret, const char *what);
struct rpmirror *mirror_map(unsigned flags, char **addr, uint64_t size);
struct rpmirror_state mirror_state(struct rpmirror *m);
/* Wait until all copies are in-sync. */
void mirror_await_all(struct rpmirror *m);
void mirror_unmap(struct rpmirror *m);

#endif
