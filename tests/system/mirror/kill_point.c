/* SPDX-License-Identifier: BSD-3-Clause */
/* MIRROR_KILL_AT=NAME:N ends the process by SIGKILL when the point NAME is passed for the Nth time.
 * A point belongs to one thread. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mirrord/impl.h"

void kill_point(const char *name)
{
	static unsigned long passed;
	const char *at = getenv("MIRROR_KILL_AT");
	size_t len = strlen(name);

	if (!at || strncmp(at, name, len) != 0 || at[len] != ':')
		return;
	if (__atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED) == strtoul(at + len + 1, NULL, 10))
		kill(getpid(), SIGKILL);
}
