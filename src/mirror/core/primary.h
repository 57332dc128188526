/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * primary.h -- state machine of the primary of one epoch, from the request for its promotion to
 * its end.
 *
 * A state machine without I/O: its user reports events and carries out actions until primary_next()
 * returns none. One object is one attempt to be primary: after DEMOTED, FENCED or FAILED the object
 * cannot be used again. The user's lock protects the object. Call primary_tick() with the present
 * time (CLOCK_BOOTTIME) before any other event; events happen at the time of the last tick. S is
 * the in-sync set. "Own" means: of this primary's host.
 *
 *   promoting   the swap that begins the epoch
 *   recovering  make the own promise; fence all of S; only then get the ranges of its members; make
 *               the copies equal over the union of all ranges; swap out members that do not answer
 *               in time. If too few copies would be left, first make other copies equal, and swap
 *               them in instead
 *   starting    the swap to `serving`
 *   serving     SERVE: the application may read. Swaps take members out of S and into S.
 *   stopping    QUIESCE, then the swap that ends the epoch
 *
 * A flush is sent to the members that primary_sends_to() returns at the time of the flush's
 * snapshot. The flush is acknowledged after it has reached the members that primary_must_have()
 * returns at the time of the acknowledgement, and not while primary_may_ack() returns false.
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
	PRIMARY_QUIESCING, /* no new flush begins; QUIESCE is being carried out */
	PRIMARY_STOPPING,  /* the swap that ends the epoch */
	PRIMARY_DEMOTED,
	PRIMARY_FENCED,
	PRIMARY_FAILED,
	PRIMARY_STATE_COUNT
};

/* State of a member, from this primary's view. */
enum primary_member_state {
	PRIMARY_MEMBER_NONE, /* the slot is free */
	/* the member was not reached; the next attempt to fence it is at `retry_ms` */
	PRIMARY_MEMBER_AWAY,
	PRIMARY_MEMBER_FENCING, /* the member was asked for a PROMISE */
	PRIMARY_MEMBER_RANGES,  /* recovering: the member's ranges are being read */
	/* recovering: the member waits until the ranges of all members are read */
	PRIMARY_MEMBER_WAITING,
	/* in S: the member is being made equal over the ranges that may differ */
	PRIMARY_MEMBER_EQUALISE,
	/* not in S: catch-up passes send the member the bytes that it lacks */
	PRIMARY_MEMBER_RESYNC,
	/* not in S: the member gets all flushes, and each flush waits for it */
	PRIMARY_MEMBER_JOINING,
	/* like JOINING, and the member's copy is equal: a swap has to take it into S */
	PRIMARY_MEMBER_JOINED,
	PRIMARY_MEMBER_EQUAL, /* in S, and equal to this copy */
	PRIMARY_MEMBER_STATE_COUNT
};

/* An action for the caller. Each comment names the call that reports the action's end. */
enum primary_action_type {
	/*
	 * Swap `record` for `expected` in the register; end: primary_on_swap(). First begin a
	 * bitmap for each member that leaves the in-sync set, unless `whole` is set: then the
	 * records do not name every range in which the copies differ.
	 */
	PRIMARY_DO_SWAP,
	/* Read the register; end: primary_on_record(), or no call if the read fails. */
	PRIMARY_DO_READ,
	/* Connect to the member and fence it; end: primary_on_promised(), primary_on_refused() or
	 * primary_on_lost(). */
	PRIMARY_DO_PROMISE,
	/*
	 * Add the member's ranges to the union of all members' ranges; then call
	 * primary_on_ranges(). For the own slot, first write back the whole copy: bytes that a
	 * former primary placed and did not flush can be read from now on, and their records will
	 * be removed.
	 */
	PRIMARY_DO_RANGES,
	/*
	 * Make the member equal over that union, over the whole file (`whole`) or over `nothing`:
	 * record the ranges at both ends (W9), copy, and prepare to send flushes; then call
	 * primary_on_equal(). If the set already serves, the member is in-sync and lacks only
	 * flushes that are not acknowledged. The ranges are then those of the flushes since the
	 * member was lost, and the member gets all flushes from now on (primary_sends_to()).
	 */
	PRIMARY_DO_EQUALISE,
	/*
	 * W4: resync the member by its bitmap and its own ranges, or with `whole` by digests of
	 * the whole file. Call primary_on_joining() before the first flush is sent to the member,
	 * and primary_on_joined() after W5.
	 */
	PRIMARY_DO_RESYNC,
	/* Stop all work with the member, and close its connections. No call reports that this is
	 * done. */
	PRIMARY_DO_DROP,
	/*
	 * Remove the records of former epochs and of equalisations. For the own slot, first mark
	 * the union of all ranges in the bitmaps of members that are not in-sync. For another
	 * member, remove the records only after each flush that was recorded at that member is
	 * acknowledged (primary_on_joined()).
	 */
	PRIMARY_DO_RETIRE,
	/* Send the view to the member, which stores it as the newest view that it has seen; no
	 * answer is needed. */
	PRIMARY_DO_VIEW,
	/* The application may read and flush. */
	PRIMARY_DO_SERVE,
	/* Finish all flushes, write bitmaps and slots, and unmap; then call
	 * primary_on_quiesced(). */
	PRIMARY_DO_QUIESCE,
	/* Acknowledge no flush until UNBLOCKED. `why` has the reason. */
	PRIMARY_DO_BLOCKED,
	PRIMARY_DO_UNBLOCKED,
	/* The three ways in which a primary stops: it was demoted; another primary exists; it has
	 * failed, with `why` and `error` (an -errno). */
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
	bool nothing; /* EQUALISE: no range differs, because the last primary ended in good order */
	/* RETIRE: keep the member's records, because they name ranges that are not mapped on this
	 * host, or bytes that a failed copy has sent */
	bool keeps;
	bool promotion; /* SWAP: compare the alive key as well, and rewrite it for this epoch */
	const struct mirror_record *record; /* SWAP: the new record; valid until the next call */
	const struct mirror_record *expected;
	uint64_t revision; /* revision of `expected` */
	const char *why;   /* text for people; static, or inside struct primary */
	int error;
};

/* The values are those of enum register_result. */
enum primary_swap {
	PRIMARY_SWAP_DONE,
	PRIMARY_SWAP_CHANGED, /* the swap will never happen; `now` is the present record */
	PRIMARY_SWAP_UNKNOWN,
	PRIMARY_SWAP_FAILED /* the swap will never happen */
};

/* The report that a member sends with its promise. */
struct primary_report {
	enum mirror_copy copy;
	bool held;
	bool uncertain; /* the member's records may lack a range */
	/* the member's copy is larger than this primary's, and the member's records may also lack
	 * ranges beyond this primary's end */
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

/* time limit for the promise of a host that was silent for a lease */
#define PRIMARY_SILENT_MS   300
#define PRIMARY_UNKNOWN_MAX 8 /* greatest number of unanswered swaps that are kept */

struct primary_member {
	enum primary_member_state state;
	uint64_t id; /* id of the member's copy in the configuration; 0: the slot is free */
	/* in S: a swap has to exclude the member, if that is permitted */
	bool lost;
	bool uncertain, tail_unknown; /* from the member's report */
	bool kept_out;                /* by an operator's order the member must not return */
	/* a text for people: the reason why the member is not used; NULL: no known reason */
	const char *trouble;
	uint64_t retry_ms;   /* AWAY: time at which to fence the member again */
	uint64_t backoff_ms; /* the last pause between two attempts to reach the member */
	uint64_t held_ms;    /* the last pause for a copy that a process holds */
	uint64_t holdoff_ms; /* the last pause after the member left S */
	/* recovering: time at which the member counts as lost; 0: never */
	uint64_t deadline_ms;
	uint64_t insync_ms; /* time at which the member entered S */
	/* the epoch that the member named in its refusal, which is higher than this primary's
	 * epoch */
	struct mirror_epoch promised;
	/* value of `reads` from which on the register must show that epoch */
	uint64_t refused_reads;
	/* the view that the member has seen, if it is newer than this primary's record; epoch 0:
	 * none */
	struct mirror_view ahead;
	uint64_t ahead_reads; /* value of `reads` from which on the register must show that view */
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

	struct mirror_record offer; /* the new record of the swap that has no answer yet */
	uint64_t offer_against;     /* nonce of the record that the swap compares with */
	bool swapping;
	uint64_t reads;      /* number of answers to READ */
	mirror_mask unknown; /* union of the sets S of all swaps whose result is unknown */
	uint64_t unknown_nonces[PRIMARY_UNKNOWN_MAX];
	/* number of all entries so far; modulo the ring's size, the index of the next entry */
	unsigned unknown_count;
	uint64_t swap_retry_ms, swap_backoff_ms;
	unsigned swap_failures; /* number of failures in a row */

	struct primary_member members[MIRROR_MEMBERS_MAX];
	uint32_t pending; /* mask of the actions that concern no member */
	bool blocked;
	char text[200]; /* the reason why the set is blocked, or why the primary has failed */
	int error;      /* in the state FAILED: the -errno; -ENOTUNIQ: the set is split */
};

/*
 * Start an attempt. `seen`: the newest view that this host has seen (NULL: none). force: promote
 * although the copy is not in-sync. The caller has made sure, by candidate.h or an operator's
 * order, that no other primary is alive.
 */
void primary_start(struct primary *p, const struct mirror_record *rec, uint64_t revision,
		   uint8_t slot, const struct mirror_view *seen, bool force, uint64_t now_ms,
		   uint64_t (*random)(void *arg), void *arg);
/* Call this after primary_start() if the host of this member, the former primary, was silent for a
 * lease. The member then gets no more time than PRIMARY_SILENT_MS. */
void primary_suspect(struct primary *p, uint8_t slot);
void primary_tick(struct primary *p, uint64_t now_ms);
/* Returns the latest time at which to call primary_tick(); UINT64_MAX: no call is needed. */
uint64_t primary_next_deadline(const struct primary *p);

/* Store the next action in *action. Returns false if there is no action. Each action is returned
 * once. */
bool primary_next(struct primary *p, struct primary_action *action);

/* Report the result of a swap. `now` and `revision` are described at enum primary_swap; they are
 * ignored with UNKNOWN and FAILED. */
void primary_on_swap(struct primary *p, enum primary_swap result, const struct mirror_record *now,
		     uint64_t revision);
/* Report the end of a READ: the register has this record. The answer may come late. */
void primary_on_record(struct primary *p, const struct mirror_record *rec, uint64_t revision);
/* Report a record that came without a READ, because the register has changed: the start of that
 * read is unknown. */
void primary_on_changed(struct primary *p, const struct mirror_record *rec, uint64_t revision);

/* If an event answers no action of this primary, the event is ignored. */
void primary_on_promised(struct primary *p, uint8_t slot, const struct primary_report *report);
void primary_on_refused(struct primary *p, uint8_t slot, enum primary_refusal why,
			struct mirror_epoch promised);
void primary_on_ranges(struct primary *p, uint8_t slot);
/* Report progress of an EQUALISE, which moves its deadline. */
void primary_on_progress(struct primary *p, uint8_t slot);
/*
 * Report that the member is equal, or joined. A resync can have carried bytes of flushes that are
 * not acknowledged. The member has no intent for these bytes, and may be promoted soon. So the
 * caller records the ranges of all such flushes at the member (W9) before primary_on_joined(), and
 * after W5, which removes the member's records. Before primary_on_equal() the ranges of the
 * equalisation contain these ranges. The records are removed when these flushes are acknowledged
 * (RETIRE).
 */
void primary_on_equal(struct primary *p, uint8_t slot);
void primary_on_joined(struct primary *p, uint8_t slot);
void primary_on_joining(struct primary *p, uint8_t slot);
/* Returns true if the member was reached but cannot be used now; `trouble` has the reason. */
bool primary_is_refused(const struct primary *p, uint8_t slot);
/* Report that the member is lost: its connection has ended, a flush to it took longer than
 * replica_timeout, or its copy failed. */
void primary_on_lost(struct primary *p, uint8_t slot);

/*
 * While serving, by an operator's order take another member out of S, and keep it out until
 * primary_readmit(). Returns 0, -EBUSY (the member is not allowed to leave; *why is a static text)
 * or -EINVAL (no such member). Work with the member ends (DROP). The swap may still fail: the
 * member has left only after S lacks it; if kept_out becomes false again, the member stays.
 */
int primary_exclude(struct primary *p, uint8_t slot, const char **why);
/* Let the member return. The primary tries the member immediately, without the rest of the member's
 * pause. */
void primary_readmit(struct primary *p, uint8_t slot);

/* Report that a write-back of the own copy has failed. */
void primary_on_local_failed(struct primary *p);
/* Report that the own daemon cannot record that this epoch serves. No application has read in this
 * epoch. */
void primary_on_serve_failed(struct primary *p);
/*
 * Returns true if members may be made equal to the own copy. The kernel drops bytes that it cannot
 * write, so a failed copy may lack bytes that other members have acknowledged since the failure. As
 * long as no other member has acknowledged a flush since then, the copy has all bytes.
 */
static inline bool primary_is_source(const struct primary *p)
{
	return !p->local_failed || p->rec.view.insync == MIRROR_BIT(p->slot);
}
void primary_demote(struct primary *p);
/* Report the end of QUIESCE. clean: everything was flushed, and no record names a range that may
 * differ. */
void primary_on_quiesced(struct primary *p, bool clean);

/* Returns the members whose copies a flush must reach: S of the committed record, S of each swap
 * without an answer so far, and joining members. The own slot stands for the local write-back. */
mirror_mask primary_must_have(const struct primary *p);
/* Returns the other members to which each flush is sent. */
mirror_mask primary_sends_to(const struct primary *p);
/* Returns the members that count for min_copies: S of the committed record, and S of each swap
 * without an answer, because such a swap may have happened. All of them are in primary_must_have()
 * as well. */
mirror_mask primary_counts(const struct primary *p);
/*
 * Returns true if each member in S is reached and equal. S alone does not show this, because a
 * lost member stays in S until a swap has excluded it.
 */
bool primary_is_whole(const struct primary *p);
/* Returns true if the primary serves, and enough copies count for min_copies. */
bool primary_may_ack(const struct primary *p);

const char *primary_state_2str(enum primary_state state);
const char *primary_member_state_2str(enum primary_member_state state);
const char *primary_action_2str(enum primary_action_type type);

#endif
