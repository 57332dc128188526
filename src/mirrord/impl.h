/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl.h -- the daemon's objects, its loop and its sets. The other headers of this folder declare
 * the rest.
 *
 * One thread runs the loop and owns all of this; only calls of a register run in other threads
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
#define DAEMON_CLIENTS_MAX  256 /* clients of the UNIX socket, */
#define DAEMON_CLIENTS_USER 64  /* and clients of one user, except root */
/* time between a process's reports; without one the alive key is not renewed */
#define DAEMON_HEARTBEAT_MS 1000
/* a status of the primary that is older than this is out of date */
#define DAEMON_SILENT_MS 3000

#define EVENT_WHAT_END 16 /* kinds of events (event.c) */

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
 * A program that the configuration names. The code that starts it fills all members from `daemon`
 * on.
 */
struct program {
	pid_t pid;           /* process and process group; 0: it does not run */
	struct watch on_end; /* its pidfd */
	int cause_fd;        /* pipe with the reason why it cannot be run */
	uint64_t deadline_ms;
	bool is_late; /* the program has passed its time limit and was killed */
	pid_t stuck;  /* an earlier process that was killed and does not end; 0: none */
	struct daemon *daemon;
	bool is_probe; /* only a check whether it can be run */
	unsigned limit_ms;
	/* failure NULL: the program ended with exit code 0. */
	void (*on_done)(struct program *p, const char *failure);
	void *owner;
};

/* A connection of a primary, a candidate or another daemon. */
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
	bool counts; /* member.h counts the connection as open */
	struct rpma_mr_local *data_mr, *ring_mr, *message_mr;
	uint32_t out_busy; /* mask of the slots of messages.out in use */
	struct inbound_messages {
		uint8_t in[MESSAGE_OUTSTANDING][MESSAGE_SIZE];
		uint8_t out[2 * MESSAGE_OUTSTANDING][MESSAGE_SIZE];
	} messages;
};

/* A process at the UNIX socket. */
struct client {
	struct client *next;
	struct daemon *daemon;
	uint64_t serial;
	pid_t pid;
	uid_t uid;
	struct watch on_packet;
	unsigned version; /* version of the packets; 0: no MAP has come yet */
	struct set *set;  /* the set that it maps or waits for */
	bool is_waiting;
	bool is_reader;  /* the client maps the set read-only */
	bool is_dead;    /* the client did not read; the loop will close it */
	uint32_t map_id; /* number of the MAP that waits */
	uint8_t map_flags;
	uint64_t image; /* image in its MAP */
	/* numbers of the reads that are new enough for its request */
	uint32_t wants_answer, wants_alive;
	/* A tool's client: the event that it waits for. */
	enum client_wait {
		CLIENT_IDLE,
		CLIENT_WAITS_ORDER,
		CLIENT_WAITS_SWAP,
		CLIENT_WAITS_PRIMARY,
		CLIENT_WAITS_GROWTH
	} wait;
	struct set *wait_set;
	bool wants_verified; /* the answer to its order gets the result of the comparison */
	/* with an order to fence: the member, for the answer; 0: another order */
	mirror_mask fences;
	struct request_promotion {
		/* is_over: the client waits only for the end of swaps under way */
		struct promotion_order order;
		bool has_run;     /* on-promote was started for this order */
		bool is_doubtful; /* one of its swaps was not answered */
	} promotion;
	uint64_t wait_until_ms;
	bool gets_events;
};

#define HOLDER_AUXV 512

/* The process that maps a set on this host. */
struct holder {
	pid_t pid;             /* 0: no process */
	uint64_t known_ms;     /* time at which this daemon learned of it */
	struct watch on_end;   /* its pidfd; none: it cannot be watched yet */
	struct client *client; /* NULL: the process has lost its connection */
	unsigned version;      /* newest packet version of its library; 0: not known */
	bool is_confirmed;     /* the process got its answer */
	struct holder_program {
		size_t len; /* 0: not known */
		uint8_t auxv[HOLDER_AUXV];
		/* the program that the process ran when it was last connected */
	} program;
	bool is_forced;            /* an order to promote by force let it in */
	struct mirror_epoch epoch; /* the epoch that it is primary of, or 0 */
	/* number of the following epoch, of which the process was notified */
	uint64_t fenced_by;
	uint64_t heartbeat_ms;
	struct packet_report report; /* the last report */
	uint64_t report_ms;          /* time of the last report; 0: none */
	bool is_silent;              /* an event has reported the silence */
};

/* The program that proves that a former primary's host is off. */
struct fence_agent {
	struct program program, probe;
	char path[MIRROR_PATH_MAX + 1], member[MIRROR_NAME_MAX + 1];
	struct mirror_epoch epoch; /* epoch of that primary */
	struct mirror_epoch proof; /* epoch of a primary that is off, by the agent's proof */
	bool is_cancelled;
	unsigned failures; /* consecutive failures in this epoch, */
	uint64_t retry_ms; /* time before which it is not run again, */
	char why[128];     /* and the reason of the last failure */
};

/* Unreadable blocks of a copy are overwritten (clear.c). */
struct clearing {
	bool is_busy; /* while true, nothing else writes to the copy */
	bool is_done; /* the request below has its answer */
	struct mirror_epoch epoch;
	struct mirror_range range;
	struct message_cleared result;
};

/* Are the files at their places (place.c)? */
struct placing {
	struct place_file {
		dev_t dev;
		ino_t ino;
	} files[2];      /* the files that were opened */
	uint32_t opened; /* number of times that the copy was opened */
	uint64_t next_ms, asked_ms;
	struct place_job *job; /* job of the worker; NULL: none */
	bool is_late;          /* the file system does not answer, and an event reported it */
};

struct set {
	struct daemon *daemon;
	const struct conf_set *conf;
	bool is_open; /* files and metadata are open */
	uint64_t open_retry_ms;
	struct error why_not; /* reason why it is not open, or cannot be used */
	struct mapfile data, meta_file;
	int sentinel;         /* descriptor of medium.c; -1: none */
	bool may_have_missed; /* a failed write-back of a process that mapped the copy before */
	struct meta meta;
	struct member member;
	bool has_secret;
	struct secret secret;
	struct rpma_mr_local
		/* as long as a mapping exists, the kernel remembers the failure of a write-back */
		*anchor;
	struct agent *asks, *alive, *watcher;
	struct agent *worker; /* thread for calls that may last long; made when first needed */
	struct clearing clearing;
	struct neighbours *neighbours;
	bool is_asking, ask_again, is_watching, is_reading_alive, is_renewing;
	uint64_t asked_ms;                    /* begin of the read that is under way */
	uint32_t asked, answered;             /* numbers of reads of the record, */
	uint32_t alive_asked, alive_answered; /* and of reads of the alive key */
	uint64_t epoch_ns;                    /* time at which the epoch became known */
	/* time of the last record or view that the copy's rules saw */
	uint64_t shown_ns;
	struct mirror_epoch cleared; /* the epoch whose alive key was cleared here */
	/* The register's content at the last read. */
	struct register_entry entry;
	struct register_health register_health; /* no members: not known yet */
	uint64_t count_ms;                      /* time at which to count its members again */
	bool has_entry, register_answers, is_split;
	struct error read_why; /* reason if the last read failed */
	/* failure of the last renewal of this host's alive key, if the register refused it */
	struct error write_why;
	enum member_reason split_reason;
	char split_why[256];
	struct candidate candidate;
	struct register_alive seen; /* the alive key by which the candidate judges, */
	/* and the time of its read; 0: not read in this epoch */
	uint64_t seen_ms;
	bool lease_is_over;                   /* the key exists and is not renewed any more */
	bool may_promote;                     /* the key, an agent or an operator permits it */
	struct register_alive renewed;        /* result of the last renewal */
	uint64_t renew_ms, look_ms, alive_ms; /* time of the next renewal, look and read */
	/* epoch of a primary that is off, confirmed by an operator */
	struct mirror_epoch word;
	struct fence_agent fence;
	struct set_promotion {
		struct program program; /* the program on-promote */
		char path[MIRROR_PATH_MAX + 1];
		uint64_t next_ms; /* time from which it may run again */
		char why[128];    /* reason of its last failure; "": no failure */
		unsigned swaps;   /* swaps that an order permitted and that have no result yet */
	} promotion;
	uint64_t fresh_ns; /* time at which the copy had all that was acknowledged; 0: not known */
	uint64_t scrub_retry_ms;
	struct placing placing;
	bool has_meta_fault;  /* a page of the metadata could not be reached */
	char failed_why[512]; /* reason why the files cannot be used; "": none */
	bool is_scrubbing;
	struct holder holder;
	struct set_growth {
		struct growth copy;
		struct growth_order order;
		uint64_t client; /* client that gave the order */
	} growth;
	/* for findings.c: ids of the copies in these slots */
	uint64_t known_ids[MIRROR_MEMBERS_MAX];
	struct set_reported {
		bool is_set;
		struct mirror_view view;
		enum mirror_health health;
		enum mirror_copy copy;
	} reported;
	/* Since this daemon started: the time for which the set was blocked (event.c). */
	struct set_blocked {
		uint64_t since_ms; /* 0: it is not blocked */
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
	struct inbound *links;    /* newest first */
	struct arrivals arrivals; /* of the links below */
	struct client *clients;
	unsigned client_count;
	uint64_t next_serial;
	unsigned reported_open; /* last report to the service manager: number of open sets, */
	bool is_ready;          /* and whether requests are served */
	bool is_ending;
};

/* loop.c: descriptors. */
int loop_watch(struct daemon *d, struct watch *w, int fd, void (*on_ready)(struct watch *w),
	       void *owner);
void loop_unwatch(struct daemon *d, struct watch *w);
/* Run until a signal ends it. */
void loop_run(struct daemon *d);

/* set.c: sets, and their periodic work. */
int set_init(struct set *s, struct daemon *d, const struct conf_set *conf, struct error *err);
void set_fini(struct set *s);
/* Make a thread for the set's slow calls, such as those of its register. Kinds of error.h. */
int set_new_agent(struct set *s, struct agent **agent, struct error *err);
struct set *set_find(struct daemon *d, const char *name);
/*
 * Slot of this host's member; without the metadata, by the configured name. MIRROR_NO_SLOT: it is
 * not a member.
 */
uint8_t set_own_slot(const struct set *s);
struct set *set_find_uuid(struct daemon *d, const struct mirror_uuid *uuid);
/* After the configuration was read: plan which daemons to ask for their status. */
void set_plan_neighbours(struct set *s);
/* Try to open the set, unless it is open. */
void set_try_open(struct set *s, uint64_t now_ms);
/* Returns the milliseconds until the next call. */
int set_tick(struct set *s, uint64_t now_ms);
bool set_has_waiting(const struct set *s);
/* The last report of the process that maps the set, unless it is too old; NULL: none. */
const struct packet_report *set_report(const struct set *s);
/* A process maps the set, but has not reported lately. */
bool set_is_silent(const struct set *s);
void set_fill_status(struct set *s, struct message_status *status);

/* reg.c: the register, and the alive key. */
void reg_ask(struct set *s); /* read the record; reg.c calls map_retry() then */
void reg_tick(struct set *s, uint64_t now_ms);
void reg_ask_alive(struct set *s);
/*
 * Why the register refuses this daemon's requests. NULL: it does not refuse them, or does not
 * answer.
 */
const char *reg_refusal(const struct set *s);
/* The primary of that epoch has ended on this host. */
void reg_clear_alive(struct set *s, struct mirror_epoch epoch);
/* The answer to a read that was sent at that time. */
void reg_on_entry(struct set *s, const struct register_entry *entry, uint64_t sent_ns);

/* reload.c: SIGHUP. */
void reload(struct daemon *d);

#endif
