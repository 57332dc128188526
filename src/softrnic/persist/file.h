/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h -- the files behind the regions, one entry for each.
 *
 * An entry lives as long as a region is on the file. Whatever fails for one mapping
 * of the file is remembered here, because it fails them all.
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
#include "softrnic/persist/vma.h"

/* How many write-backs of one file run at once: a slow file must leave threads to the others. */
#define FILE_SLOTS 2

/* And how many are read back at once, besides. */
#define FILE_READERS 2

/* A running slice of a write-back, and the jobs whose success is not known before it has ended
 * (pool.c). */
struct file_slot {
	bool busy;
	struct list held;
};

/* Jobs that wait for a turn at the file, and its own place among the files that may have one. */
struct file_queue {
	struct list jobs;
	struct list ready;
};

struct file {
	struct list node; /* the table's */
	dev_t dev;        /* as mappings show them */
	ino_t ino;
	dev_t st_dev; /* as fstat() shows them, of fd */
	ino_t st_ino;
	bool unique, copies_up; /* see medium.h */
	unsigned refs;
	enum vext_durability cls; /* DAX: device DAX. FILE: a mapping may be DAX if may_dax */
	bool may_dax;
	bool sized;
	bool served, direct; /* see medium.h */
	int fd;              /* O_PATH; -1: unreachable, or nothing to ask of it */
	char fs[32];         /* see medium.h */

	/* The newest, which covers what the older ones do; NULL: none. Set under the lock. */
	_Atomic(struct ownmap *) own;
	unsigned own_epoch;       /* never 0; the next one begins in the child of a fork() */
	pthread_mutex_t own_lock; /* inner to none; held while the file is opened */

	atomic_int error; /* -errno of the first write-back that failed */

	/* Under the pool's lock. */
	struct file_queue writes, reads;
	struct file_slot slot[FILE_SLOTS];
	unsigned readers; /* slices being read */
};

/*
 * The counted entry of the file behind a shared mapping. *out is NULL where nothing can
 * be persisted; fs then says why. 0 or -ENOMEM.
 */
int file_get(const struct vma *vma, struct file **out, char fs[32]);
void file_put(struct file *file); /* accepts NULL */

/*
 * See to it that the file is covered up to `end` by a mapping of ours (ownmap.h), for the sake of a
 * mapping of the application's that is writable or not. 0; -ENOMEM; another -errno: there is none.
 */
int file_own(struct file *file, uint64_t end, bool writable);
/* Where [offset, end) of the file is in our mapping; NULL: nowhere. */
void *file_own_at(const struct file *file, uint64_t offset, uint64_t end);

/* A write-back has failed. Not under the pool's lock. */
void file_fail(struct file *file, int error);

/* Every queue empty, every slot free. */
void file_reset_queues(struct file *file);
/* Where volatile memory is queued when it is to be summed. */
struct file *file_of_memory(void);

/*
 * Is `end`, an offset, still inside the file? 0, -EFAULT, -errno when the file system fails to
 * say, or FILE_END_UNKNOWN: there is no descriptor to ask, only the memory itself.
 */
int file_check_end(const struct file *file, uint64_t end);
#define FILE_END_UNKNOWN 1

void files_atfork_prepare(void);
void files_atfork_parent(void);
/* In the child: all queues are reset. */
void files_atfork_child(void);

#endif
