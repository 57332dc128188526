/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h -- simulates a mirror set of up to five hosts with network, register, media and clocks,
 * thousands of times, each run from a seed.
 *
 * The rules are the product's code: primary, view, candidate, lease, flush, resync, member and
 * metadata. The code around the rules is simulated: an application that stores, flushes and reads;
 * the part of the library that carries out the primary's actions (lib*.c); the daemon that applies
 * core/member.h (daemon.c). All random numbers of a run come from its seed.
 */
#ifndef MIRROR_SIM_H
#define MIRROR_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mirror/core/candidate.h"
#include "mirror/core/flush.h"
#include "mirror/core/growth.h"
#include "mirror/core/lease.h"
#include "mirror/core/member.h"
#include "mirror/core/primary.h"
#include "mirror/core/promotion.h"
#include "mirror/core/resync.h"
#include "mirror/core/view.h"
#include "mirror_sim/modes.h"
#include "sim/prng.h"

#define HOSTS        5
#define EXTENTS      4             /* used extents: three in a row, and one far away */
#define BLOCKS       (2 * EXTENTS) /* used blocks */
#define BLOCK_WORDS  3
#define WORDS        (BLOCKS * BLOCK_WORDS)
#define FAR_EXTENT   64u /* a file that includes this extent has its bitmaps at another offset */
#define BITMAP_WORDS ((FAR_EXTENT + 1) * (MIRROR_EXTENT / MIRROR_BLOCK) / 64)
/* number of possible sizes of a set, which are counted in used blocks */
#define SIZES      BLOCKS
#define USUAL_SIZE 6 /* size of a set that does not grow */
#define FLIGHTS    32
/* number of past records that are kept, because answers in flight can still contain them */
#define RECORDS 64
#define MS      1000ull /* a millisecond; times are in microseconds */
#define NEVER   UINT64_MAX

struct world;
struct event;
typedef void sim_fn(struct world *w, struct event *e);

struct event {
	uint64_t at, order;
	sim_fn *fn;
	uint32_t host, uid; /* the host of the event, and the uid of its process */
	uint64_t arg;
	void *data; /* freed together with the event */
};

/* ---- media: the content that processes see, and the content that survives a loss of power ---- */

struct disk {
	uint64_t cache[WORDS], medium[WORDS]; /* words past the file's end are zero */
	uint32_t failing;                     /* words that the medium cannot write */
	/* dropped: words that were not written back although the kernel counts them as clean */
	uint32_t dropped;
	uint64_t len, len_medium; /* length of the data file */
	uint8_t *meta, *meta_medium;
	uint64_t meta_len, meta_len_medium;
	/* used bytes of the ring; the bytes after them are zero and never read */
	uint64_t ring_used;
};

/* ---- the network ---- */

enum msg_type {
	MSG_OPEN,
	MSG_CLOSE,
	MSG_PROMISE,
	MSG_RANGES,
	MSG_RECORD,
	MSG_BEGIN,
	MSG_END,
	MSG_RETIRE,
	MSG_VIEW,
	MSG_FLUSH,
	MSG_PIECE
};
#define MSG_RANGES_MAX 24

struct msg {
	enum msg_type type;
	bool refused;
	enum primary_refusal refusal;
	struct mirror_epoch epoch;
	uint64_t seq, acked;
	uint32_t mask;  /* the words concerned, one bit each */
	uint32_t cover; /* the words that the next flush operation on this connection must cover */
	uint64_t words[WORDS];
	uint32_t count;
	struct mirror_range ranges[MSG_RANGES_MAX];
	struct primary_report report;
	uint64_t size; /* size of the reporting copy */
	bool unknown;
	struct mirror_epoch copy_epoch; /* epoch in the report */
	struct mirror_view view;
	struct resync_piece piece;
	uint64_t differing;
	uint32_t sync; /* number of the resync to which the message belongs */
};

struct conn {
	uint32_t lib_uid, daemon_uid;
	uint8_t from, to;
	uint64_t member_id; /* id of the copy that the message is meant for */
	enum member_kind kind;
	struct mirror_epoch epoch;
	bool src_open, dst_open, granted;
	/* arrival times of the last messages; later ones must not overtake them */
	uint64_t fwd_at, back_at;
	uint64_t cut_fwd, cut_back;
};

/* ---- the register ---- */

struct sim_register {
	struct mirror_record rec;
	uint64_t revision, alive_revision, alive_counter;
	struct mirror_epoch alive_epoch;
	bool alive_set;
	uint64_t version; /* number of changes of rec */
	uint64_t down_until;
	struct mirror_record old; /* an older record, to which the register can be restored */
	uint64_t old_revision;
};

/* A result of reading the register. */
struct register_seen {
	uint64_t at;                /* time of the read operation */
	uint64_t version, revision; /* version and revision of the record */
	bool alive_set;
	struct mirror_epoch alive_epoch;
	uint64_t alive_counter, alive_revision;
};

/* ---- a primary process ---- */

enum sync_kind { SYNC_NONE, SYNC_EQUALISE, SYNC_REPAIR, SYNC_CATCH_UP };

struct peer {
	uint32_t conn[3]; /* for each kind of connection: its index + 1, or 0 */
	uint32_t range_count;
	struct mirror_range ranges[MSG_RANGES_MAX]; /* ranges that the member reported */
	struct mirror_epoch copy_epoch;
	uint64_t missed[BITMAP_WORDS]; /* blocks of flushes that the member possibly lacks */
	enum sync_kind sync;
	uint32_t sync_id;
	bool whole, lane_asked, ending, running;
	bool retires;     /* drop the member's records after `settled` is acknowledged */
	uint64_t settled; /* number of the last flush of which the resync can have copied parts */
	struct resync rs;
	uint64_t bits[BITMAP_WORDS], unsure[BITMAP_WORDS];
};

struct flight {
	uint64_t seq;   /* number of the flush; 0: this entry is free */
	uint64_t round; /* number of the first part that is written back together with this part */
	uint64_t began;
	uint32_t mask, count;
	struct mirror_range ranges[BLOCKS];
	uint64_t words[WORDS];
	bool acked;
};

struct lib {
	uint32_t uid, host;
	uint64_t size;  /* size of the mapping */
	unsigned words; /* number of words in the mapping */
	struct primary p;
	struct mirror_epoch epoch; /* the epoch that the process has begun; number 0: none */
	struct meta meta;          /* the process's own state of the metadata */
	struct lease lease;
	uint64_t renew_ms; /* time of the daemon's next renewal of the lease */
	struct flush_core flush;
	struct flight flights[FLIGHTS];
	struct peer peers[MIRROR_MEMBERS_MAX];
	struct mirror_range all[128]; /* the ranges of all reports */
	uint32_t all_count;
	uint32_t next_sync;
	uint64_t app[WORDS]; /* the words as the application sees them */
	uint64_t app_seq;
	bool app_runs, served, ended, quiescing, wants_flush;
	uint32_t wanted; /* words of the waiting flush, or of its next part */
	struct parts {
		uint32_t later; /* words of the parts after `wanted` */
		/*
		 * number of the first part that is not written back; 0: all parts are written back
		 */
		uint64_t round;
		uint64_t not_before;
		bool is_between; /* the next flush belongs to another thread, between two parts */
		/* while is_between: the words that `wanted` gets after the other thread's flush */
		uint32_t aside;
	} parts;
	/* direct mapping: words of the extent that becomes cold, this extent, and words of extents
	 * that must be flushed */
	uint32_t cooling, cooling_extent, mirroring;
	uint64_t cooling_seq;
	bool is_ending;
	uint64_t failed_seq; /* number of the first flush whose local write-back possibly failed */
	bool says_failed;    /* inform the daemon of the failure as soon as it runs */
	struct resync_hold holds[MIRROR_MEMBERS_MAX];
	struct mirror_range held_ranges[BLOCKS];
	uint32_t held_count;
	struct register_seen seen; /* the register and the alive key, as the candidate read them */
};

/* An operator whose tool waits for a daemon: the view for which the order is valid, and the kind of
 * order. */
struct operator
{
	bool waits, is_forcing;
	uint64_t number, since;
	/* until this time the host cannot reach the register, even after the faults have ended, so
	 * that the order fails */
	uint64_t cut_until;
	struct mirror_view view;
};

struct host {
	struct world *world;
	uint32_t id;
	bool powered;
	uint32_t daemon_uid; /* 0: no daemon runs */
	uint64_t shown_at;   /* time of the newest read that was shown to the copy's rules */
	int64_t clock_offset;
	double clock_rate;
	struct disk disk;
	struct meta meta;
	struct member member;
	struct mirror_uuid boot;
	struct candidate candidate;
	struct lib *lib;
	uint64_t holder; /* uid of the library's process, as the daemon has recorded it */
	/* persists_left: number of write-backs until the host crashes in the middle of one;
	 * negative: no crash */
	long persists_left;
	int stopping; /* 1: the host's processes are about to end; 2: its power is about to fail */
	struct growth growth;
	struct sim_order *order; /* an order to grow that the daemon is carrying out */
	uint64_t capacity;       /* capacity of the host's disk */
	bool split;              /* the daemon has reported that the set is split */
	bool has_polled;
	struct mirror_view polled;        /* the view that the daemon read last */
	struct promotion_order promotion; /* the order for a promotion, in the daemon's memory */
	struct operator operator;
	/*
	 * changes whenever the medium fails or recovers, so that a later event detects the change
	 */
	uint32_t medium_uid;
};

struct counters {
	uint64_t runs, events, flushes, acks, serves, shrinks, expands, fills, crashes, powercuts,
		demotes, splits, late, fenced, repairs, wholes, joins, unhealed, restores, configs,
		stops, step_checks, rots, replaced, forces, discards, grows, refused, taken, media,
		local_failures, lost, orders;
};

enum plan_kind { PLAN_NONE, PLAN_CHAIN, PLAN_LEASE, PLAN_JOIN, PLAN_FENCE };

struct world {
	uint64_t seed, now, order, steps;
	enum sim_mode mode;
	bool direct;  /* true: the mapping is direct; false: isolated */
	bool restore; /* this run restores the register from an old snapshot */
	struct prng rng;
	struct event *heap;
	size_t heap_count, heap_room;
	struct conn *conns;
	uint32_t conn_count, conn_room;
	uint32_t uids;
	uint64_t nonces;
	unsigned hosts;
	unsigned words; /* largest number of words of a copy in this run */
	/* grows: the set grows, up to most_blocks used blocks. These decisions have separate random
	 * numbers */
	bool grows;
	unsigned most_blocks;
	struct prng growth_rng;
	bool media_fail; /* media of primaries fail; with separate random numbers */
	struct prng medium_rng;
	bool in_parts; /* some flushes are in parts; with separate random numbers */
	struct prng parts_rng;
	bool may_order; /* operators order promotions; with separate random numbers */
	bool is_manual; /* the set has `auto = no` */
	struct prng orders_rng;
	enum plan_kind plan;
	unsigned plan_step, plan_host;
	bool healing, restored;
	bool resolving; /* an operator resolves the split on each host that has a split copy */
	bool may_force;
	bool forced; /* some epoch began with a promotion by force */
	/* gave_up: a forced promotion or a discarded copy of S gave up data, and no process has
	 * served since */
	bool gave_up;
	/* times at which the faults end, and at which the present part of the run ends */
	uint64_t trouble_until, until;
	struct host host[HOSTS];
	uint64_t cut_until[HOSTS][HOSTS];
	uint64_t register_cut_until[HOSTS];
	struct sim_register reg;
	/* past records of the register, indexed by version modulo RECORDS */
	struct mirror_record records[RECORDS];
	/* for each word: the acknowledged value, and the lowest value that is permitted */
	uint64_t acked[WORDS], floor[WORDS];
	bool violated;
	char violation[300];
	struct counters count;
	bool trace;
};

/* functions of sched.c */
void sched_add(struct world *w, uint64_t delay, sim_fn *fn, uint32_t host, uint32_t uid,
	       uint64_t arg, void *data);
bool sched_next(struct world *w, struct event *e);
void sched_clear(struct world *w);
uint64_t sim_random(void *world);
bool sim_chance(struct world *w, unsigned permille);
uint64_t sim_between(struct world *w, uint64_t lo, uint64_t hi);
uint64_t sim_delay(struct world *w); /* returns a random delay of a message */
uint64_t host_ms(const struct world *w, const struct host *h);
uint64_t host_us(const struct world *w, const struct host *h);
void sim_trace(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* functions of disk.c */
uint64_t size_of_blocks(unsigned blocks);
unsigned words_below(uint64_t size);
uint32_t words_mask(unsigned words);
uint64_t word_offset(unsigned word);
/* returns the words in the range, one bit each */
uint32_t words_in(const struct mirror_range *range);
/* returns all words of the blocks that contain these words */
uint32_t words_of_block(uint32_t words);
uint32_t ranges_of_words(uint32_t words, struct mirror_range *ranges);
void disk_format(struct disk *d, uint64_t size);
/* Extend the data file and the metadata file for a set of this size; bytes past `keep` become zero.
 * disk_settle() makes the extension durable. */
void disk_extend(struct disk *d, uint64_t keep, uint64_t size);
void disk_settle(struct disk *d, uint64_t keep);
void disk_place_intent(struct disk *d, uint64_t seq, const uint8_t *bytes, size_t len);
int disk_persist_meta(void *host, uint64_t offset, uint64_t len);
/* Returns false if some words could not be written. */
bool disk_write_back(struct disk *d, uint32_t words);
void disk_store(struct disk *d, unsigned word, uint64_t value);
void disk_power_cut(struct world *w, struct disk *d);
void disk_rot(struct world *w, struct disk *d, bool hot_only);
void disk_evict(struct world *w, struct disk *d);

/* functions of net.c */
uint32_t conn_open(struct world *w, struct lib *lib, uint8_t to, enum member_kind kind);
void conn_send(struct world *w, uint32_t conn, const struct msg *m);
void conn_answer(struct world *w, uint32_t conn, const struct msg *m);
/* the connecting end closes the connection properly */
void conn_close(struct world *w, uint32_t conn);
void conn_cut(struct world *w, uint32_t conn);
void conn_silence(struct world *w, uint32_t conn);
void net_cut(struct world *w, uint8_t a, uint8_t b, uint64_t until);
void net_lib_gone(struct world *w, uint32_t lib_uid, bool abrupt);
void conn_stall(struct world *w, uint32_t conn, uint64_t delay);
void net_daemon_gone(struct world *w, uint32_t daemon_uid);

/* functions of register.c */
/* Call this after a change of rec. It keeps the former record for answers in flight. */
void register_changed(struct world *w);
/* returns the record of that version, or NULL */
const struct mirror_record *register_record(const struct world *w, uint64_t version);
bool register_is_away(const struct world *w, uint32_t host);
struct register_seen register_look(const struct world *w);
void register_swap(struct world *w, struct lib *lib, const struct primary_action *a);
void register_read(struct world *w, struct lib *lib);
void register_renew(struct world *w, struct lib *lib);
void register_clear(struct world *w, struct host *h, struct mirror_epoch epoch);
void register_restore(struct world *w);

/* functions of daemon.c */
void daemon_start(struct world *w, struct host *h);
void daemon_end(struct world *w, struct host *h);
void daemon_on_msg(struct world *w, struct host *h, uint32_t conn, struct msg *m);
void daemon_on_closed(struct world *w, struct host *h, uint32_t conn);
void daemon_force(struct world *w, struct host *h, const struct register_seen *seen);
void daemon_poll(struct world *w, struct event *e);
void host_power_cut(struct world *w, struct host *h);
void host_power_on(struct world *w, struct host *h);
/* ends the processes or cuts the power as h->stopping requests */
void host_settle(struct world *w, struct host *h);

/* functions of lib.c, lib_sync.c and lib_flush.c */
void lib_start(struct world *w, struct host *h, const struct register_seen *seen, bool force);
void lib_crash(struct world *w, struct host *h);
void lib_unmap(struct world *w, struct host *h, bool clean);
struct lib *lib_find(struct world *w, uint32_t host, uint32_t uid);
void lib_run(struct world *w, struct lib *lib);
void lib_on_msg(struct world *w, struct lib *lib, uint32_t conn, struct msg *m);
void lib_on_conn_lost(struct world *w, struct lib *lib, uint32_t conn);
void lib_drop(struct world *w, struct lib *lib, unsigned slot);
bool lib_mark_hot(struct world *w, struct lib *lib, const struct mirror_range *ranges, uint32_t n);
void sync_begin(struct world *w, struct lib *lib, unsigned slot, enum sync_kind kind, bool whole);
void sync_on_msg(struct world *w, struct lib *lib, unsigned slot, struct msg *m);
void sync_on_open(struct world *w, struct lib *lib, unsigned slot, enum member_kind kind);
void sync_pump(struct world *w, struct lib *lib, unsigned slot);
void sync_end(struct world *w, struct lib *lib, unsigned slot);
void sync_retire(struct world *w, struct lib *lib, unsigned slot);
void sync_on_acked(struct world *w, struct lib *lib);
void bits_add(uint64_t *bits, const struct mirror_range *ranges, uint32_t n);
void app_step(struct world *w, struct event *e);
void app_hurry(struct world *w, struct lib *lib); /* lets the application flush now */
void flush_try(struct world *w, struct lib *lib);
void flush_settle(struct world *w, struct lib *lib);
void flush_on_answer(struct world *w, struct lib *lib, unsigned slot, uint64_t seq);
void flush_check_timeouts(struct world *w, struct lib *lib);
void flush_miss(struct world *w, struct lib *lib, unsigned slot);
void flush_want(struct lib *lib, uint32_t words);
void flush_written_back(struct world *w, struct event *e);

/* functions of parts.c */
void parts_choose(struct world *w);
/* Request a flush of these words, possibly in parts. */
void parts_want(struct world *w, struct lib *lib, uint32_t words);
/* Returns true if the flushing thread has not reached the next part yet. */
bool parts_are_early(const struct world *w, const struct lib *lib);
/* Send flush operations for the parts that are placed already. Called when the next part has to
 * wait. */
void parts_on_wait(struct world *w, struct lib *lib);
/* Set f->round, which decides with which parts this part is written back. Called after the part has
 * got its number. */
void parts_on_begin(struct lib *lib, struct flight *f);
/* Called when the part is placed at the member. Returns the words that the flush operation after
 * this part covers; 0: no flush operation follows. */
uint32_t parts_cover(const struct world *w, struct lib *lib, unsigned slot, const struct flight *f);
/* Choose the next flush: the next part, or a flush of another thread between two parts. Called
 * after the part has been posted. Returns false if it was the last part. */
bool parts_go_on(struct world *w, struct lib *lib);
/* Returns the words of the write-back after this part, which is the last part of its round. */
uint32_t parts_own(const struct world *w, const struct lib *lib, const struct flight *f);

/* functions of lib_direct.c */
void direct_store(struct world *w, struct lib *lib, unsigned word, uint64_t value);
uint32_t direct_wants(const struct lib *lib);
void direct_on_flush(struct lib *lib, const struct flight *f);
void direct_on_acked(struct lib *lib);
void direct_settle(struct world *w, struct lib *lib, unsigned slot);
uint32_t direct_carried(const struct world *w, const struct lib *lib, struct mirror_range *ranges);
bool direct_end(struct lib *lib);

/* functions of growth.c */
/* Decide whether the set grows in this run. Returns its initial size. */
uint64_t growth_choose(struct world *w);
void growth_orders(struct world *w, struct event *e);
void growth_make_disk(struct world *w, struct host *h);
bool growth_give_order(struct world *w, struct host *h, uint64_t size);
void growth_forget(struct host *h); /* called when the daemon ends */
/* Give the copy the size in the register, or extend the copy's files to this size. */
void growth_look(struct world *w, struct host *h, const struct mirror_record *rec);
bool growth_is_in_the_way(const struct world *w, const struct host *h,
			  const struct mirror_record *rec);
void growth_before_restore(struct world *w, struct host *h);
/* After the faults have ended, do what an operator does to give every copy the set's size. */
void growth_operate(struct world *w);
bool growth_is_well(const struct world *w);

/* functions of orders.c */
void orders_choose(struct world *w);
void orders_trouble(struct world *w, struct event *e);
void orders_give(struct world *w, struct host *h, enum promotion_kind kind, uint64_t lives);
void orders_forget(struct host *h); /* called when the daemon ends */
enum promotion_kind orders_on_read(struct world *w, struct host *h, const struct register_seen *r,
				   const struct mirror_view *now);
/* Returns true if the daemon lets a process of this host follow the ended primary. */
bool orders_may_follow(const struct world *w, const struct host *h, const struct mirror_view *now,
		       enum promotion_kind order);
/* Returns true if the daemon refuses the process's swap because the daemon has no order for this
 * swap. */
bool orders_lack(const struct world *w, const struct host *h, const struct primary_action *a);
/* Called when a process sends the swap of a promotion. Returns true if an operator still waits for
 * this promotion, or if no order is needed. */
bool orders_want(const struct world *w, const struct host *h, const struct primary_action *a);

/* functions of medium.c */
void medium_choose(struct world *w);
void medium_trouble(struct world *w, struct event *e);
uint32_t medium_extent(const struct disk *d, uint32_t words);
void medium_failed(struct world *w, struct lib *lib, uint64_t first);
void medium_on_daemon(struct world *w, struct lib *lib);
void medium_on_end(struct host *h, const struct lib *lib);
uint64_t medium_acked(const struct world *w, const struct lib *lib, uint64_t acked);
bool medium_is_durable(const struct world *w, const struct lib *lib, uint64_t seq);
bool medium_has_failed(const struct host *h);
/* Returns true if all copies of S have failed, no process serves, and no other copy can be used. */
bool medium_is_all_lost(struct world *w);
/* After the faults have ended, do what an operator does about failed copies. */
void medium_operate(struct world *w);

/* functions of oracle.c */
uint64_t value_make(unsigned word, uint64_t epoch, uint64_t seq);
void oracle_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void oracle_on_map(struct world *w, const struct lib *lib, const struct mirror_record *rec);
void oracle_on_serving(struct world *w, const struct mirror_record *rec);
void oracle_on_ack(struct world *w, const struct flight *f);
void oracle_on_read(struct world *w, struct lib *lib);
void oracle_on_place(struct world *w, struct host *h, const struct conn *c);
void oracle_step(struct world *w);
void oracle_at_end(struct world *w);

/* functions of plan.c */
void plan_choose(struct world *w);
void plan_on_flush(struct world *w, struct lib *lib);
bool plan_may_promote(const struct world *w, const struct host *h);
bool plan_is_smooth(const struct world *w);
bool plan_is_alone(const struct world *w);
bool plan_is_eager(const struct world *w, const struct host *h);
void plan_on_equalise(struct world *w, struct lib *lib, unsigned slot);
void plan_on_equal(struct world *w, struct lib *lib);
bool plan_on_renewal(struct world *w, uint32_t host, uint64_t *delay);
void plan_on_promise(struct world *w, struct mirror_epoch epoch);
void plan_on_join(struct world *w, struct lib *lib, unsigned slot);
void plan_on_expand(struct world *w, uint32_t host);

/* functions of setup.c */
void world_make_set(struct world *w);
/* Make a copy as `rpmirror init` does, or an empty copy. */
void world_format(struct world *w, struct host *h, const struct mirror_config *config,
		  uint32_t flags);

/* functions of world.c */
/* The next functions cause faults at critical times. Each of them acts with the probability
 * `permille`, if it has this argument. */
/* End the primary's process within `within` microseconds. */
void world_ambush_process(struct world *w, uint32_t host, unsigned permille, uint64_t within);
/* Let the primary's host, and sometimes every host, lose power in the middle of a flush. */
void world_ambush_flush(struct world *w, uint32_t host, unsigned permille);
void world_ambush_member(struct world *w, uint32_t host, mirror_mask members, unsigned permille);
/* Let the primary's host lose power within `within` microseconds, for `for_us` microseconds. */
void world_ambush_power(struct world *w, uint32_t host, uint64_t within, uint64_t for_us);
/* Do what `rpmirror member replace` (an empty copy replaces the present one) and `rpmirror promote
 * --force` do. */
void world_replace(struct world *w, struct host *h);
void world_force_now(struct world *w, struct host *h);
bool world_may_be_forced(const struct host *h);
/* Swap a new configuration into the register, like the operator's tool. */
bool world_configure(struct world *w, const struct mirror_config *config);
bool world_run(struct world *w, uint64_t seed, enum sim_mode mode, bool restore);
void world_fini(struct world *w);

#endif
