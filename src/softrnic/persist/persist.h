/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * persist.h -- what is behind a piece of memory, and how to get it onto the medium.
 *
 * Classes. Each page range of registered memory has a durability class (enum vext_durability),
 * found at registration from the kernel's list of mappings and the file systems behind them
 * (procfs.h, medium.c). What cannot be found out gets the weakest class.
 *
 * Ownership. A region describes one registered memory range: ranges of one class each. It is
 * counted, and it holds a count of the entry of each file behind it (file.h). An entry owns an
 * O_PATH descriptor of the file and the file's own mapping (ownmap.h), through which write-backs
 * go. So a region and a job on it outlive the application's mapping.
 *
 *   registered memory --> region --> ranges --> file entry --> O_PATH descriptor
 *   pending job ----------^                         |
 *                                                   +--> own mappings, the newest first
 *
 * Sticky failures. A file whose write-back failed once is failed for every region on it, of any
 * connection, until all of these regions are deleted: the kernel reports a write-back error once
 * per open file description, and the next msync() would claim success for bytes that are lost.
 *
 * Jobs. A write-back or digest finishes inline (volatile memory, short DAX ranges) or in the pool's
 * threads; pool.c describes the states of a job, the threads and the locks.
 *
 * Faults that must not break the guarantee that a finished write-back is on the medium:
 *
 *   fault                                              answer
 *   the medium fails, or the disk is full              error, sticky for the file
 *   another fsync() takes the kernel's report          own open file description (ownmap.h)
 *   the file is truncated, before or meanwhile         -EFAULT, before and after each slice; faults
 *                                                      of loads are caught (base/safecopy.h)
 *   the application unmaps or deregisters the memory   own mapping; persist_abandon()
 *   the application closes, renames, deletes the file  the O_PATH descriptor stays
 *   files that share device and inode numbers (btrfs,  more is compared (reopen_mapped()), or the
 *   overlayfs)                                         failure counts for all that may be the file
 *   the file system does not answer                    only jobs of its files wait; a stalled slice
 *                                                      gives up its place among the threads
 *   no thread, descriptor or memory left               -EAGAIN or the errno; never a weaker class
 *   a bad block under a digest                         error of this digest, not sticky
 *   fork()                                             the child has no jobs and no own mappings
 *   the process is killed                              none is needed: nothing finished is undone
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
 * -errno when the kernel does not list the mappings (no /proc, no descriptor left).
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
/* Is all of the region volatile? */
bool persist_region_is_volatile(const struct persist_region *region);
/*
 * May a load or a store to some of the memory have to wait for a file system? True of every shared
 * mapping of a file that is not made of memory alone. A private one, which is what a program's own
 * data are, counts as no: only its first loads can wait.
 */
bool persist_region_can_stall(const struct persist_region *region);
/*
 * Can all of [addr, addr+len) be written back without the application's mapping of it? Then a
 * write-back may be submitted although the memory is not registered, or not mapped, any more.
 */
bool persist_region_is_detachable(const struct persist_region *region, const void *addr,
				  size_t len);
/*
 * [addr, addr+len), whose pages were loaded, is about to be stored to: the store shall make no more
 * of a file dirty than these pages (base/folio.h). Waits for no file system.
 */
void persist_region_expect_store(const struct persist_region *region, const void *addr, size_t len);
/* Has a write-back to one of its files failed? */
bool persist_region_has_failed(const struct persist_region *region);
/*
 * The class of memory that is no region, and one line that explains it: path, file system, kind of
 * mapping. Writes at most size bytes. Fails like persist_region_new().
 */
int persist_classify(const void *addr, size_t len, enum vext_durability *cls, char *why,
		     size_t size);

enum persist_want {
	PERSIST_WRITE_BACK,
	PERSIST_DIGEST, /* write back, then return the digest of what is read back */
};

/*
 * One write-back, or one digest. The caller owns the job and keeps it (and the region) until
 * it is done. Those members that are not set are zero.
 */
struct persist_job {
	struct persist_region *region;
	void *addr; /* a range inside the region; it need not be aligned */
	size_t len;
	bool strict; /* volatile memory fails with -ENOTSUP instead of passing */
	enum persist_want want;
	uint32_t alg;               /* DIGEST: enum vext_digest_alg */
	struct vext_digest *digest; /* DIGEST: set when the job has succeeded */
	void (*done)(struct persist_job *job, int status); /* called once, from a pool thread */

	/* Fields of the pool, under its lock. */
	struct list node;
	struct file *waits_for; /* queued or unconfirmed there; NULL: a slice is under way */
	struct readback *readback;
	bool reading; /* all bytes are written back, and are now read back */
	bool cancelled;
	bool abandoned;
	bool touching; /* the slice under way uses the memory by its address */
	size_t progress;
	size_t slice; /* of it, under way */
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
 * A failed read is not sticky. The kernel reports it at each attempt, so lost bytes are never taken
 * for good ones; and writing, flushing and verifying once more is how a bad block is repaired.
 */
bool persist_submit(struct persist_job *job, int *status);
/*
 * The same for a thread that may wait for a write-back. *here: the job is the calling thread's to
 * run, by persist_run_here(), which blocks as long as the file system does, and should follow at
 * once. done() is called from there, too, as that of other jobs may be; or by another thread, if
 * the success depends on the slice beside it. A thread has one such job at a time. A job of more
 * than a slice, of several files or of memory that needs more than an msync() is the pool's, and so
 * is one behind others that wait at the file.
 */
bool persist_submit_here(struct persist_job *job, int *status, bool *here);
void persist_run_here(void);
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
 * A failure of the slice under way is remembered for the file as always. An msync() of the
 * application's mapping is not waited for: it uses the kernel's list of mappings only. It may write
 * back what was mapped there since, which does no harm.
 */
bool persist_abandon(struct persist_job *job);

/* After fork(), in the child: forget threads and queued jobs of the parent. */
void persist_atfork_prepare(void);
void persist_atfork_parent(void);
void persist_atfork_child(void);

#endif
