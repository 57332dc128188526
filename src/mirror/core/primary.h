/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * primary.h -- state machine of the primary of one epoch, from the request for its promotion to its
 * end.
 *
 * A state machine without I/O: its user reports events and carries out actions until there is none
 * (primary_next). One object is one attempt to be primary: after DEMOTED, FENCED or FAILED it is
 * spent. The user's lock protects it. Call primary_tick() with the present time (CLOCK_BOOTTIME)
 * before any other event; events happen at the time of the last tick. S is the in-sync set.
 *
 *   promoting   the swap that begins the epoch
 *   recovering  own promise; fence all of S; only then learn their ranges; make them equal over the
 *               union of all; swap those out that do not answer in time
 *   starting    the swap to `serving`
 *   serving     SERVE: the application may read. Swaps members out and in.
 *   stopping    QUIESCE, then the swap that ends the epoch
 *
 * A flush is sent to the members of primary_sends_to(), taken at the moment of its snapshot. It is
 * acknowledged after it has reached the members of primary_must_have(), taken at the moment of the
 * acknowledgement, and not before primary_may_ack().
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

/* State of a member, as this primary sees it. */
enum primary_member_state {
	PRIMARY_MEMBER_NONE, /* the slot is free */
	/* the member was not reached; the next attempt to fence it is at `retry_ms` */
	PRIMARY_MEMBER_AWAY,
	PRIMARY_MEMBER_FENCING, /* the member is asked for a PROMISE */
	PRIMARY_MEMBER_RANGES,  /* recovering: the member's ranges are being read */
	/* recovering: the member waits until the ranges of all members are read */
	PRIMARY_MEMBER_WAITING,
	/* in S: the member is made equal over the ranges that may differ */
	PRIMARY_MEMBER_EQUALISE,
	/* not in S: catch-up passes send the member the bytes that it lacks */
	PRIMARY_MEMBER_RESYNC,
	/* not in S: the member gets all flushes, and each flush waits for it */
	PRIMARY_MEMBER_JOINING,
	/* the same, and the member's copy is equal: a swap has to take it into S */
	PRIMARY_MEMBER_JOINED,
	PRIMARY_MEMBER_EQUAL, /* in S, and equal */
	PRIMARY_MEMBER_STATE_COUNT
};

/* An action for the caller, and the call that reports its end. */
enum primary_action_type {
	/*
	 * Swap `record` for `expected` in the register; primary_on_swap(). First begin a bitmap for
	 * each member that leaves the in-sync set, unless `whole` is set: then the records do not
	 * name every range in which the copies differ.
	 */
	PRIMARY_DO_SWAP,
	/* Read the register; primary_on_record(), or no call if the read fails. */
	PRIMARY_DO_READ,
	/* Connect to the member and fence it; primary_on_promised(), _refused() or _lost(). */
	PRIMARY_DO_PROMISE,
	/*
	 * Add the member's ranges to the union of all members' ranges; primary_on_ranges(). For the
	 * own slot, first write back the whole copy: bytes that a former primary placed and did not
	 * flush can be read from now on, and their records will be removed.
	 */
	PRIMARY_DO_RANGES,
	/*
	 * Make the member equal over that union, over all (`whole`) or over `nothing`: record the
	 * ranges at both ends (W9), copy, prepare to send flushes; primary_on_equal(). If the set
	 * serves already, the member is in-sync and lacks only flushes that are not acknowledged.
	 * The ranges are then those of the flushes since the member was lost, and the member gets
	 * all flushes from now on (primary_sends_to()).
	 */
	PRIMARY_DO_EQUALISE,
	/*
	 * W4: resync by bitmap and the member's own ranges, or with `whole` by digests of the whole
	 * file. primary_on_joining() before the first flush is sent to the member,
	 * primary_on_joined() after W5.
	 */
	PRIMARY_DO_RESYNC,
	/* End all work with the member, and its connections. No call reports the end. */
	PRIMARY_DO_DROP,
	/*
	 * Remove the records of former epochs and of equalisations. For the own slot, first mark
	 * the union of all ranges in the bitmaps of members that are not in-sync. For another
	 * member, do it only after each flush that was recorded there is acknowledged
	 * (primary_on_joined()).
	 */
	PRIMARY_DO_RETIRE,
	/* Send the view to the member, which stores it as the newest one seen; no answer is
	 * needed. */
	PRIMARY_DO_VIEW,
	/* The application may read and flush. */
	PRIMARY_DO_SERVE,
	/* End all flushes, write bitmaps and slots, unmap; primary_on_quiesced(). */
	PRIMARY_DO_QUIESCE,
	/* Acknowledge nothing until UNBLOCKED. `why` has the reason. */
	PRIMARY_DO_BLOCKED,
	PRIMARY_DO_UNBLOCKED,
	/* Three ends: this primary was demoted; another primary exists; this primary failed,
	 * with `why` and `error` (an -errno). */
	PRIMARY_DO_DEMOTED,
	PRIMARY_DO_FENCED,
	PRIMARY_DO_FAILED,
	PRIMARY_DO_COUNT
};

struct primary_action {
	enum primary_action_type type;
	uint8_t slot; /* slot of the member; MIRROR_NO_SLOT for an action without a member */
	/* EQUALISE, RESYNC, SWAP: the records do not name every range that may differ */
	bool whole;
	bool nothing; /* EQUALISE: no range differs, because the last primary ended well */
	/* RETIRE: keep the member's records, because they name a part that is not mapped here,
	 * or bytes that a failed copy has sent */
	bool keeps;
	bool promotion; /* SWAP: compare the alive key as well, and rewrite it for this epoch */
	const struct mirror_record *record; /* SWAP: valid until the next call */
	const struct mirror_record *expected;
	uint64_t revision; /* revision of `expected` */
	const char *why;   /* text for people; static, or inside struct primary */
	int error;
};

/* The same values as enum register_result. */
enum primary_swap {
	PRIMARY_SWAP_DONE,
	PRIMARY_SWAP_CHANGED, /* the swap will never happen; `now` is the present record */
	PRIMARY_SWAP_UNKNOWN,
	PRIMARY_SWAP_FAILED /* the swap will never happen */
};

/* A member's report with its promise. */
struct primary_report {
	enum mirror_copy copy;
	bool held;
	bool uncertain; /* the member's records may lack a range */
	/* the member's copy is larger than this primary's, and uncertain beyond its end, too */
	bool tail_unknown;
	struct mirror_view seen; /* the newest view that the member had seen before this promise */
};

enum primary_refusal {
	PRIMARY_REFUSED_EPOCH, /* the member has promised a higher epoch */
	PRIMARY_REFUSED_BUSY,  /* the member cannot promise now */
	PRIMARY_REFUSED_SPLIT, /* the member has seen an epoch that the register lacks */
	/* the configuration names another copy, or the copy has another size */
	PRIMARY_REFUSED_COPY
};

/* time limit for a promise, for a host that was silent for a lease */
#define PRIMARY_SILENT_MS   300
#define PRIMARY_UNKNOWN_MAX 8 /* greatest number of unanswered swaps that are kept */

struct primary_member {
	enum primary_member_state state;
	uint64_t id; /* id of the copy, as configured; 0: the slot is free */
	/* in S: a swap has to exclude the member, if that is permitted */
	bool lost;
	bool uncertain, tail_unknown; /* from the member's report */
	bool kept_out;                /* an operator's order: the member must not return */
	/* text for people: why the member is not used; NULL: no known reason */
	const char *trouble;
	uint64_t retry_ms;   /* AWAY: when to fence the member again */
	uint64_t backoff_ms; /* the last pause between two attempts to reach the member */
	uint64_t held_ms;    /* the last pause for a copy that a process holds */
	uint64_t holdoff_ms; /* the last pause after the member left S */
	/* recovering: time at which the member counts as lost; 0: never */
	uint64_t deadline_ms;
	uint64_t insync_ms; /* time at which the member entered S */
	/* the epoch that the member named in its refusal; higher than ours */
	struct mirror_epoch promised;
	uint64_t refused_reads; /* `reads` after which the register must show that epoch */
	/* the view that the member has seen, if it is newer than ours; epoch 0: none */
	struct mirror_view ahead;
	uint64_t ahead_reads; /* value of `reads` after which the register must show that view */
	unsigned splits;      /* number of PRIMARY_REFUSED_SPLIT in a row */
	/* recovering: number of times the member was lost while it was made equal */
	unsigned breaks;
	uint32_t pending; /* mask of the actions to return, a bit for each type */
};

struct primary {
	enum primary_state state;
	uint8_t slot;
	/* member that gets less time because its host is probably gone; or MIRROR_NO_SLOT */
	uint8_t suspect;
	bool force, was_clean, local_failed, demoting, clean;
	uint64_t now;
	uint64_t (*random)(void *arg);
	void *arg;

	struct mirror_record rec; /* the newest record that was read from the register */
	uint64_t revision;

	struct mirror_record offer; /* the swap under way */
	uint64_t offer_against;     /* nonce of the record that the swap compares with */
	bool swapping;
	uint64_t reads;      /* number of answers to READ */
	mirror_mask unknown; /* union of S of all swaps without an answer */
	uint64_t unknown_nonces[PRIMARY_UNKNOWN_MAX];
	/* number of all entries so far; its remainder by the ring's size is the next index */
	unsigned unknown_count;
	uint64_t swap_retry_ms, swap_backoff_ms;
	unsigned swap_failures; /* number of failures in a row */

	struct primary_member members[MIRROR_MEMBERS_MAX];
	uint32_t pending; /* actions that concern no member */
	bool blocked;
	char text[200]; /* why the set is blocked, or why the primary has failed */
	int error;      /* FAILED: -ENOTUNIQ: split */
};

/*
 * `seen`: the newest view that this host has seen (NULL: none). force: promote although the copy is
 * not in-sync. The caller has made sure that no other primary lives: candidate.h, or the operator.
 */
void primary_start(struct primary *p, const struct mirror_record *rec, uint64_t revision,
		   uint8_t slot, const struct mirror_view *seen, bool force, uint64_t now_ms,
		   uint64_t (*random)(void *arg), void *arg);
/* After primary_start(): the host of this member, the former primary, was silent for a lease.
 * The member gets no more time than PRIMARY_SILENT_MS. */
void primary_suspect(struct primary *p, uint8_t slot);
void primary_tick(struct primary *p, uint64_t now_ms);
/* The latest time at which to call primary_tick(); UINT64_MAX: no call is needed. */
uint64_t primary_next_deadline(const struct primary *p);

/* Stores the next action; false: there is none. Each action is returned once. */
bool primary_next(struct primary *p, struct primary_action *action);

/* `now`, `revision`: see enum primary_swap; ignored with UNKNOWN and FAILED. */
void primary_on_swap(struct primary *p, enum primary_swap result, const struct mirror_record *now,
		     uint64_t revision);
/* The end of a READ: the register has this record. The answer may come late. */
void primary_on_record(struct primary *p, const struct mirror_record *rec, uint64_t revision);
/* The same for a record that came without a READ, because the register has changed: the start of
 * that read is unknown. */
void primary_on_changed(struct primary *p, const struct mirror_record *rec, uint64_t revision);

/* Events that answer no action of this primary are ignored. */
void primary_on_promised(struct primary *p, uint8_t slot, const struct primary_report *report);
void primary_on_refused(struct primary *p, uint8_t slot, enum primary_refusal why,
			struct mirror_epoch promised);
void primary_on_ranges(struct primary *p, uint8_t slot);
/* EQUALISE makes progress, so its deadline moves */
void primary_on_progress(struct primary *p, uint8_t slot);
/*
 * A resync may have carried bytes of flushes that are not acknowledged. The member has no intent
 * for them, and may be promoted soon. So the caller records the ranges of all such flushes there
 * (W9) before primary_on_joined(), and after W5, which takes the member's records away. Before
 * primary_on_equal() the ranges of the equalisation contain them. The records are removed when
 * these flushes are acknowledged (RETIRE).
 */
void primary_on_equal(struct primary *p, uint8_t slot);
void primary_on_joined(struct primary *p, uint8_t slot);
void primary_on_joining(struct primary *p, uint8_t slot);
/* The member was reached, and cannot be used now; `trouble` has the reason. */
bool primary_is_refused(const struct primary *p, uint8_t slot);
/* The member is lost: its connection has ended, a flush to it took longer than replica_timeout,
 * or its copy failed. */
void primary_on_lost(struct primary *p, uint8_t slot);

/*
 * While serving, an operator's order takes another member out of S, and keeps it out until
 * primary_readmit(). Returns 0, -EBUSY (the member may not leave, with *why, static) or -EINVAL (no
 * such member). Work with the member ends (DROP). The swap may still fail: the member has left once
 * S lacks it; if kept_out is false again, the member stays.
 */
int primary_exclude(struct primary *p, uint8_t slot, const char **why);
/* The member may return, and is tried at once, without the rest of its pause. */
void primary_readmit(struct primary *p, uint8_t slot);

/* A write-back of the own copy has failed. */
void primary_on_local_failed(struct primary *p);
/* The own daemon cannot record that this epoch serves. No application has read in this epoch. */
void primary_on_serve_failed(struct primary *p);
/*
 * May members be made equal to the own copy? The kernel drops bytes that it cannot write, so a
 * failed copy may lack bytes that other members have acknowledged since. As long as no other member
 * has acknowledged a flush since the failure, the copy has all bytes.
 */
static inline bool primary_is_source(const struct primary *p)
{
	return !p->local_failed || p->rec.view.insync == MIRROR_BIT(p->slot);
}
void primary_demote(struct primary *p);
/* clean: everything was flushed, and no record names a range that may differ. */
void primary_on_quiesced(struct primary *p, bool clean);

/* The members whose copies a flush must reach: S as committed, S of swaps under way or without
 * an answer, and joining members. The own slot stands for the local write-back. */
mirror_mask primary_must_have(const struct primary *p);
/* The other members to which each flush is sent. */
mirror_mask primary_sends_to(const struct primary *p);
/* Members that do not get the present flushes: the caller sets bits in the bitmap of each (W3). */
mirror_mask primary_absent(const struct primary *p);
/* Members that count for min_copies: S as committed, and S of swaps without an answer, because
 * these may have happened. All are in primary_must_have() as well. */
mirror_mask primary_counts(const struct primary *p);
/*
 * Is each member in S, reached, and equal? S alone does not show this: a lost member stays in S
 * until a swap has excluded it.
 */
bool primary_is_whole(const struct primary *p);
/* Does the primary serve, and do enough copies count? */
bool primary_may_ack(const struct primary *p);

const char *primary_state_2str(enum primary_state state);
const char *primary_member_state_2str(enum primary_member_state state);
const char *primary_action_2str(enum primary_action_type type);

#endif
