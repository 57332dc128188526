/* SPDX-License-Identifier: BSD-3-Clause */
/* medium.h -- what kind of medium the file of a shared mapping lies on. */
#ifndef PERSIST_MEDIUM_H
#define PERSIST_MEDIUM_H

#include <stdbool.h>

#include "softrnic/persist/persist.h"
#include "softrnic/persist/vma.h"

struct medium {
	/* DAX here means device DAX; whether a mapping of a file is, is a property of the mapping.
	 */
	enum vext_durability cls;
	bool may_dax;   /* the file system's block device is capable of DAX */
	bool sized;     /* a regular file, which has an end */
	bool served;    /* by somebody whose cache may answer a direct read */
	bool direct;    /* a direct read is one, though the kernel may be too old to say so */
	bool unique;    /* what a mapping shows, device and inode, is enough to tell files apart */
	bool copies_up; /* a file is another one as soon as it is opened for writing */
	dev_t st_dev;   /* of fd */
	ino_t st_ino;
	int fd; /* O_PATH of what has a page cache, owned by the caller; -1: nothing leads to it */
	char fs[32]; /* the file system's name, or a word for what there is instead of one */
};

/*
 * vma: a shared mapping of a file. When in doubt the answer is the weakest class; but a shortage
 * of descriptors or memory is no such doubt, for a volatile region does not keep what it is told
 * to: -EMFILE, -ENFILE or -ENOMEM.
 */
int medium_find(const struct vma *vma, struct medium *m);

#endif
