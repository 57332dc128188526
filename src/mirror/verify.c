/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_flush_verify(): flushes, then compares digests of the bytes on each copy's medium. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/poll.h"
#include "mirror/core/view.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define VERIFY_CHUNK (256u << 10)
#define VERIFY_ALIGN 4096u
#define VERIFY_ROOM  (2 * VERIFY_CHUNK + 2 * VERIFY_ALIGN)

struct verify_chunk {
	const uint8_t *app;
	uint8_t *room; /* memory for the mapping's bytes, followed by the file's bytes */
	uint64_t offset;
	size_t len;
	/* generations of the lanes on which digests were requested */
	unsigned generations[MIRROR_MEMBERS_MAX];
};

/* ---- this host's copy ---- */

/* Read the file without the page cache, if the file system permits that; otherwise use the bytes
 * that the mapping shows. */
static bool verify_read(struct rpmirror *m, uint64_t offset, size_t len, uint8_t *room,
			const uint8_t **bytes)
{
	uint64_t begin = offset - offset % VERIFY_ALIGN;
	size_t size = (offset + len - begin + VERIFY_ALIGN - 1) & ~(size_t)(VERIFY_ALIGN - 1);
	char path[40];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->copy.fd);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, room, size, (off_t)begin);
		close(fd);
	}
	*bytes = n == (ssize_t)size ? room + (offset - begin) : m->copy.shared + offset;
	return n == (ssize_t)size || restore_touch(m, *bytes, len);
}

/* ---- the mapping ---- */

static void verify_load(void *arg)
{
	const struct verify_chunk *c = arg;

	copy_words(c->room, c->app + c->offset, c->len);
}

/* Wait until the mapping can be read: while the lease is over, it cannot be read. Called with the
 * set's lock, which is released meanwhile. Returns 0 or an RPMIRROR_E_*. */
static int verify_await_app(struct rpmirror *m, uint64_t since_ms)
{
	int rc;

	while (!(rc = wait_check(m, since_ms)) && m->is_protected)
		wait_step(m, CLOCK_NEVER);
	return rc;
}

/* Copy the content once, because the mapping may be protected again as soon as the lock is
 * released. */
static int verify_snapshot(struct rpmirror *m, struct verify_chunk *c)
{
	uint64_t since_ms = clock_boot_ms(), offset;
	int rc;

	while (!(rc = verify_await_app(m, since_ms)) && !restore_try(m, verify_load, c, &offset))
		if (!restore_wait(m, offset))
			return errmsg_fail(RPMIRROR_E_MEDIUM,
					   "set %s: the flushed bytes can no longer be read",
					   m->set);
	return rc;
}

/* ---- the other members, under the lock ---- */

static mirror_mask verify_post(struct rpmirror *m, struct verify_chunk *c, mirror_mask who)
{
	mirror_mask posted = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (!(who & MIRROR_BIT(slot)) || !lane_verify(m, slot, c->offset, c->len))
			continue;
		c->generations[slot] = m->members[slot].generation;
		posted |= MIRROR_BIT(slot);
	}
	return posted;
}

/* Returns true if the request for the digest was answered. Returns false if it failed because the
 * lane was lost. */
static bool verify_is_answered(const struct rpmirror *m, const struct verify_chunk *c,
			       unsigned slot)
{
	const struct set_member *member = &m->members[slot];

	return !member->verifying && member->batch && !member->lane_failed &&
	       member->generation == c->generations[slot];
}

/* Returns the members that have answered, without those that were lost meanwhile or take too
 * long. */
static mirror_mask verify_collect(struct rpmirror *m, const struct verify_chunk *c, mirror_mask who)
{
	uint64_t deadline = poll_deadline(m->control_place.timeout_ms);
	mirror_mask open = who, answered = 0;
	bool in_time = true;

	while (open && in_time && !m->ended) {
		in_time = wait_step(m, deadline);
		for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
			if (!m->members[slot].verifying)
				open &= (mirror_mask)~MIRROR_BIT(slot);
	}
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (who & MIRROR_BIT(slot) && verify_is_answered(m, c, slot))
			answered |= MIRROR_BIT(slot);
	return answered;
}

/* Returns the members of `who` whose chunk differs. */
static mirror_mask verify_members(struct rpmirror *m, struct verify_chunk *c, mirror_mask who)
{
	mirror_mask differ = 0, answered = verify_post(m, c, who);
	struct rpma_digest digest;

	rpma_digest_compute(RPMA_DIGEST_AUTO, c->room, c->len, &digest);
	answered = verify_collect(m, c, answered);
	m->unverified |= who & (mirror_mask)~answered;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (answered & MIRROR_BIT(slot) &&
		    !rpma_digest_equal(&digest, &m->members[slot].digest))
			differ |= MIRROR_BIT(slot);
	return differ;
}

static int verify_range(struct rpmirror *m, struct verify_chunk *c, mirror_mask who, uint64_t len,
			mirror_mask *differ)
{
	mirror_mask own = MIRROR_BIT(m->self);
	const uint8_t *bytes;
	int rc = 0;

	for (; len && !rc; c->offset += c->len, len -= c->len) {
		c->len = len < VERIFY_CHUNK ? len : VERIFY_CHUNK;
		pthread_mutex_unlock(&m->lock); /* so that the set's thread can take the lock */
		set_lock_in_turn(m);
		rc = verify_snapshot(m, c);
		if (rc)
			break;
		*differ |= verify_members(m, c, who & (mirror_mask)~own);
		if (who & own &&
		    (!verify_read(m, c->offset, c->len, c->room + VERIFY_CHUNK, &bytes) ||
		     memcmp(bytes, c->room, c->len)))
			*differ |= own;
	}
	return rc;
}

/* Let members that differ leave the set, unless too few copies would be left. */
static int verify_judge(struct rpmirror *m, mirror_mask differ)
{
	mirror_mask others = differ & (mirror_mask)~MIRROR_BIT(m->self);
	const char *why = NULL;
	char names[600] = "";
	size_t len = 0;

	if (others && view_may_shrink(&m->primary.rec, others, &why))
		why = NULL;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (!(differ & MIRROR_BIT(slot)))
			continue;
		if (slot == m->self) {
			set_local_failed(m, m->flush.begun, -EIO);
		} else {
			/*
			 * The copy may differ in other ranges, too, so it is compared as a whole
			 * when the member returns.
			 */
			act_lost(m, slot, "its copy differs from the flushed bytes");
			repair_forget(m, slot);
		}
		if (len < sizeof(names))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						len ? ", " : "", set_member_name(m, slot).text);
	}
	act_all(m);
	return errmsg_fail(RPMIRROR_E_VERIFY,
			   "set %s: copies that differ from the flushed bytes: %s; %s%s%s", m->set,
			   names, why ? "not excluded, because " : "excluded, and made equal later",
			   why ? why : "", why ? ": made equal before the next flush returns" : "");
}

static int verify_all(struct rpmirror *m, struct verify_chunk *c,
		      const struct rpmirror_range *ranges, unsigned n, mirror_mask who,
		      mirror_mask *differ)
{
	int rc = 0;

	*differ = 0;
	while (m->verify_busy)
		wait_step(m, CLOCK_NEVER);
	m->verify_busy = true;
	m->unverified = 0;
	for (unsigned i = 0; i < n && !rc; i++) {
		if (!ranges[i].len)
			continue;
		c->offset = (uintptr_t)ranges[i].addr - (uintptr_t)m->app;
		rc = verify_range(m, c, who, ranges[i].len, differ);
	}
	m->verify_busy = false;
	set_notify(m);
	/* Another primary may write to all copies now, and the metadata belong to the daemon
	 * again. */
	if (set_end_code(m)) {
		*differ = 0;
		return errmsg_fail(set_end_code(m), "%s", m->ended_why);
	}
	if (*differ)
		return verify_judge(m, *differ);
	if (!rc && m->unverified)
		rc = errmsg_fail(RPMIRROR_E_NOSUPP,
				 "set %s: flushed; the copy of %s is on volatile memory, or "
				 "its connection is lost: it cannot be verified",
				 m->set,
				 set_member_name(m, (unsigned)__builtin_ctz(m->unverified)).text);
	return rc;
}

/* Flush again without the members that differ, so that the ranges are recorded as missing at those
 * members. The error text stays that of the comparison. */
static void verify_flush_again(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			       struct rpmirror_result *res)
{
	char text[ERRMSG_TEXT];

	snprintf(text, sizeof(text), "%s", rpmirror_errormsg());
	rpmirror_flush(m, ranges, n, 0, res);
	errmsg_fail(0, "%s", text);
}

int rpmirror_flush_verify(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			  struct rpmirror_result *res)
{
	struct verify_chunk chunk = {.room = aligned_alloc(VERIFY_ALIGN, VERIFY_ROOM)};
	struct rpmirror_result result = {0};
	mirror_mask differ = 0;
	int rc = chunk.room ? rpmirror_flush(m, ranges, n, 0, &result)
			    : errmsg_fail(RPMIRROR_E_NOMEM, "out of memory");

	if (!rc) {
		pthread_mutex_lock(&m->lock);
		chunk.app = m->app;
		rc = verify_all(m, &chunk, ranges, n, (mirror_mask)result.durable_mask, &differ);
		pthread_mutex_unlock(&m->lock);
		if (differ && !(differ & MIRROR_BIT(m->self)))
			verify_flush_again(m, ranges, n, &result);
		result.failed_mask |= differ;
		result.durable_mask &= ~(uint32_t)differ;
	}
	free(chunk.room);
	if (res && rc != RPMIRROR_E_INVAL)
		*res = result;
	return rc;
}
