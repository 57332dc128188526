/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_impl.h -- an open file, and the functions that the files of librpmafile share.
 *
 * A small write is copied into a ring of registered memory and collected. A sync, or a sufficient
 * number of bytes, sends the collected writes as one *post*. Each post ends with one operation
 * that completes, and posts complete in their order. A large buffer is registered for the duration
 * of the call.
 *
 * `lock` guards the whole structure. A thread that has to wait becomes the poller if there is
 * none. The poller waits for completions without the lock, so that other threads can write and
 * start syncs, and then takes the completions of all threads. Meanwhile the other waiting threads
 * sleep.
 *
 * A file calls functions of the files listed above it, but no function of the files below it.
 */
#ifndef REGIONS_FILE_IMPL_H
#define REGIONS_FILE_IMPL_H

#include <librpmafile.h>
#include <pthread.h>

#include "base/error.h"
#include "base/lock.h"
#include "regions/file_ranges.h"
#include "regions/session.h"
#include "regions/target.h"

#define FILE_RING    (1u << 20)  /* size of the staging memory */
#define FILE_BIG     (64u << 10) /* from this size on, registering costs less than copying */
#define FILE_COLLECT (64u << 10) /* collected bytes that are posted without a sync */
#define FILE_PIECE   (1u << 20)  /* largest part of a large buffer that is one operation */
#define FILE_DEPTH   256         /* largest sum of outstanding and collected operations */
#define FILE_BATCH   64
/* largest number of writes in a batch; the rest of the batch is for flushes */
#define FILE_BATCH_WRITE 48
#define FILE_POSTS       FILE_DEPTH /* limit of outstanding posts: each contains an operation */
#define FILE_SYNC_RANGES 8          /* a sync of more ranges becomes a sync of everything */
#define FILE_GAPS        8

struct file_post {
	uint64_t operations;  /* this post completes all operations up to this number */
	uint64_t ring_end;    /* the post's completion frees staging memory up to this position */
	uint64_t ticket;      /* the sync that completes with the post; 0: no sync */
	unsigned range_count; /* number of that sync's ranges; 0: everything */
	struct rpma_file_range ranges[FILE_SYNC_RANGES];
	bool is_read;
	void *read_to; /* destination of a small read; NULL: no copy */
	size_t read_from, read_len;
	/* the buffer of a large read, which is deregistered with this post */
	struct rpma_mr_local *read_mr;
};

/* Adjacent writes that become one operation, which is not yet in the batch. */
struct file_run {
	size_t at; /* position in the ring */
	size_t len;
	uint64_t offset;
};

/* Tickets that got no answer because the connection was lost: from < ticket <= to. */
struct file_gap {
	uint64_t from, to;
};

struct rpma_file {
	struct lock lock;
	/* For threads that sleep until another thread has taken completions. A thread takes
	 * sleep_lock while it holds `lock`, and then releases `lock`. */
	pthread_mutex_t sleep_lock;
	pthread_cond_t moved;
	uint64_t moves;
	/* Arguments of the open call. */
	struct target target;
	uint32_t flags;
	int timeout_ms, reconnect_ms;
	char *secret_file;
	char owner[RPMA_CONN_OWNER_MAX + 1]; /* name of the owner; "": none */
	uint64_t write_from, write_to;
	bool claims; /* claim the range on each connection */
	struct hello_begin begin;
	struct claim_id claim; /* the client's claim of the range */
	bool has_put;          /* rpma_file_put_end() has returned 0 */
	/* The connection. */
	struct session s;
	struct rpma_mr_local *ring_mr;
	struct rpma_batch *batch;
	uint32_t caps;
	enum rpma_flush_type flush_type;
	bool persists;
	struct hello_content content; /* content of the region at the time of the open */
	uint64_t length;
	enum rpma_durability durability;
	char link[16], device[64];
	/* State of the file. */
	int failed; /* result of all later calls; 0: no failure. `why` has the text. */
	struct error why;
	unsigned inside;    /* number of calls that use the connection */
	bool is_reopening;  /* rpma_file_reopen() is one of these calls */
	bool polls;         /* a thread waits for completions without the lock */
	unsigned waiting;   /* threads that sleep until the poller has taken the completions */
	unsigned silent_ms; /* time without a completion while the poller waited */
	/* The outstanding posts. */
	struct file_post posts[FILE_POSTS];
	/* Counts since the first open. */
	uint64_t posted, completed;
	uint64_t operations, left,
		/* numbers of all operations, of the operations that have left the batch, and of
		 * the completed operations */
		ended;
	struct file_run run;
	size_t unposted; /* bytes in the batch and in the run */
	uint8_t *ring;
	/* number of bytes handed out, and of bytes freed, since the first open */
	uint64_t ring_head, ring_tail;
	/* State of the syncs. */
	uint64_t tickets, answered;
	struct file_gap gaps[FILE_GAPS];
	unsigned gap_count;
	bool has_foreign; /* a former connection may have left unflushed bytes */
	struct file_ranges ranges;
	pthread_mutex_t verify_lock; /* taken before lock */
	struct rpma_digest digest;
};

/* The version script hides these functions, too. With this pragma the compiler calls them
 * directly. */
#pragma GCC visibility push(hidden)

/* file_error.c: results and texts of the calling thread. */
int file_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int file_error_of(const struct error *err);
/* Returns the result for an error, without setting the text. */
int file_error_code(const struct error *err);
int file_error_invalid(const char *function, const char *what);

/* file_list.c: lists regions and the files in them. */
enum rpma_file_holds file_holds(const struct hello_content *content);

/* file_claim.c: claims the part of the region that this client writes. */
/* Claim the range on a new connection. */
int file_claim(struct rpma_file *f, struct error *err);
/* Sync everything that is not synced yet. */
int file_sync_rest(struct rpma_file *f);

/* file_open.c: opens files, and opens them again after a loss. */
const struct rpma_file_options *file_options_or_defaults(const struct rpma_file_options *o);
bool file_options_are_valid(const struct rpma_file_options *o);
int file_options_timeout(const struct rpma_file_options *o);

/* file_wait.c: waits for completions. */
/* Wake all sleeping threads, so that they check their conditions again. */
void file_wake_all(struct rpma_file *f);
static inline void file_wake(struct rpma_file *f)
{
	if (__builtin_expect(f->waiting, 0))
		file_wake_all(f);
}

/* Sleep until the next wake-up, or at most left_ms milliseconds (-1: no limit); without the
 * lock. */
void file_sleep(struct rpma_file *f, int left_ms);
/* Record that the connection has failed. The caller holds the lock; the call releases it. */
int file_enter_failed(struct rpma_file *f);
/* Take the lock. 0: the call may use the connection until file_leave(), which returns rc. */
static inline int file_enter(struct rpma_file *f)
{
	lock_enter(&f->lock);
	if (__builtin_expect(f->failed, 0))
		return file_enter_failed(f);
	f->inside++;
	return 0;
}

static inline int file_leave(struct rpma_file *f, int rc)
{
	f->inside--;
	if (__builtin_expect(f->is_reopening, 0))
		file_wake(f);
	lock_leave(&f->lock);
	return rc;
}

/* End a call that began an operation. *ticket becomes the last ticket, unless rc is a failure. */
static inline int file_leave_with(struct rpma_file *f, int rc, uint64_t *ticket)
{
	if (!rc)
		*ticket = f->tickets;
	return file_leave(f, rc);
}

/* Deregister the buffers of outstanding reads, so that the device places no more bytes in them. */
void file_drop_reads(struct rpma_file *f);
/* The first failure becomes the result of all later calls. Returns this result. */
int file_fail(struct rpma_file *f, int code, const struct error *err);
int file_post_failed(struct rpma_file *f, const char *what, int rc);
int file_result(const struct rpma_file *f);
/* Take and handle all completions that have come. */
void file_take(struct rpma_file *f);
/*
 * Wait without the lock until *counter has reached the value, the connection has failed, or the
 * deadline has passed (RPMA_E_AGAIN). The call waits before its first check, because operations
 * that were just posted cannot have completed; file_take() checks without waiting.
 */
int file_wait(struct rpma_file *f, const uint64_t *counter, uint64_t value, uint64_t deadline);

/* file_post.c: collects operations and sends them as posts. */
/* Returns the position for a buffer of len bytes. A buffer is in one piece: if the ring's end
 * leaves too few bytes, the buffer starts at the ring's beginning. */
static inline uint64_t file_ring_begin(const struct rpma_file *f, size_t len)
{
	size_t at = f->ring_head % FILE_RING;

	return at + len <= FILE_RING ? f->ring_head : f->ring_head + (FILE_RING - at);
}

/* Returns true if the queue has room for that many more operations, in any number of posts, and
 * the ring has room for the buffer. */
static inline bool file_has_room(const struct rpma_file *f, unsigned operations, size_t len)
{
	return f->operations + operations - f->ended <= FILE_DEPTH &&
	       file_ring_begin(f, len) + len - f->ring_tail <= FILE_RING;
}

/*
 * Wait until the queue has room for that many operations and the ring for that many bytes. No
 * other thread can take the room before the lock is released. A caller waits once, before it
 * changes any state, because other threads may post during the wait.
 */
int file_wait_for_room(struct rpma_file *f, unsigned operations, size_t len);
static inline int file_reserve(struct rpma_file *f, unsigned operations, size_t len)
{
	return __builtin_expect(file_has_room(f, operations, len), 1)
		       ? 0
		       : file_wait_for_room(f, operations, len);
}

static inline size_t file_ring_take(struct rpma_file *f, size_t len)
{
	uint64_t begin = file_ring_begin(f, len);

	f->ring_head = begin + len;
	return begin % FILE_RING;
}

/* Put the run into the batch. */
int file_add_run(struct rpma_file *f, int flags);
static inline int file_close_run(struct rpma_file *f, int flags)
{
	return f->run.len ? file_add_run(f, flags) : 0;
}

/* Returns the next post. The caller has added the post's last operation, and fills in the
 * members. */
static inline struct file_post *file_post_new(struct rpma_file *f)
{
	struct file_post *post = &f->posts[f->posted % FILE_POSTS];

	post->ticket = 0;
	post->range_count = 0;
	post->is_read = false;
	return post;
}

/* file_post() sends the batch as a post. file_post_direct() ends a post whose operation was sent
 * without the batch; the batch is empty then. */
int file_post(struct rpma_file *f);
int file_post_direct(struct rpma_file *f);
/* Send the collected operations now. Afterwards another operation fits. */
int file_post_collected(struct rpma_file *f);
/* Make room for one operation that is posted without the batch. Post the collected operations
 * first: of two operations on the same bytes, the later one must be executed last. */
int file_reserve_direct(struct rpma_file *f);
/* Register a large buffer of the caller for the duration of a call. */
int file_register(struct rpma_file *f, void *buf, size_t len, int usage, struct rpma_mr_local **mr);

static inline bool file_is_inside(const struct rpma_file *f, uint64_t offset, uint64_t len)
{
	return offset <= f->length && len <= f->length - offset;
}

#pragma GCC visibility pop

#endif
