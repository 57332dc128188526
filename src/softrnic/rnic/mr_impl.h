/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_impl.h -- the inside of the STag table: mr.c adds regions, mw.c windows. */
#ifndef RNIC_MR_IMPL_H
#define RNIC_MR_IMPL_H

#include <stddef.h>

#include "softrnic/rnic/mr.h"

struct mr_table {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* the last hold of a killed region was released */
	struct list *buckets;
	size_t num_buckets, count;
	struct list spare;   /* reusable descriptions of freed regions; they count as killed */
	atomic_uint waiters; /* threads that wait for `idle` */
	bool forked;         /* holds taken before the fork() are ignored */
};

/* An STag is an index of 24 bits and a key of 8 bits (ibv_inc_rkey(3)). Two entries never have the
 * same index, except those of one window, or of one region that was registered anew. */
#define MR_INDEX(stag) ((stag) >> 8)

/* These five are called with the table's mutex. */
struct list *mr_bucket_of(const struct mr_table *table, uint32_t stag);
/* Of several descriptions with this STag, return the one in force; NULL: none is. */
struct mr *mr_find_locked(const struct mr_table *table, uint32_t stag);
uint32_t mr_new_stag_locked(struct mr_table *table);
void mr_publish_locked(struct mr_table *table, struct mr *mr, uint32_t stag);
/* Enter the description under the STag, so that no other can get the STag, but not in force. */
void mr_reserve_locked(struct mr_table *table, struct mr *mr, uint32_t stag);

/* Allocate a description that no look-up finds. It may have the contents of an earlier use. Returns
 * NULL if out of memory. */
struct mr *mr_alloc(struct mr_table *table);
bool mr_wraps(uint64_t start, uint64_t len);

#endif
