/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides how to handle a page that cannot be accessed.
 *
 * An isolated mapping is private. A page that was stored to is a copy in memory, and accesses to it
 * do not reach the medium. So if an access fails because of the medium, the page has no stores of
 * this process: it is clean, and the file has all bytes that were flushed from it. Only two kinds
 * of pages are lost. One kind is a private page whose memory is bad. The other kind is a private
 * page beyond the end of a file that another program has truncated, because the kernel drops such
 * pages.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirror/restore_impl.h"

/* After RESTORE_TIMES faults of one page, each within RESTORE_WITHIN of the previous fault,
 * restoring counts as useless. The number is greater than the number of threads that may have the
 * same fault. */
#define RESTORE_TIMES  1000
#define RESTORE_WITHIN (1 * NSEC_PER_SEC)
#define RESTORE_TRY_NS (200 * NSEC_PER_US)

/* Bits of an entry in /proc/PID/pagemap */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_FILE    (1ull << 61)

/* ---- former restorations ---- */

static struct restore_past *restore_find_past(struct restore *r, uint64_t offset)
{
	struct restore_past *found = NULL;

	for (unsigned i = 0; i < RESTORE_PAST; i++) {
		struct restore_past *past = &r->past[i];

		if (offset - past->offset < past->len && (!found || past->stamp > found->stamp))
			found = past;
	}
	return found;
}

/* Remember a restoration. Returns false if restoring this page does not help. */
static bool restore_remember(struct restore *r, uint64_t offset, uint64_t len,
			     enum restore_verdict verdict)
{
	const struct restore_past *before = restore_find_past(r, offset);
	uint64_t now = clock_now_ns();
	unsigned times = before && now - before->at_ns < RESTORE_WITHIN ? before->times + 1 : 1;

	r->past[r->past_next++ % RESTORE_PAST] =
		(struct restore_past){.offset = offset,
				      .len = len,
				      .stamp = atomic_fetch_add(&r->clock, 1) + 1,
				      .at_ns = now,
				      .times = times,
				      .verdict = verdict};
	return times <= RESTORE_TIMES;
}

/* Returns true if the pages belong to an open extent of a direct mapping, so that stores to these
 * pages may have been only in the lost page. */
static bool restore_may_have_stores(const struct restore *r, uint64_t offset, uint64_t len)
{
	struct direct *d = r->m->direct;
	bool may = false;

	for (uint32_t e = meta_extent_of(offset); d && e <= meta_extent_of(offset + len - 1); e++)
		may = may || direct_may_differ(d, e);
	return may;
}

static enum restore_verdict restore_settle(struct restore *r, uint64_t offset, uint64_t len,
					   enum restore_verdict verdict, unsigned slot)
{
	struct restore_news news;

	if (verdict == RESTORE_WHOLE && restore_may_have_stores(r, offset, len))
		verdict = RESTORE_LOST;
	news = (struct restore_news){offset, len, verdict, slot};
	if (verdict != RESTORE_FAILED && !restore_remember(r, offset, len, verdict))
		news.verdict = RESTORE_FAILED;
	restore_report(r, &news);
	return news.verdict;
}

/* ---- no outstanding flush ---- */

static bool restore_lock(struct restore *r, uint64_t deadline)
{
	const struct timespec nap = {.tv_nsec = RESTORE_TRY_NS};

	while (pthread_mutex_trylock(&r->m->lock)) {
		if (clock_now_ns() > deadline || atomic_load(&r->stopping))
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

static bool restore_is_quiet(const struct restore *r)
{
	unsigned sources = atomic_load(&r->sources);

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (sources & MIRROR_BIT(slot) &&
		    r->m->flush.members[slot].done < r->m->flush.begun)
			return false;
	return sources;
}

/*
 * Hold flushes: from here to restore_calm_end() no flush begins, and the flushes that began have
 * reached each member from which bytes are read. Otherwise the file could get older bytes than
 * those that a flush wrote to it.
 */
static bool restore_calm_begin(struct restore *r)
{
	uint64_t deadline = clock_now_ns() + 2 * r->patience_ns;
	bool is_quiet;

	if (!restore_lock(r, deadline))
		return false;
	atomic_store(&r->holds_flushes, true);
	while (!(is_quiet = restore_is_quiet(r)) && atomic_load(&r->sources) && !r->m->ended)
		if (!wait_step(r->m, deadline))
			break;
	pthread_mutex_unlock(&r->m->lock);
	return is_quiet;
}

/* Permit flushes again. The threads that wait check every few milliseconds. */
static void restore_calm_end(struct restore *r)
{
	atomic_store(&r->holds_flushes, false);
}

/* ---- the file ---- */

static int restore_write_file(struct restore *r, const uint8_t *bytes, uint64_t offset,
			      uint32_t len)
{
	uint32_t done = 0;
	ssize_t n;

	if (ownfd_is_lost(&r->m->copy.own))
		return EBADF;
	for (; done < len; done += (uint32_t)n) {
		n = pwrite(r->m->copy.fd, bytes + done, len - done, (off_t)(offset + done));
		if (n <= 0)
			return n ? errno : EIO;
	}
	return fdatasync(r->m->copy.fd) ? errno : 0;
}

/* Write restored bytes to the file. restore_freeze() may run at the same time: either this
 * function finds the copy frozen, or restore_freeze() finds that it is being written to. */
static bool restore_write(struct restore *r, const uint8_t *bytes, uint64_t offset, uint32_t len)
{
	int failed = 0;
	bool may;

	atomic_store(&r->is_writing, true);
	may = !atomic_load(&r->is_frozen);
	if (may)
		failed = restore_write_file(r, bytes, offset, len);
	if (failed)
		atomic_store(&r->failed, failed);
	atomic_store(&r->is_writing, false);
	if (!failed)
		return may;
	set_wake(r->m);
	return false;
}

static enum restore_verdict restore_copy_page(struct restore *r, uint64_t offset)
{
	unsigned slot = 0;
	const uint8_t *bytes = restore_read(r, offset, MIRROR_BLOCK, &slot);

	if (bytes && restore_write(r, bytes, offset, MIRROR_BLOCK))
		return restore_settle(r, offset, MIRROR_BLOCK, RESTORE_WHOLE, slot);
	return restore_settle(r, offset, MIRROR_BLOCK, RESTORE_FAILED, MIRROR_NO_SLOT);
}

/*
 * Restore a file that has become shorter. The file grows only by restored bytes that are written
 * at its end: if the file were extended first, its zeros would count as data.
 */
static enum restore_verdict restore_copy_tail(struct restore *r, uint64_t from)
{
	uint64_t size = r->m->size, at = from;
	unsigned slot = 0;

	while (at < size && !atomic_load(&r->stopping)) {
		uint32_t len = size - at < RESTORE_PIECE ? (uint32_t)(size - at) : RESTORE_PIECE;
		const uint8_t *bytes = restore_read(r, at, len, &slot);

		if (!bytes || !restore_write(r, bytes, at, len))
			break;
		at += len;
	}
	if (at == size)
		return restore_settle(r, from, size - from, RESTORE_LOST, slot);
	return restore_settle(r, at, size - at, RESTORE_FAILED, MIRROR_NO_SLOT);
}

/* ---- the mappings ---- */

/* Returns true if the page can be read now: an earlier fault of another thread may have restored it
 * already, and stores may have followed. A page that the lease protects counts as readable. */
static bool restore_is_readable(const struct restore *r, uint8_t *page)
{
	struct iovec theirs = {page, 1}, ours;
	uint8_t byte;

	ours = (struct iovec){&byte, 1};
	return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == 1 ||
	       __atomic_load_n(&r->m->is_protected, __ATOMIC_RELAXED);
}

static enum restore_verdict restore_page_of_app(struct restore *r, const struct restore_request *q)
{
	uint8_t *page = r->m->app + q->offset;
	enum restore_verdict verdict;
	uint64_t entry;
	off_t at = (off_t)((uintptr_t)page / MIRROR_BLOCK * sizeof(entry));

	if (restore_is_readable(r, page))
		return restore_remember(r, q->offset, MIRROR_BLOCK, RESTORE_WHOLE) ? RESTORE_WHOLE
										   : RESTORE_FAILED;
	if (pread(r->pagemap_fd, &entry, sizeof(entry), at) != sizeof(entry))
		entry = PAGEMAP_SWAPPED; /* if the entry is unknown, the page counts as lost */
	if (entry & PAGEMAP_SWAPPED || (entry & PAGEMAP_PRESENT && !(entry & PAGEMAP_FILE))) {
		/* The page's memory is bad: drop the page, so that the mapping shows the file's. */
		if (madvise(page, MIRROR_BLOCK, MADV_DONTNEED))
			return restore_settle(r, q->offset, MIRROR_BLOCK, RESTORE_FAILED,
					      MIRROR_NO_SLOT);
		return restore_settle(r, q->offset, MIRROR_BLOCK, RESTORE_LOST, r->m->self);
	}
	verdict = restore_copy_page(r, q->offset);
	if (verdict == RESTORE_WHOLE && q->flags & RESTORE_POISON)
		madvise(page, MIRROR_BLOCK, MADV_DONTNEED);
	return verdict;
}

/* Returns true if the file ends before this offset. The file's last page is then not whole. */
static bool restore_is_short(const struct restore *r, uint64_t *end)
{
	struct stat st;

	if (fstat(r->m->copy.fd, &st) || (uint64_t)st.st_size >= r->m->size)
		return false;
	*end = (uint64_t)st.st_size / MIRROR_BLOCK * MIRROR_BLOCK;
	return true;
}

enum restore_verdict restore_page(struct restore *r, const struct restore_request *q)
{
	const struct restore_past *past = restore_find_past(r, q->offset);
	enum restore_verdict verdict = RESTORE_FAILED;
	uint64_t end = 0;
	bool is_short;

	if (past && past->verdict == RESTORE_LOST && past->stamp > q->ticket)
		return RESTORE_LOST;
	if (ownfd_is_lost(&r->m->copy.own))
		return RESTORE_FAILED;
	is_short = restore_is_short(r, &end);
	if (!is_short && !(q->flags & RESTORE_LIBRARY))
		return restore_page_of_app(r, q);
	if (!restore_calm_begin(r))
		verdict =
			restore_settle(r, q->offset, MIRROR_BLOCK, RESTORE_FAILED, MIRROR_NO_SLOT);
	else
		verdict = is_short ? restore_copy_tail(r, end) : restore_copy_page(r, q->offset);
	restore_calm_end(r);
	return verdict;
}
