/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon.h -- rpmirrord as a whole. */
#ifndef MIRRORD_DAEMON_H
#define MIRRORD_DAEMON_H

#include "mirrord/conf.h"

/*
 * Open everything that the configuration names, print where it listens, and serve until SIGINT or
 * SIGTERM. SIGHUP reads the configuration again from path, and passes its log level to set_log().
 * Kinds of error.h.
 */
int daemon_run(struct conf *conf, const char *path, void (*set_log)(enum log_level level),
	       struct error *err);

#endif
