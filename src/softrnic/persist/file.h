/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h -- the files behind the regions, and the kind of medium of each file.
 *
 * Each file has one entry, which exists as long as a region lies on the file. The entry remembers a
 * failed write-back of one mapping, because the failure affects all mappings of the file.
 */
#ifndef PERSIST_FILE_H
#define PERSIST_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "softrnic/persist/ownmap.h"
#include "softrnic/persist/persist.h"
#include "softrnic/persist/procfs.h"

struct medium {
	/* Durability class of the medium. DAX here means device DAX only. Whether a mapping of a
	 * file is DAX depends on the mapping, not on the file (see may_dax). */
	enum vext_durability cls;
	bool may_dax; /* the file system's block device is capable of DAX */
	bool has_end; /* true for a regular file, which may be truncated */
	bool remote;  /* a server or a user-space file system may answer a direct read from its
			 * cache */
	bool direct;  /* a direct read bypasses caches; an old kernel may not report
			 * this */
	bool unique;  /* device and inode of a mapping identify one file */
	/* opening the file for writing copies it to another file (overlay file system) */
	bool copies_up;
	dev_t st_dev; /* device number that fstat() of `fd` returns */
	ino_t st_ino;
	/* O_PATH descriptor of a file with a page cache; -1: no path leads to the file, or none is
	 * needed */
	int fd;
	char fs[32]; /* name of the file system, or a word for memory without a file system */
};

/*
 * Find the medium of a shared mapping of a file (vma). A property that cannot be found out counts
 * as the weakest class. Only a shortage of descriptors or memory is an error: -EMFILE, -ENFILE or
 * -ENOMEM. The shortage may be over at the next call; if it counted as volatile memory instead, the
 * region would persist nothing. The caller owns m->fd.
 */
int medium_find(const struct vma *vma, struct medium *m);

/* Number of slices of one file that are written back at the same time: a slow file must not occupy
 * all threads. */
#define FILE_SLOTS 2

/* Number of slices of one file that are read back at the same time. They run in addition to the
 * FILE_SLOTS write-backs. */
#define FILE_READERS 2

/* A running slice of a write-back, and the jobs whose success is unknown until it has ended
 * (pool.c). */
struct file_slot {
	bool busy;
	struct list unconfirmed;
};

/* Jobs that wait for a thread to run a slice of this file, and this queue's link in the list of
 * files with work. */
struct file_queue {
	struct list jobs;
	struct list ready;
};

struct file {
	struct list node; /* link in the table */
	dev_t dev;        /* device and inode, as /proc/self/maps shows them */
	ino_t ino;
	unsigned refs;
	struct medium medium; /* constant; the entry owns the descriptor in it */

	/*
	 * The newest mapping that the library itself made of the file (ownmap.h). It covers all
	 * ranges of the older ones. NULL: there is none. Set under own_lock.
	 */
	_Atomic(struct ownmap *) own;
	/* generation of the library's own mapping, never 0; a forked child begins the next
	 * generation */
	unsigned own_epoch;
	pthread_mutex_t own_lock; /* the innermost lock; held while the file is opened */

	atomic_int error; /* -errno of the first write-back that failed */

	/* The pool's lock guards the members from here on. */
	struct file_queue writes, reads;
	struct file_slot slot[FILE_SLOTS];
	unsigned readers; /* number of slices that are being read */
	/* greatest gap between two jobs that share a write-back (group.h); 0: no limit yet */
	uint64_t reach;
	uint64_t single_ns; /* time that a short write-back of one job takes; 0: unknown */
};

/* Get the entry, with a reference, of the file behind a shared mapping. *out is NULL if the file
 * cannot be persisted; `fs` then states the reason. Returns 0 or -ENOMEM. */
int file_get(const struct vma *vma, struct file **out, char fs[32]);
void file_put(struct file *file); /* accepts NULL */

/* Extend the library's own mapping of the file (ownmap.h) up to `end` at least. `writable` is true
 * if the application's mapping is writable. Returns 0 or -ENOMEM. Another -errno means that the
 * file has no own mapping. */
int file_own(struct file *file, uint64_t end, bool writable);
/* Address of [offset, end) of the file in the library's own mapping, or NULL if the range is not
 * mapped. */
void *file_own_at(const struct file *file, uint64_t offset, uint64_t end);

/* Remember that a write-back failed. Must not be called under the pool's lock. */
void file_fail(struct file *file, int error);

/* Empty every queue and free every slot. */
void file_reset_queues(struct file *file);
/* The entry in whose queue digests of volatile memory wait. */
struct file *file_of_memory(void);

/* The file's size at present. */
struct file_end {
	int error;     /* 0, -errno of the file system, or FILE_END_UNKNOWN */
	uint64_t size; /* UINT64_MAX: the file has no end */
};
#define FILE_END_UNKNOWN 1 /* the file has no descriptor by which its size could be checked */

void file_find_end(const struct file *file, struct file_end *end);
/* Is a range that ends at range_end inside the file? Returns 0, -EFAULT, or end->error if the size
 * is unknown. */
int file_judge_end(const struct file_end *end, uint64_t range_end);

void files_atfork_prepare(void);
void files_atfork_parent(void);
/* In a forked child: reset all queues. */
void files_atfork_child(void);

#endif
