/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_impl.h -- the STag table from inside: mr.c has the regions in it, mw.c the windows. */
#ifndef RNIC_MR_IMPL_H
#define RNIC_MR_IMPL_H

#include <stddef.h>

#include "softrnic/rnic/mr.h"

struct mr_table {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* the last hold of a killed region was released */
	struct list *buckets;
	size_t num_buckets, count;
	struct list spare;   /* descriptions of freed regions, to be used again; killed regions */
	atomic_uint waiters; /* threads that wait for `idle` */
	bool forked;         /* holds taken before the fork() are ignored */
};

/*
 * An STag is an index of 24 bits and a key of 8 bits (ibv_inc_rkey(3)). No two entries have an index
 * in common, unless they are of one window, or of one region that was registered anew.
 */
#define MR_INDEX(stag) ((stag) >> 8)

/* These five are called with the table's mutex. */
struct list *mr_bucket_of(const struct mr_table *table, uint32_t stag);
/* Of several descriptions with this STag, at most one is in force: return that one. */
struct mr *mr_find_locked(const struct mr_table *table, uint32_t stag);
uint32_t mr_new_stag_locked(struct mr_table *table);
void mr_publish_locked(struct mr_table *table, struct mr *mr, uint32_t stag);
/* Under the STag, which nothing else gets then, but not in force. */
void mr_reserve_locked(struct mr_table *table, struct mr *mr, uint32_t stag);

/* A description that no look-up finds, with the contents of a former use. NULL: no memory. */
struct mr *mr_alloc(struct mr_table *table);
bool mr_wraps(uint64_t start, uint64_t len);

#endif
