/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.h -- a mirror set of several "hosts" on this machine. Each host is a daemon with its own
 * port, socket, folder and copy; all use the same register file.
 *
 * The daemons get free ports, which stay reserved for them until hosts_stop(). A failure fails the
 * test (cmocka's fail_msg).
 */
#ifndef SYSTEM_MIRROR_HOSTS_H
#define SYSTEM_MIRROR_HOSTS_H

#include <stdbool.h>

#include "mirror/core/types.h"
#include "mirror/register/register.h"
#include "system/lib/proc.h"

#define HOSTS_MAX 8
#define HOSTS_SET "orders"

/* Number of sets that the cases of a program run at the same time (cases.h). */
#define CASES_OF_HOSTS 3

struct hosts_opts {
	unsigned count;
	uint64_t size;                /* size of the set's file; 0: 8 MiB */
	unsigned lease_ms;            /* 0 means 1000 */
	unsigned min_copies;          /* 0 means 1 */
	unsigned peer_timeout_ms;     /* 0 means 5000 */
	unsigned replica_timeout_ms;  /* 0 means 5000 */
	unsigned register_timeout_ms; /* 0 means 2000 */
	unsigned hot_slots;           /* hot slots in the metadata; 0: the default number */
	/* size of a file system that is made for each host's folder; 0: no file system is made */
	uint64_t disk;
	/* If not NULL: mounts a file system at the host's folder. */
	void (*mount)(unsigned host, const char *folder);
	enum mirror_lonely lonely;
	mirror_mask absent; /* members whose daemons are never started */
	/* via: the port at which other hosts reach this one; 0: the daemon's own port */
	uint16_t via[HOSTS_MAX];
	bool has_secret, automatic, local_error_continues;
	const char *register_uri; /* NULL: the register is a file in the hosts' folder */
	/* more: lines for the set's section in each configuration file, or NULL */
	const char *more;
};

struct host {
	struct proc daemon;
	char folder[256], conf[300], socket[300], data[300], meta[310], log[300];
	char port[8];
	int port_fd; /* a socket that keeps the port while the daemon is down, or 0 */
};

struct hosts {
	struct hosts_opts opts;
	char folder[200], register_uri[300], secret[300];
	struct host hosts[HOSTS_MAX];
	struct mirror_record first; /* the record with which the set was registered */
};

/* Start all daemons, and register the set with every copy in-sync. */
void hosts_start(struct hosts *h, const struct hosts_opts *opts);
void hosts_stop(struct hosts *h);
/* The hosts that the cases of a program use. Each case begins with the hosts that its initial state
 * describes (struct hosts_opts). The case's tear-down function can call hosts_teardown(). */
extern struct hosts hosts;
int hosts_setup(void **state);
int hosts_teardown(void **state);
#define HOSTS_OPTS(...) (&(struct hosts_opts){__VA_ARGS__})
/* A case with these hosts, and the tear-down function of the program. */
#define HOSTS_TEST(name, ...)                                                                      \
	cmocka_unit_test_prestate_setup_teardown(name, hosts_setup, teardown,                      \
						 HOSTS_OPTS(__VA_ARGS__))

/* Start one daemon again, on its port. For envs see proc_start(). */
void host_start(struct hosts *h, unsigned i, const char *const envs[]);
/* Like host_start(), but returns false if the daemon exits before it listens. */
bool host_try_start(struct hosts *h, unsigned i, const char *const envs[]);
/* Rewrite the daemon's configuration, and let the daemon read it. */
void host_reload(struct hosts *h, unsigned i);
void host_kill(struct hosts *h, unsigned i);
/* Wait until the daemon of the host logs a line with this text. Returns false if no such line is
 * logged within this time. */
bool host_wait_log(const struct hosts *h, unsigned i, const char *words, int timeout_ms);
/* Send SIGTERM to the daemon, and wait. Returns its wait status. */
int host_stop(struct hosts *h, unsigned i);

/* Begin the next epoch in the register, with the member of this slot as primary, without the
 * daemons. */
struct mirror_epoch hosts_promote(const struct hosts *h, unsigned slot);
/* Exclude the member of this slot in the register, without the daemons. */
void hosts_exclude(const struct hosts *h, unsigned slot);
/* Read the register's present record, without the daemons. */
void hosts_read(const struct hosts *h, struct register_entry *now);

#endif
