/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * persist.h -- what is behind a piece of memory, and how to get it onto the medium.
 *
 * A region is what a registered memory range looks like from here: ranges of one
 * durability class each, and the files behind them. A write-back of a range either
 * finishes inline (volatile memory, short DAX ranges) or in the pool's threads.
 *
 * A file whose write-back failed once is failed for every region on it until all of
 * them are deleted: the kernel reports a write-back error once per open file, and the
 * next msync would claim success for bytes that are lost.
 *
 * All functions are thread-safe.
 */
#ifndef PERSIST_H
#define PERSIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "verbs_ext/values.h"

struct persist_region;

/*
 * Classify [addr, addr+len). 0 or -ENOMEM, -EFAULT (part of the range is not mapped), or
 * -errno when the kernel does not tell about our mappings (no /proc, no descriptor left).
 */
int persist_region_new(void *addr, size_t len, struct persist_region **out);
/*
 * A region is counted, and made with a count of one. It may outlive the memory that it describes:
 * its files' entries, and with them a failure that is remembered, live as long as it does. A
 * pending job needs a count of its region. Both accept NULL.
 */
struct persist_region *persist_region_get(struct persist_region *region);
void persist_region_put(struct persist_region *region);
/* The weakest class found in [addr, addr+len). */
enum vext_durability persist_region_class(const struct persist_region *region, const void *addr,
					  size_t len);
/* Nothing in all of the region can be made persistent. */
bool persist_region_is_volatile(const struct persist_region *region);
/*
 * May a load or a store to some of the memory have to wait for a file system? True of every shared
 * mapping of a file that is not made of memory alone. Of a private one, which is what a program's
 * own data are, only the first loads are meant to wait.
 */
bool persist_region_can_stall(const struct persist_region *region);
/*
 * Can all of [addr, addr+len) be written back without the application's mapping of it? Then a
 * write-back may be submitted although the memory is not registered, or not mapped, any more.
 */
bool persist_region_is_detachable(const struct persist_region *region, const void *addr,
				  size_t len);
/* A write-back to one of its files has failed. */
bool persist_region_has_failed(const struct persist_region *region);
/* One line that says why: path, file system, mapping kind. Writes at most size bytes. */
void persist_region_why(const struct persist_region *region, char *buf, size_t size);
/* Both for memory that is no region. Fails like persist_region_new(). */
int persist_classify(const void *addr, size_t len, enum vext_durability *cls, char *why,
		     size_t size);

enum persist_want {
	PERSIST_WRITE_BACK,
	PERSIST_DIGEST, /* write back, then tell the digest of what is read back */
};

/*
 * One write-back, or one digest. The caller owns the job and keeps it (and the region) until
 * it is done. Those members that are not set are zero.
 */
struct persist_job {
	struct persist_region *region;
	void *addr; /* inside the region; alignment is the pool's business */
	size_t len;
	bool strict; /* volatile memory fails with -ENOTSUP instead of passing */
	enum persist_want want;
	uint32_t alg;               /* DIGEST: enum vext_digest_alg */
	struct vext_digest *digest; /* DIGEST: set when the job has succeeded */
	void (*done)(struct persist_job *job, int status); /* called once, from a pool thread */

	/* The pool's. */
	struct list node;
	struct file *waits_for; /* it has no slice under way */
	struct readback *readback;
	bool reading; /* all is written back */
	bool cancelled;
	bool abandoned;
	bool touching; /* the slice under way uses the memory by its address */
	size_t progress;
	int status;
};

/*
 * Start a job. Returns true when it is finished already, with *status set (done() is not
 * called then); false when done() will be called from a pool thread.
 * status: 0, or -errno of the failed write-back (sticky for the file; -ENOMEM where the
 * memory is not mapped any more), -EFAULT (range past the end of the file, or outside of
 * the region), -ENOTSUP (volatile and strict), -EAGAIN (no thread can be started),
 * -ECANCELED; of a digest also -EINVAL (unknown algorithm, or more than 4 GiB), -ENOMEM, or
 * -errno of the failed read.
 *
 * A failed read is not sticky. The kernel reports it again whenever it is tried again, so
 * nobody can take lost bytes for good ones; and writing, flushing and verifying once more is
 * how a bad block is mended.
 */
bool persist_submit(struct persist_job *job, int *status);
/*
 * Have a submitted job end with the slice that is under way, or at once (then done() is called
 * from here) when there is none: with -ECANCELED, unless it has failed. The job must not go away
 * meanwhile, but it may be done already.
 */
void persist_cancel(struct persist_job *job);
/*
 * Cancel a job whose memory is about to go. True: from now on the job neither loads from nor
 * stores to the memory. done() may come much later all the same, and until then the job must not
 * go away and its region must stay counted. False: a slice uses the memory by its address (lines of
 * DAX written back, or a digest by loads), so the memory must stay until done().
 *
 * What becomes of the slice under way is remembered for the file as always. An msync() of the
 * application's own mapping is not waited for: it looks at the kernel's list of mappings only. It
 * may write back what was mapped there since, which hurts nobody.
 */
bool persist_abandon(struct persist_job *job);

/* After fork(), in the child: forget threads and queued jobs of the parent. */
void persist_atfork_prepare(void);
void persist_atfork_parent(void);
void persist_atfork_child(void);

#endif
