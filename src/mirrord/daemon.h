/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon.h -- runs rpmirrord. */
#ifndef MIRRORD_DAEMON_H
#define MIRRORD_DAEMON_H

#include "mirrord/conf.h"

/*
 * Open everything that the configuration names, print the address at which the daemon listens, and
 * serve until SIGINT or SIGTERM. On SIGHUP read the configuration again from path, and pass its log
 * level to set_log(). Returns 0 or an error kind of error.h.
 */
int daemon_run(struct conf *conf, const char *path, void (*set_log)(enum log_level level),
	       struct error *err);

#endif
