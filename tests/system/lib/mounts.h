/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.h -- a test with file systems of its own. */
#ifndef SYSTEM_MOUNTS_H
#define SYSTEM_MOUNTS_H

#include <sched.h>
#include <sys/mount.h>

#include "system/lib/check.h"

/* Later mounts belong to this process alone, and end with the process. */
static inline void need_own_mounts(void)
{
	need_root("a file system of its own");
	if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	printf("skipped: no file systems of its own\n");
	exit(SKIPPED);
}

#endif
