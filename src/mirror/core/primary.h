/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * primary.h -- what the primary of one epoch does, from the request for its promotion to its end.
 *
 * A state machine without I/O: its user reports events and carries out actions until there is none
 * (primary_next). One object is one attempt to be primary: after DEMOTED, FENCED or FAILED it is
 * spent. The user's lock protects it. Call primary_tick() with the present time (CLOCK_BOOTTIME)
 * before any other event; events happen at the time of the last tick.
 *
 *   promoting   the swap that begins the epoch
 *   recovering  own promise; fence all of S; only then learn their ranges; make them equal over the
 *               union of all; swap those out that do not answer in time
 *   starting    the swap to `serving`
 *   serving     SERVE: the application may read. Swaps members out and in.
 *   stopping    QUIESCE, then the swap that ends the epoch
 *
 * Whom a flush must reach before it is acknowledged is primary_must_have(), at the moment of the
 * acknowledgement; and not before primary_may_ack(). Whom it must be sent to is primary_sends_to(),
 * at the moment of its snapshot.
 */
#ifndef MIRROR_CORE_PRIMARY_H
#define MIRROR_CORE_PRIMARY_H

#include "mirror/core/state.h"
#include "mirror/core/types.h"

enum primary_state {
	PRIMARY_IDLE,
	PRIMARY_PROMOTING,
	PRIMARY_RECOVERING,
	PRIMARY_STARTING,
	PRIMARY_SERVING,
	PRIMARY_QUIESCING, /* no new flushes; QUIESCE is under way */
	PRIMARY_STOPPING,  /* the swap that ends the epoch */
	PRIMARY_DEMOTED,
	PRIMARY_FENCED,
	PRIMARY_FAILED,
	PRIMARY_STATE_COUNT
};

/* Of a member, as this primary has it. */
enum primary_member_state {
	PRIMARY_MEMBER_NONE,     /* the slot is free */
	PRIMARY_MEMBER_AWAY,     /* not reached; it is fenced at `retry_ms` */
	PRIMARY_MEMBER_FENCING,  /* PROMISE */
	PRIMARY_MEMBER_RANGES,   /* recovering: RANGES */
	PRIMARY_MEMBER_WAITING,  /* recovering: until the ranges of all are known */
	PRIMARY_MEMBER_EQUALISE, /* of S: it is made equal over what may differ */
	PRIMARY_MEMBER_RESYNC,   /* not of S: catch-up passes */
	PRIMARY_MEMBER_JOINING,  /* not of S: gets all flushes and is waited for */
	PRIMARY_MEMBER_JOINED,   /* the same, and it is equal: to be swapped in */
	PRIMARY_MEMBER_EQUAL,    /* of S */
	PRIMARY_MEMBER_STATE_COUNT
};

/* What the caller has to do, and the call by which it reports that it is done. */
enum primary_action_type {
	/*
	 * Swap `record` for `expected` in the register; primary_on_swap(). Before: begin a bitmap
	 * for each member that leaves the in-sync set, unless `whole`: then it is not known in
	 * what they differ.
	 */
	PRIMARY_DO_SWAP,
	/* Read the register; primary_on_record(), or nothing if that fails. */
	PRIMARY_DO_READ,
	/* Connect to the member and fence it; primary_on_promised(), _refused() or _lost(). */
	PRIMARY_DO_PROMISE,
	/*
	 * Add the member's ranges to the union of all members' ranges; primary_on_ranges(). For the
	 * own slot, first write back the whole copy: what a former primary placed and did not flush
	 * will be read now, and its records will go.
	 */
	PRIMARY_DO_RANGES,
	/*
	 * Make the member equal over that union, over all (`whole`) or over `nothing`: record the
	 * ranges at both ends (W9), copy, get ready to send flushes; primary_on_equal(). If the set
	 * serves already, the member is in-sync and lacks flushes that are not acknowledged: the
	 * ranges are those since it was lost, and it gets all flushes from now on
	 * (primary_sends_to()).
	 */
	PRIMARY_DO_EQUALISE,
	/*
	 * W4: by bitmap and the member's own ranges, or `whole`: by digests of everything.
	 * primary_on_joining() before the first flush is sent to it, primary_on_joined() after W5.
	 */
	PRIMARY_DO_RESYNC,
	/* End what is under way with the member, and its connections; do not answer. */
	PRIMARY_DO_DROP,
	/*
	 * Remove the records of former epochs and of equalisations. For the own slot as well, but
	 * before that mark the union of all ranges in the bitmaps of members that are not in-sync.
	 * For another member only when each flush that was recorded there is acknowledged
	 * (primary_on_joined()).
	 */
	PRIMARY_DO_RETIRE,
	/* Have the member keep the view as the newest one seen; no answer is needed. */
	PRIMARY_DO_VIEW,
	/* The application may read and flush. */
	PRIMARY_DO_SERVE,
	/* End all flushes, write bitmaps and slots, unmap; primary_on_quiesced(). */
	PRIMARY_DO_QUIESCE,
	/* Acknowledge nothing until UNBLOCKED; `why`. */
	PRIMARY_DO_BLOCKED,
	PRIMARY_DO_UNBLOCKED,
	/* Three ways to end: demoted; another primary exists; `why` with `error`, an -errno. */
	PRIMARY_DO_DEMOTED,
	PRIMARY_DO_FENCED,
	PRIMARY_DO_FAILED,
	PRIMARY_DO_COUNT
};

struct primary_action {
	enum primary_action_type type;
	uint8_t slot; /* of the member; MIRROR_NOBODY where there is none */
	bool whole;   /* EQUALISE, RESYNC, SWAP: records do not name all that may differ */
	bool nothing; /* EQUALISE: nothing differs, as the last primary ended well */
	/* RETIRE: its records stay all the same: of the part that is not mapped here, or of what a
	 * failed copy has sent */
	bool keeps;
	bool promotion; /* SWAP: compare the alive key as well, and take it over */
	const struct mirror_record *record; /* SWAP: valid until the next call */
	const struct mirror_record *expected;
	uint64_t revision; /* of expected */
	const char *why;   /* for people; static or of the object */
	int error;
};

/* As enum register_result. */
enum primary_swap {
	PRIMARY_SWAP_DONE,
	PRIMARY_SWAP_CHANGED, /* it never happens; `now` is there instead */
	PRIMARY_SWAP_UNKNOWN,
	PRIMARY_SWAP_FAILED /* it never happens */
};

/* What a member says when it promises. */
struct primary_report {
	enum mirror_copy copy;
	bool held;
	bool uncertain;          /* its records may lack something */
	bool tail_unknown;       /* it is larger than this primary's, and in doubt there, too */
	struct mirror_view seen; /* the newest view that it has seen before this promise */
};

enum primary_refusal {
	PRIMARY_REFUSED_EPOCH, /* it has promised a higher one */
	PRIMARY_REFUSED_BUSY,  /* not now */
	PRIMARY_REFUSED_SPLIT, /* it knows of what the register does not */
	PRIMARY_REFUSED_COPY   /* not the copy that the configuration names, or another size */
};

#define PRIMARY_SILENT_MS   300 /* for a promise of a host that said nothing for a lease */
#define PRIMARY_UNKNOWN_MAX 8   /* swaps without an answer that are remembered */

struct primary_member {
	enum primary_member_state state;
	uint64_t id;                  /* of the copy, as configured; 0: the slot is free */
	bool lost;                    /* of S: to be swapped out, if that is permitted */
	bool uncertain, tail_unknown; /* it reported so */
	bool kept_out;                /* an operator wants it not to return */
	const char *trouble;          /* why it is not used, for people; NULL: nothing known */
	uint64_t retry_ms;            /* AWAY: when to fence it again */
	uint64_t backoff_ms;          /* the last one between two attempts to reach it */
	uint64_t held_ms;             /* likewise, as its copy is held */
	uint64_t holdoff_ms;          /* the last one after it left S */
	uint64_t deadline_ms;         /* recovering: when it counts as lost; 0: it does not */
	uint64_t insync_ms;           /* since when it is of S */
	struct mirror_epoch promised; /* a higher one than ours, as it refused */
	uint64_t refused_reads;       /* `reads` after which the register must show that epoch */
	struct mirror_view ahead;     /* newer than ours, as it has seen; no epoch: none */
	uint64_t ahead_reads;         /* likewise, for that view */
	unsigned splits;              /* refusals of that kind in succession */
	unsigned breaks;              /* recovering: times it was lost while it was made equal */
	uint32_t pending;             /* actions to be returned, bits by type */
};

struct primary {
	enum primary_state state;
	uint8_t slot;
	uint8_t suspect; /* who gets less time, or MIRROR_NOBODY: its host is probably gone */
	bool force, was_clean, local_failed, demoting, clean;
	uint64_t now;
	uint64_t (*random)(void *arg);
	void *arg;

	struct mirror_record rec; /* the register's, as far as is known */
	uint64_t revision;

	struct mirror_record offer; /* the swap under way */
	uint64_t offer_against;     /* nonce of the record that it is compared with */
	bool swapping;
	uint64_t reads;      /* answers to READ */
	mirror_mask unknown; /* S of all swaps without an answer */
	uint64_t unknown_nonces[PRIMARY_UNKNOWN_MAX];
	unsigned unknown_count; /* ever; modulo the ring's size its index */
	uint64_t swap_retry_ms, swap_backoff_ms;
	unsigned swap_failures; /* in succession */

	struct primary_member members[MIRROR_MEMBERS_MAX];
	uint32_t pending; /* actions that concern no member */
	bool blocked;
	char text[200]; /* why it is blocked, or has failed */
	int error;      /* FAILED: -ENOTUNIQ: split */
};

/*
 * `seen`: the newest view that this host has seen (NULL: none); force: promote although it is not
 * in-sync. The caller has made sure that no other primary lives: candidate.h, or the operator.
 */
void primary_start(struct primary *p, const struct mirror_record *rec, uint64_t revision,
		   uint8_t slot, const struct mirror_view *seen, bool force, uint64_t now_ms,
		   uint64_t (*random)(void *arg), void *arg);
/* After primary_start(): the host of that member, the former primary's, has said nothing for a
 * lease. It is waited for no longer than PRIMARY_SILENT_MS. */
void primary_suspect(struct primary *p, uint8_t slot);
void primary_tick(struct primary *p, uint64_t now_ms);
/* When to call primary_tick() at the latest; UINT64_MAX: it need not be. */
uint64_t primary_next_deadline(const struct primary *p);

/* What to do next; false: nothing. Each action is returned once. */
bool primary_next(struct primary *p, struct primary_action *action);

/* `now`, `revision`: as enum primary_swap says; ignored with UNKNOWN and FAILED. */
void primary_on_swap(struct primary *p, enum primary_swap result, const struct mirror_record *now,
		     uint64_t revision);
/* The register was read, for READ. May come late. */
void primary_on_record(struct primary *p, const struct mirror_record *rec, uint64_t revision);
/* Or because it has changed: nobody knows when that read began. */
void primary_on_changed(struct primary *p, const struct mirror_record *rec, uint64_t revision);

/* Events about a member that is not asked for what they answer are ignored. */
void primary_on_promised(struct primary *p, uint8_t slot, const struct primary_report *report);
void primary_on_refused(struct primary *p, uint8_t slot, enum primary_refusal why,
			struct mirror_epoch promised);
void primary_on_ranges(struct primary *p, uint8_t slot);
void primary_on_progress(struct primary *p, uint8_t slot); /* of EQUALISE: its deadline moves */
/*
 * What a resync has carried of flushes that are not acknowledged is perhaps named by no intent
 * there, and the member may be promoted soon: before `joined` (behind W5, which takes its records
 * away) the ranges of all of them are recorded there (W9); `equal` has them in the ranges of the
 * equalisation. The records go when these flushes are acknowledged (RETIRE).
 */
void primary_on_equal(struct primary *p, uint8_t slot);
void primary_on_joined(struct primary *p, uint8_t slot);
void primary_on_joining(struct primary *p, uint8_t slot);
/* It was reached, and is of no use now: `trouble` is its own word. */
bool primary_is_refused(const struct primary *p, uint8_t slot);
/* Its connection has ended, or a flush to it took
 * longer than replica_timeout, or its copy failed. */
void primary_on_lost(struct primary *p, uint8_t slot);

/*
 * Serving: an operator wants another member out of S, and not to return before primary_readmit().
 * 0; -EBUSY: it may not leave, with *why (static); -EINVAL: there is no such member. What is under
 * way with it ends (DROP). The swap may still fail: it has left when S says so, and it is not to be
 * expected any more when kept_out is false again.
 */
int primary_exclude(struct primary *p, uint8_t slot, const char **why);
/* It may return, and is tried at once: what made it wait is forgotten. */
void primary_readmit(struct primary *p, uint8_t slot);

/* A write-back of the own copy has failed. */
void primary_on_local_failed(struct primary *p);
/* The own daemon cannot record that this epoch serves. No application has read anything in it. */
void primary_on_serve_failed(struct primary *p);
/*
 * May members be made equal? A copy that has failed may lack what others have acknowledged since,
 * as the kernel drops what it cannot write. It has all as long as no other member has acknowledged
 * anything.
 */
static inline bool primary_is_source(const struct primary *p)
{
	return !p->local_failed || p->rec.view.insync == MIRROR_BIT(p->slot);
}
void primary_demote(struct primary *p);
/* clean: all was flushed, and nothing is recorded any more as perhaps different. */
void primary_on_quiesced(struct primary *p, bool clean);

/* S as committed, S of swaps under way or without an answer, and joining members. The own slot
 * stands for the local write-back. */
mirror_mask primary_must_have(const struct primary *p);
/* Other members to which each flush goes. */
mirror_mask primary_sends_to(const struct primary *p);
/* Members that lack what is flushed now: for each, bits are to be set in the bitmap (W3). */
mirror_mask primary_absent(const struct primary *p);
/* Members that count for min_copies: S as committed, and S of swaps without an answer, which may
 * have happened. All of them are in primary_must_have(). */
mirror_mask primary_counts(const struct primary *p);
/* Each member is of S, is reached and is equal. A lost one is of S until a swap has excluded it. */
bool primary_is_whole(const struct primary *p);
/* It serves, and enough copies count. */
bool primary_may_ack(const struct primary *p);

const char *primary_state_2str(enum primary_state state);
const char *primary_member_state_2str(enum primary_member_state state);
const char *primary_action_2str(enum primary_action_type type);

#endif
