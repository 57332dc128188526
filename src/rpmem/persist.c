/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions that use lanes. */
#include <errno.h>
#include <librpmem.h>

#include "rpmem/errmsg.h"
#include "rpmem/pool.h"

#define PERSIST_HEADER 4096u

static int persist_check_range(const RPMEMpool *rpp, size_t offset, size_t length, unsigned lane)
{
	if (lane >= rpp->nlanes)
		return errmsg_fail(EINVAL, "lane %u: there are %u lanes", lane, rpp->nlanes);
	if (offset > rpp->place.size || length > rpp->place.size - offset)
		return errmsg_fail(EINVAL,
				   "offset %zu and length %zu are beyond the pool's end (%zu)",
				   offset, length, (size_t)rpp->place.size);
	return 0;
}

/* Check a range to be written. The range must not include the pool's header, which only rpmemd
 * writes. */
static int persist_check(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane,
			 unsigned flags, unsigned allowed)
{
	int rc = pool_enter(rpp);

	if (rc)
		return rc;
	if (flags & ~allowed)
		return errmsg_fail(EINVAL, "invalid flags (0x%x)", flags);
	if (!length)
		return 0;
	if (rpp->has_headers && offset < PERSIST_HEADER)
		return errmsg_fail(EINVAL, "offset %zu is in the pool's header, below %u", offset,
				   PERSIST_HEADER);
	return persist_check_range(rpp, offset, length, lane);
}

/* Begin a flush, and connect the lane first if needed. */
static int persist_begin(RPMEMpool *rpp, size_t offset, size_t length, unsigned n, bool reuse,
			 struct lane **lane)
{
	int rc = pool_lane(rpp, n, lane);

	if (rc)
		return rc;
	rc = lane_flush(*lane, offset, length, reuse);
	return rc ? pool_fail(rpp, rc) : 0;
}

static int persist_wait(RPMEMpool *rpp, struct lane *lane)
{
	int rc = lane_drain(lane);

	return rc ? pool_fail(rpp, rc) : 0;
}

/* Persist a range that was already checked. */
static int persist_range(RPMEMpool *rpp, size_t offset, size_t length, unsigned n)
{
	struct lane *lane;
	int rc = persist_begin(rpp, offset, length, n, false, &lane);

	return rc ? rc : persist_wait(rpp, lane);
}

int rpmem_flush(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane, unsigned flags)
{
	int rc = persist_check(rpp, offset, length, lane, flags, RPMEM_FLUSH_RELAXED);
	struct lane *l;

	if (!rc && length)
		rc = persist_begin(rpp, offset, length, lane, !(flags & RPMEM_FLUSH_RELAXED), &l);
	return pool_result(rc);
}

int rpmem_drain(RPMEMpool *rpp, unsigned lane, unsigned flags)
{
	int rc = persist_check(rpp, 0, 0, lane, flags, 0);

	if (!rc)
		rc = persist_check_range(rpp, 0, 0, lane);
	if (!rc && rpp->lanes[lane])
		rc = persist_wait(rpp, rpp->lanes[lane]);
	return pool_result(rc);
}

int rpmem_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane, unsigned flags)
{
	int rc = persist_check(rpp, offset, length, lane, flags, RPMEM_PERSIST_RELAXED);

	if (!rc && length)
		rc = persist_range(rpp, offset, length, lane);
	return pool_result(rc);
}

static int persist_deep(RPMEMpool *rpp, size_t offset, size_t length)
{
	struct wire_deep m = {.offset = offset, .length = length};
	struct wire_answer answer;
	uint8_t body[64];
	int rc;

	rc = control_request(rpp->control, WIRE_DEEP, body, wire_deep_encode(&m, body), &answer);
	/* A failure is final, because bytes that could not be flushed may be lost. */
	return rc ? pool_fail(rpp, rc) : 0;
}

int rpmem_deep_persist(RPMEMpool *rpp, size_t offset, size_t length, unsigned lane)
{
	int rc = persist_check(rpp, offset, length, lane, 0, 0);

	if (!rc && length)
		rc = persist_range(rpp, offset, length, lane);
	if (!rc && length)
		rc = persist_deep(rpp, offset, length);
	return pool_result(rc);
}

int rpmem_read(RPMEMpool *rpp, void *buff, size_t offset, size_t length, unsigned lane)
{
	int rc = pool_enter(rpp);
	struct lane *l;

	if (rc || !length)
		return pool_result(rc);
	rc = buff ? persist_check_range(rpp, offset, length, lane)
		  : errmsg_fail(EINVAL, "the buffer is NULL");
	if (!rc)
		rc = pool_lane(rpp, lane, &l);
	if (rc)
		return pool_result(rc);
	rc = lane_read(l, buff, offset, length);
	return pool_result(rc ? pool_fail(rpp, rc) : 0);
}
