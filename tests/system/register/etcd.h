/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * etcd.h -- real etcd processes for a test: one to three members on loopback addresses and ports of
 * their own. They are ended by their ids, even if the test dies.
 */
#ifndef SYSTEM_ETCD_H
#define SYSTEM_ETCD_H

#include <stdbool.h>
#include <sys/types.h>

#define CLUSTER_MAX 3

struct cluster_member {
	pid_t pid; /* 0: the member is not running */
	unsigned client_port, peer_port;
};

struct cluster {
	unsigned members;
	bool tls; /* the certificates are in FOLDER/ca.pem, server.pem, server.key */
	char address[20];
	char folder[256]; /* absolute; has the members' data, and etcdN.log */
	char uri[128];    /* for register_open(); with TLS append ?ca=... */
	struct cluster_member member[CLUSTER_MAX];
};

/* Returns false if etcd is not installed. */
bool cluster_is_possible(void);

/*
 * Start the members below the working folder. Returns when all members have a leader. Returns -1 if
 * they do not start (for instance, a port was taken meanwhile), after their output was printed.
 */
int cluster_start(struct cluster *c, unsigned members, bool tls);
/* Send SIGKILL to all members, and remove the folder. */
void cluster_stop(struct cluster *c);

/* With TLS: make another authority at ca.pem, and restart the members with certificates of that
 * authority. */
int cluster_change_authority(struct cluster *c);

/* Start a member (again), without waiting. */
int cluster_member_start(struct cluster *c, unsigned i);
/* Send SIGKILL, and reap the member. */
void cluster_member_kill(struct cluster *c, unsigned i);
void cluster_member_signal(struct cluster *c, unsigned i, int sig);

/* Wait until that many members answer and have a leader; false: not within a minute. */
bool cluster_await(const struct cluster *c, unsigned healthy);
/* The present leader; `members`: the leader is unknown. */
unsigned cluster_leader(const struct cluster *c);

/* Copy a stopped member's data aside; and restore them over its present data: a backup. */
int cluster_member_save(const struct cluster *c, unsigned i);
int cluster_member_restore(const struct cluster *c, unsigned i);

#endif
