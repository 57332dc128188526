/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_impl.h -- the struct of the STag table, and functions that mr.c and mw.c share. mr.c handles
 * regions, mw.c windows. */
#ifndef RNIC_MR_IMPL_H
#define RNIC_MR_IMPL_H

#include <stddef.h>

#include "softrnic/rnic/mr.h"

struct mr_table {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* signalled when the last hold of a killed region is released */
	struct list *buckets;
	size_t num_buckets, count;
	struct list spare;   /* reusable descriptions of freed regions; they count as killed */
	atomic_uint waiters; /* threads that wait for `idle` */
	bool forked;         /* holds taken before the fork() are ignored */
};

/* An STag is an index of 24 bits and a key of 8 bits (ibv_inc_rkey(3)). Two entries never have the
 * same index, unless both belong to the same window, or to the same region that was registered
 * again. */
#define MR_INDEX(stag) ((stag) >> 8)

/* The following functions are called with the table's mutex. */
struct list *mr_bucket_of(const struct mr_table *table, uint32_t stag);
/* Several descriptions may have this STag; return the one in force, or NULL if none is in force. */
struct mr *mr_find_locked(const struct mr_table *table, uint32_t stag);
uint32_t mr_new_stag_locked(struct mr_table *table);
void mr_publish_locked(struct mr_table *table, struct mr *mr, uint32_t stag);
/* Enter the description under the STag, so that no other description gets this STag. No look-up
 * finds it yet. */
void mr_reserve_locked(struct mr_table *table, struct mr *mr, uint32_t stag);

/* Allocate a description that no look-up finds. Its fields may still have the values of an earlier
 * use. Returns NULL if out of memory. */
struct mr *mr_alloc(struct mr_table *table);
bool mr_wraps(uint64_t start, uint64_t len);

#endif
