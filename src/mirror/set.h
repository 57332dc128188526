/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * set.h -- a mapped set: the declarations that the files of this folder share.
 *
 * The lock ("the set's lock") protects everything in struct rpmirror, except the members that map.c
 * sets before the thread starts. The set's thread carries out the primary's actions (act.c), and
 * communicates with the daemon of this host (agent.c) and with the members' daemons (ask.c). A
 * thread that flushes posts its batches and takes completions itself (flush.c, wait.c).
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
#include "mirror/write_back.h"

#define SET_PART_RANGES 256u         /* largest number of ranges of a flush with one number */
#define SET_PART_BYTES  (512u << 10) /* largest number of bytes of a flush with one number */
#define SET_CHUNK       (256u << 10) /* bytes of one write */
#define SET_STAGING     (13u << 20)
#define SET_QUEUE       2048u /* largest number of operations on a lane */
#define SET_ERRORS      16u
#define SET_SPIN_NS     50000u
#define SET_ANSWER_MS   30000 /* time limit for the daemon's answer to a map and an unmap */
/* time limit for the answer to a swap; the daemon waits register-timeout for the register */
#define SET_SWAP_MS 5000

/* Requests to a member's daemon, which are sent one after the other (wire/message.h). */
enum ask { ASK_PROMISE = 1 << 0, ASK_RANGES = 1 << 1, ASK_RETIRE = 1 << 2, ASK_VIEW = 1 << 3 };

struct set_member {
	struct link control, lane;
	struct rpma_batch *batch; /* batch of the lane */
	/* number of the lane: completions of a former lane do not count */
	unsigned generation;
	bool lane_failed;
	unsigned asks;   /* set of enum ask: requests that are still to be sent */
	unsigned asking; /* the request without an answer, or 0 */
	uint32_t ask_id;
	uint32_t ranges_seen;
	uint64_t ask_deadline_ms;
	bool verifying;    /* a digest was requested and has not come yet */
	unsigned flushing; /* number of outstanding flush operations on the lane */
	uint64_t placed;   /* number of bytes that no posted flush operation covers yet */
	/* a flush operation for the placed bytes is due as soon as the lane can take one */
	bool awaits_flush;
	struct rpma_digest digest;
	/* the member has promised, and the primary's state machine got the promise */
	bool reported;
	struct primary_report report; /* kept until the lane is made */
	/* this field and the two below are from the member's report */
	struct mirror_epoch copy_epoch;
	/* id of the copy that sends a resync that has not ended, or 0 */
	uint64_t source_id;
	uint64_t copy_size;
	struct latency latency; /* durations of flushes to the member */
	/* the member's records have to be removed, after the flush `settled` is acknowledged */
	bool retires;
	uint64_t settled; /* the last flush that may be recorded at the member */
	char why[256];    /* the reason why the member was lost */
};

struct rpmirror {
	pthread_mutex_t lock;
	/* held by the thread that gets `lock` next: set_lock_in_turn() */
	pthread_mutex_t turn;
	pthread_cond_t cond; /* signalled when a change may concern waiting threads */
	unsigned waiters;
	unsigned forks; /* value of the process's fork counter when the set was mapped */
	char set[MIRROR_SET_MAX + 1];
	uint8_t self;
	struct mirror_uuid uuid;
	uint8_t key[PROOF_KEY]; /* key that is derived from the secret */
	const uint8_t *secret;  /* points to the key; NULL: the set has no secret */

	struct daemon daemon;
	struct packet packet_out;            /* space for a packet that is being made */
	uint32_t swap_id, read_id, serve_id; /* ids of the requests without an answer, or 0 */
	/* time of the first of the swaps that failed in succession */
	uint64_t swap_sent_ms;
	uint64_t swap_deadline_ms; /* time limit for the answer to the swap; 0: no swap was sent */
	uint32_t resume_id;        /* id of the RESUME without an answer, or 0 */
	/* time of the next attempt to reach a daemon that was lost */
	uint64_t resume_ms;
	bool serve_again; /* the daemon has not answered SERVE */
	bool is_refused;  /* the daemon does not accept this process (yet) */
	uint32_t last_question;
	uint64_t heartbeat_ms; /* time of the next heartbeat */
	struct copy copy;
	struct hot hot;        /* metadata of the copy, with the table of hot extents */
	struct ownfd own_meta; /* identity of the metadata's file */
	bool has_lost_files;   /* the application has closed the set's descriptors (files.h) */
	mirror_mask counted;   /* members for which the metadata have a bitmap: absent.h */
	struct direct *direct; /* NULL: the mapping is isolated */
	uint8_t *app;          /* the application's mapping */
	uint64_t size;

	struct rpma_peer *peer;
	struct rpma_cq *cq; /* completion queue of all lanes */
	bool polling;       /* a thread is taking completions */
	struct staging staging;
	struct link_place control_place, lane_place;
	struct set_member members[MIRROR_MEMBERS_MAX];

	struct repair *repair;   /* the work that makes members equal */
	struct restore *restore; /* the restoration of bytes that this host's copy has lost */
	struct primary primary;
	struct mirror_epoch epoch; /* the epoch of this primary */
	uint64_t read_again_ms;    /* time to read the register again; 0: no read was requested */
	struct flush_core flush;
	uint64_t started_seq; /* highest ticket of rpmirror_flush_start() */
	uint64_t tickets;     /* number of tickets that no caller has waited for to the end */
	struct write_back write_back;
	uint64_t slow_noted_ms;
	/* begin of each flush, indexed by number % FLUSH_MAX; after a flush operation covers the
	 * flush, the time of that operation */
	uint64_t begun_ms[FLUSH_MAX];
	/* a flush operation was posted after all flushes up to this number */
	uint64_t covered;
	mirror_mask durable[FLUSH_MAX]; /* members that had the flush when it was acknowledged */
	uint64_t staged_to[FLUSH_MAX];
	/* total number of operations that had been posted on lanes when the flush was posted */
	uint64_t queued_to[FLUSH_MAX];
	uint64_t queued;
	mirror_mask unverified; /* members from which no digest could be requested */
	bool verify_busy;       /* a thread is comparing digests */
	bool says_failed;       /* the daemon has to get the report that the copy has failed */
	/* errno of a failed write-back that no call of this process has returned; or 0 */
	int lost_error;
	bool granted; /* the daemon counts this process as the holder */
	bool mapped;  /* the application has the mapping */
	enum guard_policy guard;
	bool lease_over, is_protected;
	struct rpmirror_error errors[SET_ERRORS];
	/* no flush may begin before the application has taken this error */
	bool error_stops[SET_ERRORS];
	unsigned error_first, error_count, errors_stop;
	uint64_t failed_seq; /* the first flush whose local write-back failed, or 0 */
	struct lease lease;
	uint64_t lease_until_ms; /* end of the lease; atomic; 0 after the lease has ended */
	/* the ranges that may differ, of all members together (PRIMARY_DO_RANGES) */
	struct ranges_union records;
	bool serving, quiescing, quiesced, clean;
	uint64_t quiescing_since_ms, quiesced_ms;
	uint64_t noted_seq; /* seq of the view in the last event */
	mirror_mask noted_insync;
	bool blocked;
	uint64_t blocked_since_ms;
	uint64_t blocked_until_us; /* last time at which flushes were blocked, by clock_now_ns() */
	char blocked_why[200];
	/* 0 while the role lasts, then the RPMIRROR_E_* of the reason, or 1: demoted.
	 * set_end_code() returns the code for callers */
	int ended;
	char ended_why[256];
	uint32_t release_id; /* id of the request to take the copy back, or 0 */
	bool released;       /* the daemon has taken the copy back, and gets no further packet */

	struct events events;
	struct reader reader; /* used by a read-only mapping */
	struct order order;
	struct compare compare;
	struct report report;
	struct latency latency; /* durations of flushes */
	pthread_t thread;
	bool has_thread, stopping;
	int wake_fd; /* eventfd: wakes the set's thread */
};

/* Returns false, with the text, if m is NULL, or if this process is a child of the process that
 * mapped the set. */
bool set_is_usable(const struct rpmirror *m);
/* Returns 0, or the code that every call returns after the role is over, with ended_why as its
 * text. */
int set_end_code(const struct rpmirror *m);
/* Fill a caller's structure, which begins with its size, from a structure of this version. */
void set_answer(void *out, const void *in, size_t size);
/* Notice forks of this process (fork(2)). */
int set_watch_forks(unsigned *forks);
/* Take the lock after the threads that are already waiting. A thread that flushes in a loop
 * releases the lock only for moments, which are too short for a thread that has to be woken
 * first. */
void set_lock_in_turn(struct rpmirror *m);
/* Wake the set's thread, so that it does its next pass. */
void set_wake(struct rpmirror *m);
/* Wake the threads that wait for a change. Called with the set's lock. */
void set_notify(struct rpmirror *m);
/* A member's name and address, such as "b (10.0.0.2:7640)". */
struct set_name {
	char text[MIRROR_NAME_MAX + MIRROR_HOST_MAX + 16];
};
struct set_name set_member_name(const struct rpmirror *m, unsigned slot);

/* Copy from the daemon's answer the set's secret, or the fact that the set has none, for
 * connections that are made from now on. */
void set_take_secret(struct rpmirror *m, const struct packet_mapped *mapped);
/* Record that this host's copy cannot be used any more, from the flush seq on. error: -errno.
 * Called with the set's lock. */
void set_local_failed(struct rpmirror *m, uint64_t seq, int error);
struct set_loss {
	bool repaired, dirty; /* as in struct rpmirror_error */
	bool stops;           /* no flush may begin before the application has taken this error */
};
/* Add an error for rpmirror_get_error(); if there are too many errors, the last error covers
 * further ranges. Called with the set's lock. */
void set_add_error(struct rpmirror *m, struct mirror_range range, struct set_loss loss,
		   const char *text);

/* act.c: carries out all pending actions of the primary, and then updates members, flushes and
 * waiting threads accordingly. Called with the set's lock. */
void act_all(struct rpmirror *m);
/* End the role: from now on each call returns that code, with that text after the set's name. */
void act_end(struct rpmirror *m, int code, const char *why);
/* Let the daemon record that this copy holds the flushes of the epoch. */
void act_serve(struct rpmirror *m);
/* Call this when flushes were acknowledged: their records at members may then be removed. */
void act_retire(struct rpmirror *m);
/* Ask the daemon to read the register. */
void act_read(struct rpmirror *m);
/* Handle the loss of the lane or of the control connection to a member. */
void act_lost(struct rpmirror *m, unsigned slot, const char *why);
/* Report the failure of this copy to the daemon, unless the daemon already has the report, so that
 * no program treats this copy as good. */
void act_say_failed(struct rpmirror *m);

/* Mark as lost the members that joined after flush seq, because they got their bytes from this
 * copy. Call this with the set's lock if this copy may lack the flushes from seq on. */
void flush_lose_joined(struct rpmirror *m, uint64_t seq);

/* flush.c: writes back the ranges in the own file, and then counts the flushes with these numbers
 * as durable here, or the copy as failed. Called without the set's lock. */
struct flush_written {
	const struct mirror_range *v; /* NULL: one write-back makes everything durable */
	uint32_t n;
	const uint64_t *seqs;
	uint32_t count;
};
void flush_write_back(struct rpmirror *m, const struct flush_written *written);

/* flush_result.c: notes which members have the flushes after `from`, which were acknowledged now.
 * Called with the set's lock. */
void flush_note_durable(struct rpmirror *m, uint64_t from);
/* Fill in the result of a flush. seq 0: the result belongs to no flush. Called with the set's
 * lock. */
void flush_fill_result(const struct rpmirror *m, uint64_t seq, struct rpmirror_result *res);
/* Returns 0, or RPMIRROR_E_MEDIUM: this host's copy lacks acknowledged bytes. Called with the
 * set's lock. */
int flush_verdict(const struct rpmirror *m, uint64_t seq);

/* flush.c: flushes a normal list of ranges and waits until they are acknowledged, also while the
 * set is being given up. Called with the set's lock. Returns 0 or an RPMIRROR_E_*. */
int flush_whole(struct rpmirror *m, struct mirror_range *v, uint32_t n);
/* Like flush_whole(), for a flush of the application: while the set is being given up, the call
 * waits for the end of the set, and then fails. */
int flush_stored(struct rpmirror *m, struct mirror_range *v, uint32_t n);

/* Wait until the flushes of rpmirror_flush_start() are acknowledged. The caller holds the set's
 * lock, which is released during waits. Returns 0 or an RPMIRROR_E_*. */
int flush_await_started(struct rpmirror *m);

/* agent.c: the set's thread. */
void *agent_main(void *m);

/* map_daemon.c: returns 0, or the error (with the text) for a status of the daemon. */
int map_status(const struct rpmirror *m, unsigned status, const char *text);

/* release.c: lets the daemon take the copy back as soon as the epoch has ended. So another primary
 * can make the copy equal although the application has not unmapped the copy. Called with the set's
 * lock. */
void release_step(struct rpmirror *m);
void release_on_done(struct rpmirror *m, const struct packet *p);
/* Like release_step(), but without the set's thread: returns when the daemon has confirmed that it
 * has taken the copy back. */
int release_wait(struct rpmirror *m, bool clean);

/* ask.c: sends requests to the members' daemons. Called with the set's lock. */
void ask_member(struct rpmirror *m, unsigned slot, enum ask what);
void ask_drop(struct rpmirror *m, unsigned slot);
void ask_step(struct rpmirror *m, unsigned slot, uint64_t now_ms);
/* Handle an answer of this host's daemon. */
void ask_on_own(struct rpmirror *m, const struct message *answer);
/* Send a request with a new id, which is stored in question->id. Returns false if the request was
 * not sent. */
bool ask_send(struct rpmirror *m, unsigned slot, struct message *question);

/* lane.c: sends flushes to one member. Called with the set's lock. */
struct lane_piece {
	uint64_t offset, len; /* offset in the file */
	uint64_t at;          /* offset in the staging memory */
};
struct lane_flush {
	uint64_t seq;
	uint64_t bytes; /* number of bytes in the staging memory that the flush uses */
	uint64_t intent_at;
	uint32_t intent_len;
	uint32_t count;
	/* a flush operation follows this part; otherwise lane_cover() is called later */
	bool is_last;
	struct lane_piece pieces[SET_PART_RANGES + SET_PART_BYTES / SET_CHUNK];
};
void lane_begin(struct rpmirror *m, unsigned slot); /* called when the lane's link is READY */
void lane_end(struct rpmirror *m, unsigned slot);
/* Post a part of a flush. If the post fails, the lane fails. */
void lane_post(struct rpmirror *m, unsigned slot, const struct lane_flush *f);
/* Post a flush operation for the parts that no flush operation covers yet, if there are any. If
 * the post fails, the lane fails. */
void lane_cover(struct rpmirror *m, unsigned slot);
/* Returns true if a flush operation is outstanding to any member. */
bool lane_is_flushing(const struct rpmirror *m);
/* Request the digest of a range, for member->digest. Returns false if the member cannot make
 * digests. */
bool lane_verify(struct rpmirror *m, unsigned slot, uint64_t offset, size_t len);
/*
 * Write the reason why the lane has ENDED. If the member's medium has failed, the text names the
 * file and the bytes.
 */
void lane_explain(const struct rpmirror *m, unsigned slot, char *why, size_t size);
void lane_on_completion(struct rpmirror *m, const struct ibv_wc *wc);

/* wait.c: waits for a completion or a change, until the deadline (CLOCK_NEVER: no limit). Returns
 * false if the deadline has passed. Called with the set's lock. */
bool wait_step(struct rpmirror *m, uint64_t deadline_ns);
/* Handle all completions that have come. */
void wait_poll(struct rpmirror *m);
/* Acknowledge the flushes that all required copies have. */
void wait_settle(struct rpmirror *m);
/* Returns 0, or the error (with the text) that explains why a flush that waits since since_ms is
 * not acknowledged. */
int wait_check(struct rpmirror *m, uint64_t since_ms);
/* Returns the reason why no flush is acknowledged: RPMIRROR_E_QUORUM or RPMIRROR_E_COPIES, with
 * the text. */
int wait_fail_blocked(const struct rpmirror *m);

#endif
