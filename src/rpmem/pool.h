/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h -- a pool and its replica at the target: the session, the lanes, and the first failure.
 *
 * A lane is connected at its first use, by the thread that uses it. Lane 0 is connected when the
 * pool is opened, to prove that the data path works.
 */
#ifndef RPMEM_POOL_H
#define RPMEM_POOL_H

#include <librpmem.h>
#include <pthread.h>

#include "rpmem/control.h"
#include "rpmem/device.h"
#include "rpmem/lane.h"

struct rpmem_pool {
	struct control *control;
	struct device device;
	struct lane_place place;
	bool has_headers;
	unsigned nlanes;
	struct lane **lanes;  /* an entry is NULL until the lane is connected */
	pthread_mutex_t lock; /* guards the two members below */
	/* errno of the first failure, which is final; may be read without the lock */
	int error;
	char *error_text;
};

/*
 * The first step of each call: checks that the pool exists, belongs to this process, and works.
 * Returns 0 or an errno.
 */
int pool_enter(RPMEMpool *rpp);
/* Get the granted lane number n, and connect it if needed. */
int pool_lane(RPMEMpool *rpp, unsigned n, struct lane **lane);
/* Mark the target as lost, with the reason in the thread's text. Returns error. */
int pool_fail(RPMEMpool *rpp, int error);

/* Returns the result of a public function for an errno: 0, or -1 with errno. */
int pool_result(int error);

#endif
