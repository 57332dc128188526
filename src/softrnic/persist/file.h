/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h -- the files behind the regions, and what kind of medium each lies on.
 *
 * There is one entry a file. It lives as long as a region is on the file. What fails for one
 * mapping of the file is remembered here, because it fails all of them.
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
	bool direct;    /* a direct read bypasses caches, though the kernel may be too old to
			 * report it */
	bool unique;    /* what a mapping shows, device and inode, identifies one file */
	bool copies_up; /* opening the file for writing makes it another file (overlay) */
	dev_t st_dev;   /* as fstat() shows them, of fd */
	ino_t st_ino;
	int fd;      /* O_PATH, of a file that has a page cache; -1: no way leads to it, or none is
			needed */
	char fs[32]; /* the file system's name, or a word for what there is instead of one */
};

/*
 * vma: a shared mapping of a file. What cannot be found out gets the weakest class, except for a
 * shortage of descriptors or memory, which is returned: -EMFILE, -ENFILE or -ENOMEM. (It may be
 * over at the next call, and a region that is volatile by mistake would not persist anything.)
 * The caller owns m->fd.
 */
int medium_find(const struct vma *vma, struct medium *m);

/*
 * The number of slices of one file that are written back at once: a slow file must leave threads to
 * others.
 */
#define FILE_SLOTS 2

/* The number of slices that are read back at once, besides. */
#define FILE_READERS 2

/* A running slice of a write-back, and the jobs whose success is unknown until it has ended
 * (pool.c). */
struct file_slot {
	bool busy;
	struct list unconfirmed;
};

/* Jobs that wait for a turn at the file, and the file's own place among those that have work. */
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
	/* number of the own mapping's life, never 0; the child of a fork() begins the next one */
	unsigned own_epoch;
	pthread_mutex_t own_lock; /* the innermost lock; held while the file is opened */

	atomic_int error; /* -errno of the first write-back that failed */

	/* Under the pool's lock. */
	struct file_queue writes, reads;
	struct file_slot slot[FILE_SLOTS];
	unsigned readers;   /* number of slices that are being read */
	uint64_t reach;     /* the gaps over which jobs share a write-back (group.h); 0: any */
	uint64_t single_ns; /* time that a short write-back of one job takes; 0: unknown */
};

/*
 * The counted entry of the file behind a shared mapping. *out is NULL where nothing can be
 * persisted; fs is then the reason. 0 or -ENOMEM.
 */
int file_get(const struct vma *vma, struct file **out, char fs[32]);
void file_put(struct file *file); /* accepts NULL */

/*
 * Make the file's own mapping (ownmap.h) reach up to `end` at least. writable: the application's
 * mapping is. 0; -ENOMEM; another -errno: there is none.
 */
int file_own(struct file *file, uint64_t end, bool writable);
/* Address of [offset, end) of the file in the own mapping; NULL: it is not there. */
void *file_own_at(const struct file *file, uint64_t offset, uint64_t end);

/* Remember that a write-back has failed. Not under the pool's lock. */
void file_fail(struct file *file, int error);

/* Every queue empty, every slot free. */
void file_reset_queues(struct file *file);
/* The entry at which volatile memory is queued for a digest. */
struct file *file_of_memory(void);

/* The present end of a file. */
struct file_end {
	int error;     /* 0, -errno of the file system, or FILE_END_UNKNOWN: see below */
	uint64_t size; /* UINT64_MAX: it has no end */
};
#define FILE_END_UNKNOWN 1 /* there is no descriptor to ask, only the memory itself */

void file_find_end(const struct file *file, struct file_end *end);
/* Is a range that ends there inside? 0, -EFAULT or the error. */
int file_judge_end(const struct file_end *end, uint64_t range_end);

void files_atfork_prepare(void);
void files_atfork_parent(void);
/* In the child: all queues are reset. */
void files_atfork_child(void);

#endif
