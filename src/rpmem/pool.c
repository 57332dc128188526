/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/poll.h"
#include "rpmem/env.h"
#include "rpmem/errmsg.h"

#define POOL_LANE_FDS  4   /* descriptors of a lane */
#define POOL_OTHER_FDS 128 /* descriptors of the application and of the session */

int pool_result(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

static bool pool_attr_is_zero(const struct rpmem_pool_attr *attr)
{
	static const struct rpmem_pool_attr zero;

	return !memcmp(attr, &zero, sizeof(zero));
}

/* Copy by member, because the two structures have the same member names but different layouts. */
#define POOL_ATTR_COPY(out, in)                                                                    \
	do {                                                                                       \
		memcpy((out)->signature, (in)->signature, sizeof((out)->signature));               \
		(out)->major = (in)->major;                                                        \
		(out)->compat_features = (in)->compat_features;                                    \
		(out)->incompat_features = (in)->incompat_features;                                \
		(out)->ro_compat_features = (in)->ro_compat_features;                              \
		memcpy((out)->poolset_uuid, (in)->poolset_uuid, 16);                               \
		memcpy((out)->uuid, (in)->uuid, 16);                                               \
		memcpy((out)->next_uuid, (in)->next_uuid, 16);                                     \
		memcpy((out)->prev_uuid, (in)->prev_uuid, 16);                                     \
		memcpy((out)->user_flags, (in)->user_flags, 16);                                   \
	} while (0)

int pool_enter(RPMEMpool *rpp)
{
	int error, rc;

	if (!rpp)
		return errmsg_fail(EINVAL, "the pool is NULL");
	if (control_is_inherited(rpp->control))
		return errmsg_fail(EINVAL, "the pool belongs to the process that this one was "
					   "forked from");
	error = __atomic_load_n(&rpp->error, __ATOMIC_ACQUIRE);
	if (!error)
		return 0;
	pthread_mutex_lock(&rpp->lock);
	rc = errmsg_fail(error, "the pool has failed before: %s",
			 rpp->error_text ? rpp->error_text : strerror(error));
	pthread_mutex_unlock(&rpp->lock);
	return rc;
}

int pool_fail(RPMEMpool *rpp, int error)
{
	pthread_mutex_lock(&rpp->lock);
	if (!rpp->error) {
		rpp->error_text = strdup(errmsg_text());
		__atomic_store_n(&rpp->error, error, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&rpp->lock);
	return error;
}

/*
 * If the session has failed, do what pool_fail() does. Otherwise the daemon refused the request,
 * and the pool stays usable.
 */
static int pool_request_failed(RPMEMpool *rpp, int error)
{
	return control_has_failed(rpp->control) ? pool_fail(rpp, error) : error;
}

/* Make the daemon open a port for lane n. */
static int pool_announce_lane(RPMEMpool *rpp, unsigned n, uint16_t *port)
{
	struct wire_lanes m = {.first = n, .count = 1};
	struct wire_answer answer;
	uint8_t body[64];
	int rc;

	rc = control_request(rpp->control, WIRE_LANES, body, wire_lanes_encode(&m, body), &answer);
	*port = answer.lanes.port;
	return rc ? pool_request_failed(rpp, rc) : 0;
}

int pool_lane(RPMEMpool *rpp, unsigned n, struct lane **lane)
{
	uint16_t port;
	int rc = 0;

	if (!rpp->lanes[n]) {
		rc = pool_announce_lane(rpp, n, &port);
		if (!rc)
			rc = lane_connect(&rpp->place, n, port, rpp->place.timeout_ms,
					  &rpp->lanes[n]);
	}
	*lane = rpp->lanes[n];
	return rc;
}

/* Returns the number of lanes for which this process has descriptors. */
static unsigned pool_lanes_possible(void)
{
	struct rlimit limit;
	rlim_t lanes;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT32_MAX;
	if (limit.rlim_cur < POOL_OTHER_FDS + POOL_LANE_FDS)
		return 1;
	lanes = (limit.rlim_cur - POOL_OTHER_FDS) / POOL_LANE_FDS;
	return lanes < UINT32_MAX ? (unsigned)lanes : UINT32_MAX;
}

static unsigned pool_lanes_wanted(unsigned asked)
{
	unsigned lanes = asked;

	if (lanes > env_max_lanes())
		lanes = env_max_lanes();
	if (lanes > pool_lanes_possible())
		lanes = pool_lanes_possible();
	return lanes;
}

/* Arguments that create and open share. */
struct pool_open {
	enum wire_type type; /* WIRE_CREATE or WIRE_OPEN */
	const char *set;
	void *addr;
	size_t size;
	unsigned *nlanes;
	const struct rpmem_pool_attr *create_attr;
	struct rpmem_pool_attr *open_attr;
	struct target target;
};

static int pool_check_arguments(const struct pool_open *o)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!o->addr || (uintptr_t)o->addr % page)
		return errmsg_fail(EINVAL, "the pool's address %p is not that of a page", o->addr);
	if (!o->size || o->size % page)
		return errmsg_fail(EINVAL, "the pool's size %zu is not in whole pages", o->size);
	if (!o->nlanes || !*o->nlanes)
		return errmsg_fail(EINVAL, "the number of lanes is 0 or NULL");
	if (!o->set || !*o->set || strlen(o->set) > WIRE_NAME_MAX)
		return errmsg_fail(EINVAL, "the name of the pool set is empty or too long");
	return 0;
}

/* Send CREATE or OPEN. */
static int pool_request(RPMEMpool *rpp, const struct pool_open *o, struct wire_answer *answer)
{
	struct wire_pool_request *m = calloc(1, sizeof(*m));
	uint8_t *body = malloc(WIRE_BODY_MAX);
	int rc;

	if (m && body) {
		m->pool_size = o->size;
		m->lanes = pool_lanes_wanted(*o->nlanes);
		m->method = rpp->device.is_softrnic ? WIRE_METHOD_NATIVE : WIRE_METHOD_ANY;
		m->has_attr = o->create_attr && !pool_attr_is_zero(o->create_attr);
		if (m->has_attr)
			POOL_ATTR_COPY(&m->attr, o->create_attr);
		snprintf(m->name, sizeof(m->name), "%s", o->set);
		rc = control_request(rpp->control, o->type, body, wire_pool_request_encode(m, body),
				     answer);
	} else {
		rc = errmsg_fail(ENOMEM, "out of memory");
	}
	free(m);
	free(body);
	return rc;
}

static int pool_take_answer(RPMEMpool *rpp, const struct pool_open *o,
			    const struct wire_answer *answer)
{
	const struct wire_pool_answer *pool = &answer->pool;

	rpp->nlanes = pool->lanes;
	if (rpp->nlanes > pool_lanes_wanted(*o->nlanes))
		rpp->nlanes = pool_lanes_wanted(*o->nlanes);
	rpp->has_headers =
		pool->has_headers || (o->create_attr && !pool_attr_is_zero(o->create_attr));
	rpp->place.size = o->size;
	rpp->place.method = pool->method;
	rpp->place.queue = env_work_queue_size();
	rpp->place.timeout_ms = env_timeout_ms();
	rpp->place.spin_us = env_spin_us();
	rpp->place.flush_type = pool->durability == RPMA_DURABILITY_VOLATILE
					? RPMA_FLUSH_TYPE_VISIBILITY
					: RPMA_FLUSH_TYPE_PERSISTENT;
	if (!control_lane_key(rpp->control, &rpp->place.key))
		memcpy(rpp->place.key.bytes, pool->lane_key, WIRE_KEY);
	if (answer->text[0])
		LOG_WARNING("pool set %s on %s: %s", o->set, o->target.host, answer->text);
	if (o->open_attr && pool->has_headers)
		POOL_ATTR_COPY(o->open_attr, &pool->attr);
	else if (o->open_attr)
		memset(o->open_attr, 0, sizeof(*o->open_attr));
	rpp->lanes = calloc(rpp->nlanes, sizeof(rpp->lanes[0]));
	return rpp->lanes ? 0 : errmsg_fail(ENOMEM, "out of memory");
}

static void pool_close_device(RPMEMpool *rpp)
{
	if (rpp->place.local)
		device_deregister(&rpp->place.local);
	rpma_peer_delete(&rpp->place.peer);
}

/* Register the local pool on the device that reaches the address, and connect lane 0 through that
 * device. */
static int pool_try_address(RPMEMpool *rpp, const struct pool_open *o, const char *addr,
			    uint16_t port, int timeout_ms)
{
	int rc;

	snprintf(rpp->place.addr, sizeof(rpp->place.addr), "%.255s", addr);
	rc = device_open(&rpp->device, addr, &rpp->place.peer);
	if (rc)
		return rc;
	if (device_register(rpp->place.peer, o->addr, o->size, RPMA_MR_USAGE_WRITE_SRC,
			    &rpp->place.local))
		rc = errmsg_fail(ENOMEM, "cannot register the local pool (%zu bytes): %s", o->size,
				 rpma_err_last());
	if (!rc)
		rc = lane_connect(&rpp->place, 0, port, timeout_ms, &rpp->lanes[0]);
	if (rc)
		pool_close_device(rpp);
	return rc;
}

/*
 * Try the daemon's own address first. If the target is behind an address translation, its address
 * does not work here; then try the address that ssh used.
 */
static int pool_connect(RPMEMpool *rpp, const struct pool_open *o,
			const struct wire_pool_answer *answer)
{
	struct address found[DEVICE_ADDRESSES + 1];
	uint64_t deadline = poll_deadline(rpp->place.timeout_ms);
	int count = answer->addr[0] != '\0', i, rc = 0;

	snprintf(found[0].host, sizeof(found[0].host), "%s", answer->addr);
	count += target_resolve(o->target.host, "1", found + count, DEVICE_ADDRESSES);
	for (i = 0; i < count; i++) {
		if (i && answer->addr[0] && !strcmp(found[i].host, answer->addr))
			continue;
		rc = pool_try_address(rpp, o, found[i].host, answer->port,
				      poll_ms_left(deadline) / (count - i) + 1);
		if (!rc || !poll_ms_left(deadline))
			return rc;
	}
	return count ? rc
		     : errmsg_fail(ENOMEDIUM, "cannot find provider: no address of %s is known",
				   o->target.host);
}

static int pool_say_close(RPMEMpool *rpp, uint32_t flags)
{
	struct wire_close m = {.flags = flags};
	struct wire_answer answer;
	uint8_t body[64];

	return control_request(rpp->control, WIRE_CLOSE, body, wire_close_encode(&m, body),
			       &answer);
}

static void pool_delete(RPMEMpool *rpp)
{
	for (unsigned i = 0; rpp->lanes && i < rpp->nlanes; i++)
		lane_disconnect(rpp->lanes[i]);
	for (unsigned i = 0; rpp->lanes && i < rpp->nlanes; i++)
		lane_delete(rpp->lanes[i]);
	pool_close_device(rpp);
	control_close(rpp->control);
	pthread_mutex_destroy(&rpp->lock);
	free(rpp->error_text);
	free(rpp->lanes);
	free(rpp);
}

/* The text of the first failure stays, whatever the answer to CLOSE is. */
static void pool_undo(RPMEMpool *rpp, bool created)
{
	char *text = strdup(errmsg_text());

	if (created && !control_has_failed(rpp->control))
		pool_say_close(rpp, WIRE_CLOSE_REMOVE);
	if (text)
		errmsg_fail(0, "%s", text);
	free(text);
}

static int pool_start(RPMEMpool *rpp, const struct pool_open *o)
{
	struct wire_answer *answer;
	int rc = device_choose(&o->target, &rpp->device);

	if (!rc)
		rc = control_open(&o->target, rpp->device.ipv4, &rpp->control);
	if (rc)
		return rc == ECONNRESET && rpp->device.unresolved ? ENOMEDIUM : rc;
	answer = malloc(sizeof(*answer));
	if (!answer)
		return errmsg_fail(ENOMEM, "out of memory");
	rc = pool_request(rpp, o, answer);
	if (!rc) {
		rc = pool_take_answer(rpp, o, answer);
		if (!rc)
			rc = pool_connect(rpp, o, &answer->pool);
		if (rc)
			pool_undo(rpp, o->type == WIRE_CREATE);
	}
	free(answer);
	return rc;
}

static RPMEMpool *pool_new(struct pool_open *o, const char *target)
{
	RPMEMpool *rpp;
	int rc = pool_check_arguments(o);

	if (!rc)
		rc = target_parse(target, &o->target);
	if (rc) {
		errno = rc;
		return NULL;
	}
	rpp = calloc(1, sizeof(*rpp));
	if (!rpp) {
		errno = errmsg_fail(ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&rpp->lock, NULL);
	rc = pool_start(rpp, o);
	if (rc) {
		pool_delete(rpp);
		errno = rc;
		return NULL;
	}
	*o->nlanes = rpp->nlanes;
	LOG_INFO("pool set %s on %s: %u lanes", o->set, target, rpp->nlanes);
	return rpp;
}

RPMEMpool *rpmem_create(const char *target, const char *pool_set_name, void *pool_addr,
			size_t pool_size, unsigned *nlanes,
			const struct rpmem_pool_attr *create_attr)
{
	struct pool_open o = {.type = WIRE_CREATE,
			      .set = pool_set_name,
			      .addr = pool_addr,
			      .size = pool_size,
			      .nlanes = nlanes,
			      .create_attr = create_attr};

	return pool_new(&o, target);
}

RPMEMpool *rpmem_open(const char *target, const char *pool_set_name, void *pool_addr,
		      size_t pool_size, unsigned *nlanes, struct rpmem_pool_attr *open_attr)
{
	struct pool_open o = {.type = WIRE_OPEN,
			      .set = pool_set_name,
			      .addr = pool_addr,
			      .size = pool_size,
			      .nlanes = nlanes,
			      .open_attr = open_attr};

	return pool_new(&o, target);
}

static int pool_set_attr(RPMEMpool *rpp, const struct rpmem_pool_attr *attr)
{
	struct wire_set_attr m = {.has_attr = attr && !pool_attr_is_zero(attr)};
	struct wire_answer answer;
	uint8_t body[256];
	int rc = pool_enter(rpp);

	if (rc)
		return rc;
	if (m.has_attr != rpp->has_headers)
		return errmsg_fail(EINVAL, rpp->has_headers
						   ? "no attributes for a pool with headers"
						   : "attributes for a pool without headers");
	if (!m.has_attr)
		return 0;
	POOL_ATTR_COPY(&m.attr, attr);
	rc = control_request(rpp->control, WIRE_SET_ATTR, body, wire_set_attr_encode(&m, body),
			     &answer);
	return rc ? pool_request_failed(rpp, rc) : 0;
}

int rpmem_set_attr(RPMEMpool *rpp, const struct rpmem_pool_attr *attr)
{
	return pool_result(pool_set_attr(rpp, attr));
}

/* In a forked process the session and the connections belong to the parent. */
static void pool_forget(RPMEMpool *rpp)
{
	control_close(rpp->control);
	for (unsigned i = 0; i < rpp->nlanes; i++)
		lane_forget(rpp->lanes[i]);
	free(rpp->lanes);
	free(rpp->error_text);
	free(rpp);
}

int rpmem_close(RPMEMpool *rpp)
{
	int rc;

	if (!rpp)
		return pool_result(errmsg_fail(EINVAL, "the pool is NULL"));
	if (control_is_inherited(rpp->control)) {
		pool_forget(rpp);
		return 0;
	}
	rc = pool_enter(rpp);
	if (!rc)
		rc = pool_say_close(rpp, 0);
	pool_delete(rpp);
	return pool_result(rc);
}
