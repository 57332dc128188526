/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.h -- gives a test its own mount namespace. */
#ifndef SYSTEM_MOUNTS_H
#define SYSTEM_MOUNTS_H

#include <sched.h>
#include <sys/mount.h>

#include "system/lib/check.h"

/* After this call mounts are visible only to this process, and vanish when it exits. */
static inline void need_own_mounts(void)
{
	need_root("a file system of its own");
	if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	printf("skipped: no file systems of its own\n");
	exit(SKIPPED);
}

#endif
