/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * set.h -- a mapped set: what the files of this room share.
 *
 * The lock protects everything in struct rpmirror, except what map.c sets before the thread starts.
 * The thread carries out the primary's actions (act.c), talks to the daemon of this host (agent.c)
 * and to the members' daemons (ask.c). Flushes post their batches and take completions themselves
 * (flush.c, wait.c).
 */
#ifndef MIRROR_SET_H
#define MIRROR_SET_H

#include <librpma.h>
#include <pthread.h>

#include "base/clock.h"
#include "librpmirror.h"
#include "mirror/compare.h"
#include "mirror/copy.h"
#include "mirror/core/flush.h"
#include "mirror/core/intent.h"
#include "mirror/core/lease.h"
#include "mirror/core/primary.h"
#include "mirror/daemon.h"
#include "mirror/direct.h"
#include "mirror/event.h"
#include "mirror/files.h"
#include "mirror/guard.h"
#include "mirror/hot.h"
#include "mirror/latency.h"
#include "mirror/peer/link.h"
#include "mirror/order.h"
#include "mirror/ranges_union.h"
#include "mirror/reader.h"
#include "mirror/report.h"
#include "mirror/staging.h"

#define SET_PART_RANGES 256u         /* most ranges of a flush with one number */
#define SET_PART_BYTES  (512u << 10) /* most bytes of it */
#define SET_CHUNK       (256u << 10) /* bytes of one write */
#define SET_STAGING     (13u << 20)
#define SET_QUEUE       2048u /* operations on a lane */
#define SET_ERRORS      16u
#define SET_SPIN_NS     50000u
#define SET_ANSWER_MS   30000 /* limit for the daemon's answer to a map and an unmap */
/* the same for a swap; the daemon waits register-timeout for the register */
#define SET_SWAP_MS 5000

/* Questions to a member's daemon, which are asked one after the other. */
enum ask { ASK_PROMISE = 1 << 0, ASK_RANGES = 1 << 1, ASK_RETIRE = 1 << 2, ASK_VIEW = 1 << 3 };

struct set_member {
	struct link control, lane;
	struct rpma_batch *batch; /* of the lane */
	unsigned generation;      /* number of the lane: completions of a former one do not count */
	bool lane_failed;
	unsigned asks;   /* set of enum ask: questions that are still to be asked */
	unsigned asking; /* the question under way, or 0 */
	uint32_t ask_id;
	uint32_t ranges_seen;
	uint64_t ask_deadline_ms;
	bool verifying;    /* a digest is under way */
	unsigned flushing; /* flush operations under way on the lane */
	uint64_t placed;   /* bytes after which no flush operation was posted yet */
	bool awaits_flush; /* a flush operation is due for them, when the lane has room */
	struct rpma_digest digest;
	bool reported;                  /* the member has promised, and the primary knows it */
	struct primary_report report;   /* kept until the lane is made */
	struct mirror_epoch copy_epoch; /* the member has reported this: */
	uint64_t source_id;             /* source of a resync that has not ended, or 0 */
	uint64_t copy_size;
	struct latency latency; /* times of flushes to the member */
	/* the member's records are to be removed, once `settled` is acknowledged */
	bool retires;
	uint64_t settled; /* the last flush that may be recorded there */
	char why[256];    /* why the member was lost */
};

struct rpmirror {
	pthread_mutex_t lock;
	/* held by the thread that waits for the lock in turn: set_lock_in_turn() */
	pthread_mutex_t turn;
	pthread_cond_t cond; /* signalled when a change may concern waiting threads */
	unsigned waiters;
	unsigned forks; /* fork generation of the process, when the set was mapped */
	char set[MIRROR_SET_MAX + 1];
	uint8_t self;
	struct mirror_uuid uuid;
	uint8_t key[PROOF_KEY]; /* key that is made from the secret, */
	const uint8_t *secret;  /* or NULL: the set has none */

	struct daemon daemon;
	struct packet packet_out;            /* room in which a packet is made */
	uint32_t swap_id, read_id, serve_id; /* ids of requests under way, or 0 */
	/* time of the first of the swaps that failed in succession */
	uint64_t swap_sent_ms;
	uint64_t swap_deadline_ms; /* of the answer; or 0: none is under way */
	uint32_t resume_id;        /* id of the RESUME under way, or 0 */
	/* time of the next attempt to reach a daemon that was lost */
	uint64_t resume_ms;
	bool serve_again; /* the daemon has not answered SERVE */
	bool is_refused;  /* the daemon does not accept this process (yet) */
	uint32_t last_question;
	uint64_t heartbeat_ms; /* time of the next heartbeat */
	struct copy copy;
	struct hot hot;        /* metadata of the copy */
	struct ownfd own_meta; /* identity of the metadata's file */
	bool has_lost_files;   /* files.h */
	mirror_mask counted;   /* members for which the metadata have a bitmap: absent.h */
	struct direct *direct; /* or NULL: the mapping is isolated */
	uint8_t *app;          /* the application's mapping */
	uint64_t size;

	struct rpma_peer *peer;
	struct rpma_cq *cq; /* completion queue of all lanes */
	bool polling;       /* a thread takes completions */
	struct staging staging;
	struct link_place control_place, lane_place;
	struct set_member members[MIRROR_MEMBERS_MAX];

	struct repair *repair;   /* for members that are made equal */
	struct restore *restore; /* for bytes that this host's copy has lost */
	struct primary primary;
	struct mirror_epoch epoch; /* ours */
	uint64_t read_again_ms;    /* time to read the register again; 0: no read is under way */
	struct flush_core flush;
	uint64_t slow_noted_ms;
	/* times of flushes, by number % FLUSH_MAX; once a flush is covered, the time of that */
	uint64_t begun_ms[FLUSH_MAX];
	/* a flush operation was posted after the flushes up to here */
	uint64_t covered;
	mirror_mask durable[FLUSH_MAX]; /* members that had it when it was acknowledged */
	uint64_t staged_to[FLUSH_MAX];
	uint64_t queued_to[FLUSH_MAX]; /* number of all operations that lanes were given */
	uint64_t queued;
	mirror_mask unverified; /* members that could not be asked for a digest */
	bool verify_busy;       /* a thread compares digests */
	bool says_failed;       /* the daemon has to be informed that the copy has failed, */
	int lost_error;         /* errno of a write-back that no call of ours reported; or 0 */
	bool granted;           /* the daemon counts this process as the holder */
	bool mapped;            /* the application has the mapping */
	enum guard_policy guard;
	bool lease_over, is_protected;
	struct rpmirror_error errors[SET_ERRORS];
	bool error_stops[SET_ERRORS]; /* no flush may begin before the application has taken it */
	unsigned error_first, error_count, errors_stop;
	uint64_t failed_seq; /* the first flush whose local write-back failed, or 0 */
	struct lease lease;
	uint64_t lease_until_ms; /* end of the lease; atomic, 0 once it has ended */
	/* ranges that may differ, of all members (PRIMARY_DO_RANGES) */
	struct ranges_union records;
	bool serving, quiescing, quiesced, clean;
	uint64_t quiescing_since_ms, quiesced_ms;
	uint64_t noted_seq; /* seq of the view in the last event */
	mirror_mask noted_insync;
	bool blocked;
	uint64_t blocked_since_ms;
	uint64_t blocked_until_us; /* the last time; by clock_now_ns() */
	char blocked_why[200];
	/* 0, or the RPMIRROR_E_* of the reason; 1: demoted. For callers: set_end_code() */
	int ended;
	char ended_why[256];
	uint32_t release_id; /* the daemon is asked to take the copy back; or 0 */
	bool released;       /* the daemon has taken it, and gets no further packet */

	struct events events;
	struct reader reader; /* for a read-only mapping */
	struct order order;
	struct compare compare;
	struct report report;
	struct latency latency; /* of flushes */
	pthread_t thread;
	bool has_thread, stopping;
	int wake_fd; /* eventfd: wakes the set's thread */
};

/* False (with the text): m is NULL, or this process is a child of the one that mapped it. */
bool set_is_usable(const struct rpmirror *m);
/* 0, or the code that every call returns after the role is over, with ended_why as its text. */
int set_end_code(const struct rpmirror *m);
/* Fill a caller's structure, which begins with its size, from one of this version. */
void set_answer(void *out, const void *in, size_t size);
/* Process-wide: notices fork(2). */
int set_watch_forks(unsigned *forks);
/* Take the lock after the threads that waited before. A thread that flushes in a loop unlocks
 * only for moments, too short for a thread that has to be woken first. */
void set_lock_in_turn(struct rpmirror *m);
/* Begin the thread's next turn. */
void set_wake(struct rpmirror *m);
/* Wake the threads that wait for a change; locked. */
void set_notify(struct rpmirror *m);
/* "b (10.0.0.2:7640)" */
struct set_name {
	char text[MIRROR_NAME_MAX + MIRROR_HOST_MAX + 16];
};
struct set_name set_member_name(const struct rpmirror *m, unsigned slot);

/* Locked. The copy of this host cannot be used any more from that flush on. error: -errno. */
/* Take over the set's secret, or that it has none, as the daemon has it now: for connections
 * that are made from now on. */
void set_take_secret(struct rpmirror *m, const struct packet_mapped *mapped);
void set_local_failed(struct rpmirror *m, uint64_t seq, int error);
struct set_loss {
	bool repaired, dirty; /* as in struct rpmirror_error */
	bool stops;           /* flushes, until the application has taken it */
};
/* Locked. For rpmirror_get_error(); if there are too many, the last one covers further ranges. */
void set_add_error(struct rpmirror *m, struct mirror_range range, struct set_loss loss,
		   const char *text);

/* act.c: carry out all of the primary's actions; then members, flushes and waiters agree with
 * it. Locked. */
void act_all(struct rpmirror *m);
/* The role is over: each call returns that code, with that text after the set's name. */
void act_end(struct rpmirror *m, int code, const char *why);
/* Have the daemon record that this copy holds the flushes of the epoch. */
void act_serve(struct rpmirror *m);
/* Flushes were acknowledged: their records at members may go. */
void act_retire(struct rpmirror *m);
/* Ask the daemon to read the register. */
void act_read(struct rpmirror *m);
/* The lane or the control connection to a member is lost. */
void act_lost(struct rpmirror *m, unsigned slot, const char *why);
/* Report the failure to the daemon, unless it has the report already, so that no program takes
 * this copy for a good one. */
void act_say_failed(struct rpmirror *m);

/* Locked. This copy may lack flushes from that one on. Members that joined since got their bytes
 * from this copy, so these members are lost. */
void flush_lose_joined(struct rpmirror *m, uint64_t seq);

/* flush_result.c: locked; the flushes after `from` were acknowledged now. */
void flush_note_durable(struct rpmirror *m, uint64_t from);
/* Locked. seq 0: the event belongs to no flush. */
void flush_fill_result(const struct rpmirror *m, uint64_t seq, struct rpmirror_result *res);
/* Locked. 0, or RPMIRROR_E_MEDIUM: this host's copy lacks acknowledged bytes. */
int flush_verdict(const struct rpmirror *m, uint64_t seq);

/* flush.c: locked; wait until ranges, which are normal, are acknowledged. Also while the set is
 * given up. 0 or an RPMIRROR_E_*. */
int flush_whole(struct rpmirror *m, struct mirror_range *v, uint32_t n);
/* The same for the application: while the set is given up it waits, and fails at the end. */
int flush_stored(struct rpmirror *m, struct mirror_range *v, uint32_t n);

/* agent.c */
void *agent_main(void *m);

/* map_daemon.c: 0, or the error (with the text) for a status of the daemon. */
int map_status(const struct rpmirror *m, unsigned status, const char *text);

/* release.c: have the daemon take the copy back as soon as the epoch has ended, so that another
 * primary can make it equal although the application has not unmapped it. Locked. */
void release_step(struct rpmirror *m);
void release_on_done(struct rpmirror *m, const struct packet *p);
/* The same without the thread: returns when the daemon has confirmed it. */
int release_wait(struct rpmirror *m, bool clean);

/* ask.c: questions to members' daemons; locked. */
void ask_member(struct rpmirror *m, unsigned slot, enum ask what);
void ask_drop(struct rpmirror *m, unsigned slot);
void ask_step(struct rpmirror *m, unsigned slot, uint64_t now_ms);
/* An answer of this host's daemon. */
void ask_on_own(struct rpmirror *m, const struct message *answer);
/* Send a question with an id of its own, stored in question->id. False: it was not sent. */
bool ask_send(struct rpmirror *m, unsigned slot, struct message *question);

/* lane.c: flushes to one member; locked. */
struct lane_piece {
	uint64_t offset, len; /* offset in the file */
	uint64_t at;          /* offset in the staging memory */
};
struct lane_flush {
	uint64_t seq;
	uint64_t bytes; /* bytes that the flush takes in the staging memory */
	uint64_t intent_at;
	uint32_t intent_len;
	uint32_t count;
	bool is_last; /* a flush operation follows; else lane_cover() is called later */
	struct lane_piece pieces[SET_PART_RANGES + SET_PART_BYTES / SET_CHUNK];
};
void lane_begin(struct rpmirror *m, unsigned slot); /* the lane's link is READY */
void lane_end(struct rpmirror *m, unsigned slot);
/* If a post fails, the lane fails. */
void lane_post(struct rpmirror *m, unsigned slot, const struct lane_flush *f);
/* The same for a flush operation for posts without one, if there are any. */
void lane_cover(struct rpmirror *m, unsigned slot);
/* Is a flush operation under way to any member? */
bool lane_is_flushing(const struct rpmirror *m);
/* Ask for a digest of a range, into member->digest. False: the member cannot. */
bool lane_verify(struct rpmirror *m, unsigned slot, uint64_t offset, size_t len);
/*
 * The reason why the lane has ENDED. If the medium there has failed: which file, and which bytes.
 */
void lane_explain(const struct rpmirror *m, unsigned slot, char *why, size_t size);
void lane_on_completion(struct rpmirror *m, const struct ibv_wc *wc);

/* wait.c: locked. Wait for a completion or a change, until the deadline (CLOCK_NEVER: none).
 * False: it has passed. */
bool wait_step(struct rpmirror *m, uint64_t deadline_ns);
/* Take all completions that have come. */
void wait_poll(struct rpmirror *m);
/* Acknowledge the flushes that all required copies have. */
void wait_settle(struct rpmirror *m);
/* 0, or the error why a flush that has waited since then is not acknowledged (with the text). */
int wait_check(struct rpmirror *m, uint64_t since_ms);
/* Returns why nothing is acknowledged: RPMIRROR_E_QUORUM or RPMIRROR_E_COPIES, with the text. */
int wait_fail_blocked(const struct rpmirror *m);

#endif
