/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_flush_verify(): flush, then compare digests of what each copy has on its medium. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/poll.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define VERIFY_CHUNK (256u << 10)
#define VERIFY_ALIGN 4096u

/* ---- this host's copy ---- */

/* Past the page cache, where the file system permits that; else what the mapping shows. */
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

static bool verify_local(struct rpmirror *m, uint64_t offset, size_t len)
{
	uint8_t *room = aligned_alloc(VERIFY_ALIGN, VERIFY_CHUNK + 2 * VERIFY_ALIGN);
	const uint8_t *bytes;
	bool equal = false;

	if (room && verify_read(m, offset, len, room, &bytes))
		equal = !memcmp(bytes, m->app + offset, len);
	free(room);
	return equal;
}

/* ---- the others, under the lock ---- */

static mirror_mask verify_post(struct rpmirror *m, mirror_mask who, uint64_t offset, size_t len)
{
	mirror_mask posted = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (who & MIRROR_BIT(slot) && lane_verify(m, slot, offset, len))
			posted |= MIRROR_BIT(slot);
	return posted;
}

/* Until all have answered; who is lost meanwhile, or does not answer, is left. */
static mirror_mask verify_collect(struct rpmirror *m, mirror_mask who)
{
	uint64_t deadline = poll_deadline(m->control_place.timeout_ms);
	mirror_mask open = who;
	bool in_time = true;

	while (open && in_time && !m->ended) {
		in_time = wait_step(m, deadline);
		for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
			if (!m->members[slot].verifying)
				open &= (mirror_mask)~MIRROR_BIT(slot);
	}
	return open;
}

/* Members of `who` whose chunk differs. */
static mirror_mask verify_chunk(struct rpmirror *m, mirror_mask who, uint64_t offset, size_t len)
{
	mirror_mask differ = 0, posted = verify_post(m, who, offset, len);
	struct rpma_digest digest;

	m->unverified |= who & (mirror_mask)~posted;
	rpma_digest_compute(RPMA_DIGEST_AUTO, m->app + offset, len, &digest);
	posted &= (mirror_mask)~verify_collect(m, posted);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (posted & MIRROR_BIT(slot) &&
		    !rpma_digest_equal(&digest, &m->members[slot].digest))
			differ |= MIRROR_BIT(slot);
	return differ;
}

static mirror_mask verify_range(struct rpmirror *m, mirror_mask who, uint64_t offset, uint64_t len)
{
	mirror_mask own = MIRROR_BIT(m->self), differ = 0;

	while (len) {
		size_t part = len < VERIFY_CHUNK ? len : VERIFY_CHUNK;

		if (!restore_touch(m, m->app + offset, part))
			return differ | (who & own);
		differ |= verify_chunk(m, who & (mirror_mask)~own, offset, part);
		if (who & own && !verify_local(m, offset, part))
			differ |= own;
		offset += part;
		len -= part;
	}
	return differ;
}

/* Where else it differs nobody knows: it is compared as a whole when it returns. */
static void verify_exclude(struct rpmirror *m, unsigned slot)
{
	act_lost(m, slot, "its copy differs from what was flushed");
	repair_forget(m, slot);
}

static int verify_judge(struct rpmirror *m, mirror_mask differ)
{
	char names[2 * sizeof(struct set_name)] = "";

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (!(differ & MIRROR_BIT(slot)))
			continue;
		if (slot == m->self)
			set_local_failed(m, m->flush.begun, -EIO);
		else
			verify_exclude(m, slot);
		snprintf(names, sizeof(names), "%s", set_member_name(m, slot).text);
	}
	act_all(m);
	return errmsg_fail(RPMIRROR_E_VERIFY,
			   "set %s: not what was flushed: %s; excluded, and made equal later",
			   m->set, names);
}

static mirror_mask verify_all(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			      mirror_mask who)
{
	mirror_mask differ = 0;

	while (m->verify_busy)
		wait_step(m, CLOCK_NEVER);
	m->verify_busy = true;
	m->unverified = 0;
	for (unsigned i = 0; i < n; i++)
		if (ranges[i].len)
			differ |=
				verify_range(m, who, (uintptr_t)ranges[i].addr - (uintptr_t)m->app,
					     ranges[i].len);
	m->verify_busy = false;
	set_notify(m);
	return differ;
}

int rpmirror_flush_verify(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			  struct rpmirror_result *res)
{
	struct rpmirror_result result;
	mirror_mask differ;
	int rc = rpmirror_flush(m, ranges, n, 0, &result);

	if (!rc) {
		pthread_mutex_lock(&m->lock);
		differ = verify_all(m, ranges, n, (mirror_mask)result.durable_mask);
		if (differ)
			rc = verify_judge(m, differ);
		else if (m->unverified)
			rc = errmsg_fail(
				RPMIRROR_E_NOSUPP,
				"set %s: flushed; the copy of %s is on volatile memory, or "
				"its connection is lost: it cannot be verified",
				m->set,
				set_member_name(m, (unsigned)__builtin_ctz(m->unverified)).text);
		pthread_mutex_unlock(&m->lock);
		/* Once more, without them: so the ranges count as what they lack. */
		if (differ && !(differ & MIRROR_BIT(m->self)))
			rpmirror_flush(m, ranges, n, 0, &result);
		result.failed_mask |= differ;
		result.durable_mask &= ~(uint32_t)differ;
	}
	if (res && rc != RPMIRROR_E_INVAL)
		*res = result;
	return rc;
}
