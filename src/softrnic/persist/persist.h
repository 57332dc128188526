/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * persist.h -- finds the files behind registered memory, and writes this memory's bytes to the
 * medium.
 *
 * Classes. Each page range of registered memory has a durability class (enum vext_durability). At
 * registration the class is found from the kernel's list of mappings and the file systems behind
 * them (procfs.h, medium.c). Memory of unknown kind gets the weakest class.
 *
 * Ownership. A region describes one registered memory range: ranges of one class each. Regions are
 * reference-counted, and each holds a reference to the entry (file.h) of each file behind it. An
 * entry owns an O_PATH descriptor of the file and the file's own mapping (ownmap.h), through which
 * write-backs go. So a region and a job on it outlive the application's mapping.
 *
 *   registered memory --> region --> ranges --> file entry --> O_PATH descriptor
 *   pending job ----------^                         |
 *                                                   +--> own mappings, the newest first
 *
 * Sticky failures. If a write-back of a file fails once, the file counts as failed for every region
 * on it, of any connection, until all these regions are deleted. The kernel reports a write-back
 * error once per open file description, and the next msync() would return success although bytes
 * are lost.
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

/* Find the class of each part of [addr, addr+len). Returns 0, -ENOMEM, -EFAULT (part of the range
 * is not mapped), or -errno if the kernel does not list the mappings (no /proc, or no descriptor
 * left). */
int persist_region_new(void *addr, size_t len, struct persist_region **out);
/*
 * A region is reference-counted; a new one has one reference. The region may outlive the memory
 * that it describes. It keeps the entries of its files alive, and with them the remembered
 * failures. A pending job needs a reference to its region. Both functions accept NULL.
 */
struct persist_region *persist_region_get(struct persist_region *region);
void persist_region_put(struct persist_region *region);
/* Returns the weakest class in [addr, addr+len). */
enum vext_durability persist_region_class(const struct persist_region *region, const void *addr,
					  size_t len);
/* Is the whole region volatile? */
bool persist_region_is_volatile(const struct persist_region *region);
/*
 * Can a load or a store to the region wait for a file system? True for every shared mapping of a
 * file, except files in memory only. False for a private mapping, which holds a program's own data:
 * only its first loads can wait.
 */
bool persist_region_can_stall(const struct persist_region *region);
/*
 * Can all of [addr, addr+len) be written back without the application's mapping of it? If so, a
 * write-back can be submitted even after the memory was deregistered or unmapped.
 */
bool persist_region_is_detachable(const struct persist_region *region, const void *addr,
				  size_t len);
/* Announce a store to [addr, addr+len). The caller has loaded the pages before. The function
 * prepares them so that the store makes only these pages of a file dirty (base/folio.h). Waits for
 * no file system. */
void persist_region_expect_store(const struct persist_region *region, const void *addr, size_t len);
/* Has a write-back to a file of this region failed? */
bool persist_region_has_failed(const struct persist_region *region);
/* Find the class of memory outside of regions, and one line that explains it: path, file system,
 * kind of mapping. Writes at most size bytes. Fails like persist_region_new(). */
int persist_classify(const void *addr, size_t len, enum vext_durability *cls, char *why,
		     size_t size);

enum persist_want {
	PERSIST_WRITE_BACK,
	PERSIST_DIGEST, /* write back, then read back and return the digest */
};

/* One write-back, or one digest. The caller owns the job and keeps it (and the region) until the
 * job is done. Members that are not set are zero. */
struct persist_job {
	struct persist_region *region;
	void *addr; /* start of a range inside the region; needs no alignment */
	size_t len;
	/* true: fail with -ENOTSUP for volatile memory; false: a flush of such memory succeeds
	 * without effect */
	bool strict;
	enum persist_want want;
	uint32_t alg;               /* for DIGEST: enum vext_digest_alg */
	struct vext_digest *digest; /* for DIGEST: filled in when the job has succeeded */
	void (*done)(struct persist_job *job, int status); /* called once, from a pool thread */

	/* The remaining members belong to the pool; its lock guards them. */
	struct list node;
	/* the job is queued or unconfirmed (pool.c) at this file; NULL: it is running */
	struct file *waits_for;
	struct readback *readback;
	bool reading; /* all bytes are written back; the job now reads them back */
	bool cancelled;
	bool abandoned;
	bool touching; /* the running slice accesses the memory through its address */
	size_t progress;
	size_t slice; /* length of the running slice */
	int status;
};

/*
 * Start a job. Returns true if the job is already finished; *status is then set, and done() is not
 * called. Returns false if a pool thread will call done(). The status is 0, or -errno of the failed
 * write-back (sticky for the file; -ENOMEM if the memory is no longer mapped), -EFAULT (the range
 * is past the end of the file, or outside of the region), -ENOTSUP (volatile and strict), -EAGAIN
 * (no thread can be started) or -ECANCELED. A digest's status may also be -EINVAL (unknown
 * algorithm, or more than 4 GiB), -ENOMEM, or -errno of the failed read.
 *
 * A failed read is not sticky. The kernel reports it at each attempt, so lost bytes never pass as
 * good ones. To repair a bad block, a program writes, flushes and verifies once more.
 */
bool persist_submit(struct persist_job *job, int *status);
/*
 * Like persist_submit(), for a thread that may wait for a write-back. If *here is true, the calling
 * thread must run the job by calling persist_run_here() soon; that call blocks as long as the file
 * system does, and may also call done() of other jobs. Another thread may call done() of this job
 * if its success depends on a slice that the other thread runs. A thread has at most one such job
 * at a time. *here is false, and the pool runs the job, if the job needs more than one slice,
 * several files, or more than an msync(), if other jobs wait in the file's queue, or if too many
 * slices run.
 */
bool persist_submit_here(struct persist_job *job, int *status, bool *here);
void persist_run_here(void);
/*
 * End a submitted job after its running slice, or immediately if no slice is running (this call
 * then calls done()). The status is -ECANCELED, unless the job has failed. The job must stay valid
 * during the call; it may already be done.
 */
void persist_cancel(struct persist_job *job);
/*
 * Cancel a job whose memory is about to go. Returns true if the job no longer accesses the memory.
 * done() may follow much later; until done() is called the job must stay valid, and the reference
 * to its region must be held. Returns false if a slice is using the memory by its address (a
 * write-back of DAX lines, or a digest by loads); the memory must then stay until done() is called.
 *
 * If the running slice fails, the failure is remembered for the file as always. The function does
 * not wait for an msync() of the application's mapping, because msync() only uses the kernel's list
 * of mappings. Such an msync() may write back a later mapping at the same address, which does no
 * harm.
 */
bool persist_abandon(struct persist_job *job);

/* Called around fork(). The child forgets the parent's threads and queued jobs. */
void persist_atfork_prepare(void);
void persist_atfork_parent(void);
void persist_atfork_child(void);

#endif
