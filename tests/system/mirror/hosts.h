/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.h -- a mirror set of several "hosts" on this machine. Each is a daemon with its own port,
 * socket, folder and copy; all have one register file.
 *
 * The daemons have free ports, which stay theirs until hosts_stop(). A failure fails the test
 * (cmocka's fail_msg).
 */
#ifndef SYSTEM_MIRROR_HOSTS_H
#define SYSTEM_MIRROR_HOSTS_H

#include <stdbool.h>

#include "mirror/core/types.h"
#include "mirror/register/register.h"
#include "system/lib/proc.h"

#define HOSTS_MAX 8
#define HOSTS_SET "orders"

/* Number of sets that a program's cases run at the same time (cases.h). */
#define CASES_OF_HOSTS 3

struct hosts_opts {
	unsigned count;
	uint64_t size;                /* size of the set's file; 0: 8 MiB */
	unsigned lease_ms;            /* 0: 1000 */
	unsigned min_copies;          /* 0: 1 */
	unsigned peer_timeout_ms;     /* 0: 5000 */
	unsigned replica_timeout_ms;  /* 0: 5000 */
	unsigned register_timeout_ms; /* 0: 2000 */
	unsigned hot_slots;           /* in the metadata; 0: the default */
	/* size of a file system for each host's folder; 0: no file system */
	uint64_t disk;
	/* Mounts another file system at that host's folder; may be NULL. */
	void (*mount)(unsigned host, const char *folder);
	enum mirror_lonely lonely;
	mirror_mask absent; /* members whose daemons are never started */
	/* the port at which other hosts reach this one; 0: the daemon's port */
	uint16_t via[HOSTS_MAX];
	bool has_secret, automatic, local_error_continues;
	const char *register_uri; /* NULL: a file in the hosts' folder */
	/* lines for the section of the set in each configuration, or NULL */
	const char *more;
};

struct host {
	struct proc daemon;
	char folder[256], conf[300], socket[300], data[300], meta[310], log[300];
	char port[8];
	int port_fd; /* 0, or a socket that keeps the port while the daemon is down */
};

struct hosts {
	struct hosts_opts opts;
	char folder[200], register_uri[300], secret[300];
	struct host hosts[HOSTS_MAX];
	struct mirror_record first; /* the record at the registration */
};

/* Start all daemons, and register the set with every copy in-sync. */
void hosts_start(struct hosts *h, const struct hosts_opts *opts);
void hosts_stop(struct hosts *h);
/*
 * The hosts of a program's cases: each case begins with the hosts that its initial state describes
 * (struct hosts_opts). The second may be a part of a case's own teardown.
 */
extern struct hosts hosts;
int hosts_setup(void **state);
int hosts_teardown(void **state);
#define HOSTS_OPTS(...) (&(struct hosts_opts){__VA_ARGS__})
/* A case with these hosts, and the program's teardown(). */
#define HOSTS_TEST(name, ...)                                                                      \
	cmocka_unit_test_prestate_setup_teardown(name, hosts_setup, teardown,                      \
						 HOSTS_OPTS(__VA_ARGS__))

/* Start one daemon again, at its port. envs as for proc_start(). */
void host_start(struct hosts *h, unsigned i, const char *const envs[]);
/* False: the daemon ended before it listened. */
bool host_try_start(struct hosts *h, unsigned i, const char *const envs[]);
/* Rewrite the daemon's configuration, and make the daemon read it. */
void host_reload(struct hosts *h, unsigned i);
void host_kill(struct hosts *h, unsigned i);
/* Wait until the host's daemon logs a line with this text; false: no such line within that time. */
bool host_wait_log(const struct hosts *h, unsigned i, const char *words, int timeout_ms);
/* Send SIGTERM to the daemon, and wait. Returns its wait status. */
int host_stop(struct hosts *h, unsigned i);

/* The register's next epoch, without the daemons; the member in that slot is its primary. */
struct mirror_epoch hosts_promote(const struct hosts *h, unsigned slot);
/* Exclude that member in the register, without the daemons. */
void hosts_exclude(const struct hosts *h, unsigned slot);
/* Read the present record of the register, without the daemons. */
void hosts_read(const struct hosts *h, struct register_entry *now);

#endif
