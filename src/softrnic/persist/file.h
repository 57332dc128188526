/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h -- the files behind the regions, and the kind of medium of each file.
 *
 * Each file has one entry. The entry lives as long as a region is on the file. A failure of one
 * mapping of the file is remembered here, because it affects all mappings of the file.
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
	/* DAX here means device DAX; whether a mapping of a file is DAX is a property of the
	 * mapping (may_dax). */
	enum vext_durability cls;
	bool may_dax;   /* the file system's block device is capable of DAX */
	bool has_end;   /* a regular file, which may be truncated */
	bool remote;    /* a server or a user-space file system may answer a direct read from its
			 * cache */
	bool direct;    /* a direct read bypasses caches; an old kernel may not report
			 * this */
	bool unique;    /* device and inode of a mapping identify one file */
	bool copies_up; /* opening the file for writing makes it another file (overlay) */
	dev_t st_dev;   /* from fstat() of fd */
	ino_t st_ino;
	int fd;      /* O_PATH, of a file that has a page cache; -1: no way leads to it, or none is
			needed */
	char fs[32]; /* name of the file system, or a word for memory without a file system */
};

/*
 * Find the medium of a shared mapping of a file (vma). A property that cannot be found out counts
 * as the weakest class. Only a shortage of descriptors or memory is returned as an error: -EMFILE,
 * -ENFILE or -ENOMEM. It may be over at the next call, and a region that counts as volatile by
 * mistake would persist nothing. The caller owns m->fd.
 */
int medium_find(const struct vma *vma, struct medium *m);

/* Number of slices of one file that are written back at once: a slow file must not occupy all
 * threads. */
#define FILE_SLOTS 2

/* Number of slices of one file that are read back at once, in addition. */
#define FILE_READERS 2

/* A running slice of a write-back, and the jobs whose success is unknown until it has ended
 * (pool.c). */
struct file_slot {
	bool busy;
	struct list unconfirmed;
};

/* Jobs that wait for a turn at the file, and the file's own place among the files with work. */
struct file_queue {
	struct list jobs;
	struct list ready;
};

struct file {
	struct list node; /* link in the table */
	dev_t dev;        /* device and inode, as mappings show them */
	ino_t ino;
	unsigned refs;
	struct medium medium; /* constant; the entry owns its descriptor */

	/*
	 * The newest own mapping, which covers all ranges of the older ones; NULL: none. Set under
	 * own_lock.
	 */
	_Atomic(struct ownmap *) own;
	/* number of the own mapping's life, never 0; a forked child starts the next life */
	unsigned own_epoch;
	pthread_mutex_t own_lock; /* the innermost lock; held while the file is opened */

	atomic_int error; /* -errno of the first write-back that failed */

	/* Guarded by the pool's lock. */
	struct file_queue writes, reads;
	struct file_slot slot[FILE_SLOTS];
	unsigned readers;   /* number of slices that are being read */
	uint64_t reach;     /* the gaps over which jobs share a write-back (group.h); 0: any */
	uint64_t single_ns; /* time that a short write-back of one job takes; 0: unknown */
};

/* Get a counted entry of the file behind a shared mapping. *out is NULL if the file cannot be
 * persisted; fs is then the reason. Returns 0 or -ENOMEM. */
int file_get(const struct vma *vma, struct file **out, char fs[32]);
void file_put(struct file *file); /* accepts NULL */

/* Extend the file's own mapping (ownmap.h) up to `end` at least. writable: the application's
 * mapping is writable. Returns 0 or -ENOMEM; with another -errno the file has no own mapping. */
int file_own(struct file *file, uint64_t end, bool writable);
/* Address of [offset, end) of the file in the own mapping; NULL: the range is not mapped. */
void *file_own_at(const struct file *file, uint64_t offset, uint64_t end);

/* Remember a failed write-back. Not to be called under the pool's lock. */
void file_fail(struct file *file, int error);

/* Empty every queue and free every slot. */
void file_reset_queues(struct file *file);
/* The entry at which volatile memory is queued for a digest. */
struct file *file_of_memory(void);

/* The present end of a file. */
struct file_end {
	int error;     /* 0, -errno of the file system, or FILE_END_UNKNOWN: see below */
	uint64_t size; /* UINT64_MAX: the file has no end */
};
#define FILE_END_UNKNOWN 1 /* there is no descriptor for a check, only the memory itself */

void file_find_end(const struct file *file, struct file_end *end);
/* Is a range that ends at range_end inside the file? Returns 0, -EFAULT or the error. */
int file_judge_end(const struct file_end *end, uint64_t range_end);

void files_atfork_prepare(void);
void files_atfork_parent(void);
/* In a forked child: reset all queues. */
void files_atfork_child(void);

#endif
