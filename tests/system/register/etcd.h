/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * etcd.h -- real etcd processes for a test: one to three members on loopback addresses and ports of
 * their own, ended by their ids, also when the test dies.
 */
#ifndef SYSTEM_ETCD_H
#define SYSTEM_ETCD_H

#include <stdbool.h>
#include <sys/types.h>

#define CLUSTER_MAX 3

struct cluster_member {
	pid_t pid; /* 0: not running */
	unsigned client_port, peer_port;
};

struct cluster {
	unsigned members;
	bool tls; /* its certificates are in FOLDER/ca.pem, server.pem, server.key */
	char address[20];
	char folder[256]; /* absolute; what the members write, and etcdN.log */
	char uri[128];    /* for register_open(); with TLS to be followed by ?ca=... */
	struct cluster_member member[CLUSTER_MAX];
};

/* False: etcd is not installed. */
bool cluster_is_possible(void);

/* Below the working folder. Returns when all members know a leader; -1: they do not come up (a port
 * was taken meanwhile, and so on; what they say was printed). */
int cluster_start(struct cluster *c, unsigned members, bool tls);
/* SIGKILL all, and remove the folder. */
void cluster_stop(struct cluster *c);

/* With TLS: another authority, at ca.pem, and the members start again with certificates of it. */
int cluster_change_authority(struct cluster *c);

/* Start it (again), without waiting. */
int cluster_member_start(struct cluster *c, unsigned i);
/* SIGKILL, and reap. */
void cluster_member_kill(struct cluster *c, unsigned i);
void cluster_member_signal(struct cluster *c, unsigned i, int sig);

/* Wait until so many members answer and know a leader; false: not within a minute. */
bool cluster_await(const struct cluster *c, unsigned healthy);
/* Who leads now; members: nobody knows. */
unsigned cluster_leader(const struct cluster *c);

/* Copy a stopped member's data aside, and put it back in place of what is there: a backup. */
int cluster_member_save(const struct cluster *c, unsigned i);
int cluster_member_restore(const struct cluster *c, unsigned i);

#endif
