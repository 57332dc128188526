/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd.h -- real etcd processes for a test: one to three members, with their own loopback addresses
 * and ports. They exit when the test exits, even if the test is killed. */
#ifndef SYSTEM_ETCD_H
#define SYSTEM_ETCD_H

#include <stdbool.h>
#include <sys/types.h>

#define CLUSTER_MAX 3

struct cluster_member {
	pid_t pid; /* 0: the member does not run */
	unsigned client_port, peer_port;
};

struct cluster {
	unsigned members;
	bool tls; /* use TLS; the certificates are FOLDER/ca.pem, server.pem and server.key */
	char address[20];
	/* absolute path of the folder with the members' data and logs (etcdN.log) */
	char folder[256];
	char uri[128]; /* argument for register_open(); with TLS the caller appends "?ca=..." */
	struct cluster_member member[CLUSTER_MAX];
};

/* Returns false if etcd is not installed. */
bool cluster_is_possible(void);

/* Start the members, below the working directory, and wait until all have a leader. If they do not
 * start, for instance because a port was taken meanwhile, prints their output and returns -1. */
int cluster_start(struct cluster *c, unsigned members, bool tls);
/* Send SIGKILL to all members, and remove the folder. */
void cluster_stop(struct cluster *c);

/* With TLS: make another authority at ca.pem, and restart the members with certificates of this
 * authority. */
int cluster_change_authority(struct cluster *c);

/* Start or restart a member, without waiting until it serves. */
int cluster_member_start(struct cluster *c, unsigned i);
/* Send SIGKILL to the member, and wait for its end. */
void cluster_member_kill(struct cluster *c, unsigned i);
void cluster_member_signal(struct cluster *c, unsigned i, int sig);

/* Wait until this many members answer and have a leader. Returns false after a minute. */
bool cluster_await(const struct cluster *c, unsigned healthy);
/* Returns the present leader, or `members` if it is unknown. */
unsigned cluster_leader(const struct cluster *c);

/* cluster_member_save() copies the data of a stopped member; cluster_member_restore() replaces its
 * present data by this copy, like an operator who restores a backup. */
int cluster_member_save(const struct cluster *c, unsigned i);
int cluster_member_restore(const struct cluster *c, unsigned i);

#endif
