/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h -- rpmemd --listen: accepts connections, limits their number, and starts a process
 * for each of them. */
#ifndef RPMEMD_LISTENER_H
#define RPMEMD_LISTENER_H

#include "rpmemd/options.h"

/* Runs until SIGTERM or SIGINT. Returns the exit code. */
int listener_run(const struct options *opts, struct settings *s);

#endif
