/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h -- a pool and its replica at the target: the session, the lanes, the first failure.
 *
 * Lanes are connected when they are used first, each by the thread that uses it; lane 0 when the
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
	struct lane **lanes;  /* NULL: not connected yet */
	pthread_mutex_t lock; /* of the next two */
	int error;            /* errno of the first failure, final; read without the lock */
	char *error_text;
};

/* The beginning of each call: is the pool there, of this process, and not failed? 0 or an errno. */
int pool_enter(RPMEMpool *rpp);
/* Lane number n, which is granted; connected if it was not. */
int pool_lane(RPMEMpool *rpp, unsigned n, struct lane **lane);
/* The target is lost, with the thread's text; returns error. */
int pool_fail(RPMEMpool *rpp, int error);
/* As pool_fail() if the session has failed, else a refusal that changes nothing. */
int pool_request_failed(RPMEMpool *rpp, int error);

bool pool_attr_is_zero(const struct rpmem_pool_attr *attr);

/* The result of a public function: 0, or -1 and errno. */
int pool_result(int error);

#endif
