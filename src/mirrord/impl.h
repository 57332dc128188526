/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl.h -- the daemon's objects, its loop and its sets. Headers beside it have the rest.
 *
 * One thread runs the loop and owns all of this; only calls of a register run elsewhere (agent.h).
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

#define DAEMON_PENDING_MS   5000 /* for the steps before a connection is granted */
#define DAEMON_REFUSED_MAX  64
#define DAEMON_CLIENTS_MAX  256  /* of the UNIX socket, */
#define DAEMON_CLIENTS_USER 64   /* and of one user but root */
#define DAEMON_HEARTBEAT_MS 1000 /* without one the alive key is not renewed */
#define DAEMON_SILENT_MS    3000 /* a primary's status that is older says nothing of now */

struct daemon;
struct set;
struct json_t; /* of jansson */

/* A descriptor that the loop watches. */
struct watch {
	int fd; /* -1: none */
	void (*on_ready)(struct watch *w);
	void *owner;
};

/* A program that the configuration names. What sets it up fills all from `daemon` on. */
struct program {
	pid_t pid;           /* 0: it does not run; also of its process group */
	struct watch on_end; /* its pidfd */
	int cause_fd;        /* where the reason comes from for which it cannot be run */
	uint64_t deadline_ms;
	bool is_late; /* hence killed */
	pid_t stuck;  /* a former one that was killed and does not end; 0: none */
	struct daemon *daemon;
	bool is_probe; /* it is not run: can it be? */
	unsigned limit_ms;
	/* NULL: it ended with 0 */
	void (*on_done)(struct program *p, const char *failure);
	void *owner;
};

/* A connection of a primary, a candidate or another daemon. */
struct inbound {
	struct inbound *next;
	struct daemon *daemon;
	struct set *set; /* NULL only when refused */
	struct arrival arrival;
	struct greeting greeting;
	struct greeting_reply reply;
	unsigned version; /* of the messages */
	char addr[RPMA_ADDR_MAX];
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct watch on_event, on_message;
	bool counts; /* as open, in the rules of member.h */
	struct rpma_mr_local *data_mr, *ring_mr, *message_mr;
	uint32_t out_busy; /* slots of messages.out, a bit each */
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
	unsigned version; /* of the packets; 0: no MAP has come yet */
	struct set *set;  /* that it maps or waits for */
	bool is_waiting;
	bool is_reader;  /* maps it read-only */
	bool is_dead;    /* it did not read; its end is on the way */
	uint32_t map_id; /* of the MAP that waits */
	uint8_t map_flags;
	uint64_t image;                     /* of its MAP */
	uint32_t wants_answer, wants_alive; /* reads that count for it, by number */
	/* A tool's: what it waits for. */
	enum client_wait {
		CLIENT_IDLE,
		CLIENT_WAITS_ORDER,
		CLIENT_WAITS_SWAP,
		CLIENT_WAITS_PRIMARY,
		CLIENT_WAITS_GROWTH
	} wait;
	struct set *wait_set;
	bool wants_verified; /* in the answer to its order */
	mirror_mask fences; /* the member of its order to fence, for the answer; 0: another order */
	struct request_promotion {
		struct promotion_order order; /* is_over: it waits for what is under way */
		bool has_run;                 /* on-promote was started for this order */
		bool is_doubtful;             /* one of its swaps was not answered */
	} promotion;
	uint64_t wait_until_ms;
	bool gets_events;
};

#define HOLDER_AUXV 512

/* Who maps a set on this host. */
struct holder {
	pid_t pid;             /* 0: nobody */
	uint64_t known_ms;     /* since when this daemon knows of it */
	struct watch on_end;   /* its pidfd; none: it cannot be watched yet */
	struct client *client; /* NULL: it has lost its connection */
	unsigned version;      /* the newest one of its library; 0: not known */
	bool is_confirmed;     /* it has its answer */
	struct holder_program {
		size_t len; /* 0: not known */
		uint8_t auxv[HOLDER_AUXV];
	} program;                 /* what it ran when it was connected last */
	bool is_forced;            /* it was let in by an order to promote it by force */
	struct mirror_epoch epoch; /* that it is primary of, or 0 */
	uint64_t fenced_by; /* number of the epoch that took its place, and that it heard of */
	uint64_t heartbeat_ms;
	struct packet_report report; /* the last one */
	uint64_t report_ms;          /* 0: there was none */
	bool is_silent;              /* and an event says so */
};

/* Who proves that a former primary's host is off. */
struct fence_agent {
	struct program program, probe;
	char path[MIRROR_PATH_MAX + 1], member[MIRROR_NAME_MAX + 1];
	struct mirror_epoch epoch; /* of that primary */
	struct mirror_epoch proof; /* of one that is off, as it says */
	bool is_cancelled;
	unsigned failures; /* in this epoch, one after the other, */
	uint64_t retry_ms; /* until when it is not run again, */
	char why[128];     /* and the last one */
};

/* Blocks of a copy that cannot be read are overwritten (clear.c). */
struct clearing {
	bool is_busy; /* until it is not, nobody else writes to the copy */
	bool is_done; /* and these are what was asked for, and the answer */
	struct mirror_epoch epoch;
	struct mirror_range range;
	struct message_cleared result;
};

/* Are the files at their places (place.c). */
struct placing {
	struct place_file {
		dev_t dev;
		ino_t ino;
	} files[2];      /* that were opened */
	uint32_t opened; /* how often the copy was */
	uint64_t next_ms, asked_ms;
	struct place_job *job; /* that the worker does; NULL: none */
	bool is_late;          /* and an event says so: the file system does not answer */
};

struct set {
	struct daemon *daemon;
	const struct conf_set *conf;
	bool is_open; /* files and metadata */
	uint64_t open_retry_ms;
	struct error why_not; /* it is not open, or cannot be used */
	struct mapfile data, meta_file;
	int sentinel;         /* of medium.c; -1: none */
	bool may_have_missed; /* a failed write-back, of a process that mapped the copy before */
	struct meta meta;
	struct member member;
	bool has_secret;
	struct secret secret;
	struct rpma_mr_local
		*anchor; /* a failed write-back is remembered as long as there is one */
	struct agent *asks, *alive, *watcher;
	struct agent *worker; /* for what may last long; made when it is needed first */
	struct clearing clearing;
	struct neighbours *neighbours;
	bool is_asking, ask_again, is_watching, is_reading_alive, is_renewing;
	uint64_t asked_ms;                    /* when the read began that is under way */
	uint32_t asked, answered;             /* reads of the record, by number, */
	uint32_t alive_asked, alive_answered; /* and of the alive key */
	uint64_t epoch_ns;                    /* when its epoch was heard of */
	uint64_t shown_ns;                    /* when the copy's rules saw a record or view last */
	struct mirror_epoch cleared;          /* whose alive key was cleared here */
	/* the register, as it was read last */
	struct register_entry entry;
	struct register_health register_health; /* no members: not known yet */
	uint64_t count_ms;                      /* when to ask for it again */
	bool has_entry, register_answers, is_split;
	struct error read_why;  /* of the last read, if it failed */
	struct error write_why; /* of the last renewal of our alive key, if the register refused */
	enum member_reason split_reason;
	char split_why[256];
	struct candidate candidate;
	struct register_alive seen;           /* the alive key of the candidate's verdict, */
	uint64_t seen_ms;                     /* and when it was read; 0: not in this epoch */
	bool lease_is_over;                   /* that key is there, and stands still */
	bool may_promote;                     /* by that key, an agent or an operator */
	struct register_alive renewed;        /* what our renewal saw last */
	uint64_t renew_ms, look_ms, alive_ms; /* when the next one is due */
	struct mirror_epoch word;             /* whose primary is off, as an operator says */
	struct fence_agent fence;
	struct set_promotion {
		struct program program; /* on-promote */
		char path[MIRROR_PATH_MAX + 1];
		uint64_t next_ms; /* when it may run again */
		char why[128];    /* its failure, the last time; "": there was none */
		unsigned swaps;   /* that an order has permitted, and whose result is awaited */
	} promotion;
	uint64_t fresh_ns; /* the copy had all that was acknowledged then; 0: not known */
	uint64_t scrub_retry_ms;
	struct placing placing;
	bool has_meta_fault;  /* a page of the metadata could not be reached */
	char failed_why[512]; /* what became of the files; "": nothing is known */
	bool is_scrubbing;
	struct holder holder;
	struct set_growth {
		struct growth copy;
		struct growth_order order;
		uint64_t client; /* whose order */
	} growth;
	uint64_t known_ids[MIRROR_MEMBERS_MAX]; /* of findings.c: whose copies these slots are */
	struct set_reported {
		bool is_set;
		struct mirror_view view;
		enum mirror_health health;
		enum mirror_copy copy;
	} reported;
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
	struct inbound *links;    /* the latest one first */
	struct arrivals arrivals; /* of the links */
	struct client *clients;
	unsigned client_count;
	uint64_t next_serial;
	bool is_ending;
};

/* loop.c: descriptors. */
int loop_watch(struct daemon *d, struct watch *w, int fd, void (*on_ready)(struct watch *w),
	       void *owner);
void loop_unwatch(struct daemon *d, struct watch *w);
/* Until it is told to end. */
void loop_run(struct daemon *d);

/* set.c: sets, and what is to be done from time to time. */
int set_init(struct set *s, struct daemon *d, const struct conf_set *conf, struct error *err);
void set_fini(struct set *s);
/* A thread for calls of its register, and others. Kinds of error.h. */
int set_new_agent(struct set *s, struct agent **agent, struct error *err);
struct set *set_find(struct daemon *d, const char *name);
/* Of this host's member; without the metadata, by the configured name. MIRROR_NOBODY: it is no
 * member. */
uint8_t set_own_slot(const struct set *s);
struct set *set_find_uuid(struct daemon *d, const struct mirror_uuid *uuid);
/* The configuration was read: whom to ask for their status. */
void set_plan_neighbours(struct set *s);
/* Unless it is open. */
void set_try_open(struct set *s, uint64_t now_ms);
/* Milliseconds until it is to be called again. */
int set_tick(struct set *s, uint64_t now_ms);
bool set_has_waiting(const struct set *s);
/* What the process that maps the set says of it, unless that is too old; NULL: nothing. */
const struct packet_report *set_report(const struct set *s);
/* It maps the set, but has not reported lately. */
bool set_is_silent(const struct set *s);
void set_fill_status(struct set *s, struct message_status *status);

/* reg.c: the register, and who is alive. */
void reg_ask(struct set *s); /* read the record; reg.c calls map_retry() then */
void reg_tick(struct set *s, uint64_t now_ms);
void reg_ask_alive(struct set *s);
/* Why the register refuses what this daemon asks; NULL: it does not refuse, or does not answer. */
const char *reg_refusal(const struct set *s);
/* The primary of that epoch has ended on this host. */
void reg_clear_alive(struct set *s, struct mirror_epoch epoch);
/* The answer to a question that was sent at that time. */
void reg_on_entry(struct set *s, const struct register_entry *entry, uint64_t sent_ns);

/* reload.c: SIGHUP. */
void reload(struct daemon *d);

#endif
