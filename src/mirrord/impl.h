/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl.h -- the daemon's objects, its loop and its sets. The other headers of this folder declare
 * the other functions.
 *
 * One thread runs the loop and owns all objects; only calls of a register run in other threads
 * (agent.h).
 */
#ifndef MIRRORD_IMPL_H
#define MIRRORD_IMPL_H

#include <librpma.h>
#include <sys/types.h>

#include "base/clock.h"
#include "service/mapfile.h"
#include "mirror/core/candidate.h"
#include "mirror/core/growth.h"
#include "mirror/core/member.h"
#include "mirror/core/meta.h"
#include "mirror/core/promotion.h"
#include "mirror/wire/message.h"
#include "mirror/wire/packet.h"
#include "mirrord/agent.h"
#include "mirrord/conf.h"
#include "mirrord/neighbour.h"
#include "service/arrival.h"
#include "service/secret.h"

#define DAEMON_PENDING_MS   5000 /* time limit of the steps before a connection is granted */
#define DAEMON_REFUSED_MAX  64
#define DAEMON_CLIENTS_MAX  256 /* largest number of clients of the UNIX socket */
#define DAEMON_CLIENTS_USER 64  /* largest number of clients of one user, except root */
/* time between two reports of the process that maps the set; after a missing report the alive key
 * is not renewed */
#define DAEMON_HEARTBEAT_MS 1000
/* a status of the primary that is older than this is out of date */
#define DAEMON_SILENT_MS 3000

#define EVENT_WHAT_END 16 /* number of kinds of events (event.c) */

struct daemon;
struct set;
struct json_t; /* jansson's type json_t */

/* A descriptor that the loop watches. */
struct watch {
	int fd; /* -1: no descriptor */
	void (*on_ready)(struct watch *w);
	void *owner;
};

/*
 * A program that the configuration names. The code that starts the program sets all members from
 * `daemon` on.
 */
struct program {
	/* number of the process and of its process group; 0: the program does not run */
	pid_t pid;
	struct watch on_end; /* watches the program's pidfd */
	/* pipe from which the reason is read if the program cannot be executed */
	int cause_fd;
	uint64_t deadline_ms;
	bool is_late; /* the program has passed its time limit and was killed */
	pid_t stuck;  /* an earlier process that was killed and has not ended; 0: none */
	struct daemon *daemon;
	bool is_probe; /* the run only checks that the program can be executed */
	unsigned limit_ms;
	/* Called when the program has exited. failure NULL: the exit code was 0. */
	void (*on_done)(struct program *p, const char *failure);
	void *owner;
};

/* A connection from a primary, a candidate or another daemon. */
struct inbound {
	struct inbound *next;
	struct daemon *daemon;
	struct set *set; /* NULL only for a refused connection */
	struct arrival arrival;
	struct greeting greeting;
	struct greeting_reply reply;
	unsigned version; /* version of the messages */
	char addr[RPMA_ADDR_MAX];
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct watch on_event, on_message;
	bool counts; /* the member's rules (core/member.h) count the connection as open */
	struct rpma_mr_local *data_mr, *ring_mr, *message_mr;
	uint32_t out_busy; /* mask of the slots of messages.out that are in use */
	struct inbound_messages {
		uint8_t in[MESSAGE_OUTSTANDING][MESSAGE_SIZE];
		uint8_t out[2 * MESSAGE_OUTSTANDING][MESSAGE_SIZE];
	} messages;
};

/* A process that is connected to the UNIX socket. */
struct client {
	struct client *next;
	struct daemon *daemon;
	uint64_t serial;
	pid_t pid;
	uid_t uid;
	struct watch on_packet;
	unsigned version; /* version of the packets; 0: no MAP has come yet */
	struct set *set;  /* the set that the client maps or waits for */
	bool is_waiting;
	bool is_reader;  /* the client maps the set read-only */
	bool is_dead;    /* the loop will close the client, because it did not read */
	uint32_t map_id; /* number of the client's MAP packet that waits */
	uint8_t map_flags;
	uint64_t image; /* image in the client's MAP packet */
	/* numbers of the reads whose results are new enough for the client's request */
	uint32_t wants_answer, wants_alive;
	/* The event that a tool's client waits for. */
	enum client_wait {
		CLIENT_IDLE,
		CLIENT_WAITS_ORDER,
		CLIENT_WAITS_SWAP,
		CLIENT_WAITS_PRIMARY,
		CLIENT_WAITS_GROWTH
	} wait;
	struct set *wait_set;
	/* the answer to the client's order will have the result of the comparison */
	bool wants_verified;
	/* with an order to fence: the member to fence, for the answer; with another order: 0 */
	mirror_mask fences;
	struct request_promotion {
		/* if its is_over is set, the client waits only for the end of swaps that were
		 * begun */
		struct promotion_order order;
		bool has_run;     /* on-promote was started for this order */
		bool is_doubtful; /* a swap of this order got no answer */
	} promotion;
	uint64_t wait_until_ms;
	bool gets_events;
};

#define HOLDER_AUXV 512

/* The process that maps a set on this host. */
struct holder {
	pid_t pid;         /* number of the process; 0: no process maps the set */
	uint64_t known_ms; /* time at which this daemon first noticed the process */
	/* watches the process's pidfd; without a descriptor: the process cannot be watched yet */
	struct watch on_end;
	struct client *client; /* NULL: the process has lost its connection */
	/* newest version of packets that the process's library supports; 0: unknown */
	unsigned version;
	bool is_confirmed; /* the process got the answer to its MAP */
	struct holder_program {
		size_t len; /* 0: unknown */
		uint8_t auxv[HOLDER_AUXV];
		/* the program that the process ran when it was last connected */
	} program;
	bool is_forced; /* an order to promote by force permitted the map */
	/* the epoch in which the process is primary; zero: it is not primary */
	struct mirror_epoch epoch;
	/* number of the later epoch of which the process was notified */
	uint64_t fenced_by;
	uint64_t heartbeat_ms;
	struct packet_report report; /* the last report of the process */
	uint64_t report_ms;          /* time of the last report; 0: none */
	bool is_silent;              /* an event has reported that the process is silent */
};

/* The program that proves that a former primary's host is off. */
struct fence_agent {
	struct program program, probe;
	char path[MIRROR_PATH_MAX + 1], member[MIRROR_NAME_MAX + 1];
	struct mirror_epoch epoch; /* epoch of the former primary */
	/* epoch of a primary whose host is off, as the agent has proved */
	struct mirror_epoch proof;
	bool is_cancelled;
	unsigned failures; /* number of consecutive failures in this epoch */
	uint64_t retry_ms; /* time before which the program is not run again */
	char why[128];     /* reason of the last failure */
};

/* The clearing of unreadable blocks of a copy (clear.c). */
struct clearing {
	bool is_busy; /* if true, no other code may write to the copy */
	bool is_done; /* the request below was answered */
	struct mirror_epoch epoch;
	struct mirror_range range;
	struct message_cleared result;
};

/* The check that the files still have their names (place.c). */
struct placing {
	struct place_file {
		dev_t dev;
		ino_t ino;
	} files[2];      /* the files that were opened */
	uint32_t opened; /* number of times that the copy was opened */
	uint64_t next_ms, asked_ms;
	struct place_job *job; /* the check that the worker does now; NULL: none */
	bool is_late;          /* the file system does not answer, and an event has reported this */
};

struct set {
	struct daemon *daemon;
	const struct conf_set *conf;
	bool is_open; /* files and metadata are open */
	uint64_t open_retry_ms;
	struct error why_not; /* reason why the set is not open, or cannot be used */
	struct mapfile data, meta_file;
	/* a descriptor of medium.c that gets errors of write-backs; -1: none */
	int sentinel;
	/* a process that mapped the copy may have had a failed write-back that was not reported */
	bool may_have_missed;
	struct meta meta;
	struct member member;
	bool has_secret;
	bool is_secret_bad; /* the set is not open, because its secret file cannot be used */
	struct secret secret;
	struct rpma_mr_local
		/* a mapping of the data file: while it exists, the kernel remembers a failed
		 * write-back */
		*anchor;
	struct agent *asks, *alive, *watcher;
	struct agent *worker; /* thread for calls that may last long; made when first needed */
	struct clearing clearing;
	struct neighbours *neighbours;
	bool is_asking, ask_again, is_watching, is_reading_alive, is_renewing;
	/* time at which the current read of the record began */
	uint64_t asked_ms;
	/* number of reads of the record that were begun, and that were answered */
	uint32_t asked, answered;
	uint32_t alive_asked, alive_answered; /* the same numbers for reads of the alive key */
	uint64_t epoch_ns;                    /* time at which the epoch became known */
	/* time at which the copy's rules got the last record or view */
	uint64_t shown_ns;
	struct mirror_epoch cleared; /* the epoch whose alive key this daemon has cleared */
	/* The register's content at the last read. */
	struct register_entry entry;
	struct register_health register_health; /* without members: not known yet */
	/* time at which to count the register's members again */
	uint64_t count_ms;
	bool has_entry, register_answers, is_split;
	struct error read_why; /* reason of the failure if the last read failed */
	/* failure of the last renewal of this host's alive key, if the register refused it */
	struct error write_why;
	enum member_reason split_reason;
	char split_why[256];
	struct candidate candidate;
	struct register_alive seen; /* the alive key by which the candidate decides */
	/* time at which `seen` was read; 0: the key was not read in this epoch */
	uint64_t seen_ms;
	/* the key exists, but its owner no longer renews it */
	bool lease_is_over;
	/* the key, an agent or an operator permits a promotion */
	bool may_promote;
	struct register_alive renewed; /* result of the last renewal */
	/* times of the next renewal, read of the record, and read of the alive key */
	uint64_t renew_ms, look_ms, alive_ms;
	/* epoch of a primary that is off, confirmed by an operator */
	struct mirror_epoch word;
	struct fence_agent fence;
	struct set_promotion {
		struct program program; /* the program on-promote */
		char path[MIRROR_PATH_MAX + 1];
		uint64_t next_ms; /* time from which the program may run again */
		char why[128];    /* reason of the program's last failure; "": no failure */
		/* number of swaps that an order permitted and that have no result yet */
		unsigned swaps;
	} promotion;
	uint64_t fresh_ns; /* time at which the copy had all acknowledged data; 0: unknown */
	uint64_t scrub_retry_ms;
	struct placing placing;
	bool has_meta_fault;  /* a page of the metadata could not be reached */
	char failed_why[512]; /* reason why the files cannot be used; "": none */
	bool is_scrubbing;
	struct holder holder;
	struct set_growth {
		struct growth copy;
		struct growth_order order;
		uint64_t client; /* number of the client that gave the order */
	} growth;
	/* for findings.c: the ids that the copies in the slots had */
	uint64_t known_ids[MIRROR_MEMBERS_MAX];
	struct set_reported {
		bool is_set;
		struct mirror_view view;
		enum mirror_health health;
		enum mirror_copy copy;
	} reported;
	/* For event.c: the time for which the set was blocked since this daemon started. */
	struct set_blocked {
		/* begin of the present blocked time; 0: the set is not blocked */
		uint64_t since_ms;
		uint64_t total_ms; /* total of earlier blocked times */
	} blocked;
	uint64_t event_counts[EVENT_WHAT_END];
};

struct daemon {
	struct conf *conf;
	const char *conf_path;
	void (*set_log)(enum log_level level);
	struct mirror_uuid boot;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct address listen;
	int epoll_fd;
	struct watch on_request, on_client, on_signal, on_answer;
	struct agent_answers *answers;
	struct set *sets;
	struct inbound *links;    /* the newest first */
	struct arrivals arrivals; /* the states of the links */
	struct client *clients;
	unsigned client_count;
	uint64_t next_serial;
	unsigned reported_open; /* number of open sets in the last report to the service manager */
	bool is_ready;          /* the last report stated that requests are served */
	bool is_ending;
};

/* loop.c: watches descriptors. */
int loop_watch(struct daemon *d, struct watch *w, int fd, void (*on_ready)(struct watch *w),
	       void *owner);
void loop_unwatch(struct daemon *d, struct watch *w);
/* Run until a signal ends the loop. */
void loop_run(struct daemon *d);

/* set.c: sets, and their periodic work. */
int set_init(struct set *s, struct daemon *d, const struct conf_set *conf, struct error *err);
void set_fini(struct set *s);
/* Make a thread for the set's slow calls, such as those of its register. Returns 0 or an error kind
 * of error.h. */
int set_new_agent(struct set *s, struct agent **agent, struct error *err);
struct set *set_find(struct daemon *d, const char *name);
/*
 * Returns the slot of this host's member, from the metadata or else by the configured name.
 * MIRROR_NO_SLOT: this host has no member.
 */
uint8_t set_own_slot(const struct set *s);
struct set *set_find_uuid(struct daemon *d, const struct mirror_uuid *uuid);
/* Call this after the configuration was read: plans which daemons to ask for their status. */
void set_plan_neighbours(struct set *s);
/* Try to open the set, unless it is open. */
void set_try_open(struct set *s, uint64_t now_ms);
/* Returns the milliseconds until the next call. */
int set_tick(struct set *s, uint64_t now_ms);
bool set_has_waiting(const struct set *s);
/* Returns the last report of the process that maps the set. NULL: there is no report, or it is too
 * old. */
const struct packet_report *set_report(const struct set *s);
/* Returns true if a process maps the set but has not reported lately. */
bool set_is_silent(const struct set *s);
void set_fill_status(struct set *s, struct message_status *status);

/* reg.c: reads and writes the register's record and the alive key. */
void reg_ask(struct set *s); /* starts to read the record; afterwards reg.c calls map_retry() */
void reg_tick(struct set *s, uint64_t now_ms);
void reg_ask_alive(struct set *s);
/*
 * Returns the reason why the register refuses this daemon's requests. NULL: it does not refuse
 * them, or does not answer.
 */
const char *reg_refusal(const struct set *s);
/* Clear the alive key, because the primary of that epoch has ended on this host. */
void reg_clear_alive(struct set *s, struct mirror_epoch epoch);
/* Handle the answer to a read that was sent at sent_ns. */
void reg_on_entry(struct set *s, const struct register_entry *entry, uint64_t sent_ns);

/* reload.c: handles SIGHUP. */
void reload(struct daemon *d);

#endif
