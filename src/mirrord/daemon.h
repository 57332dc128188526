/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon.h -- rpmirrord as a whole. */
#ifndef MIRRORD_DAEMON_H
#define MIRRORD_DAEMON_H

#include "mirrord/conf.h"

/* Open everything that the configuration names, print where it listens, and serve until SIGINT or
 * SIGTERM. Kinds of error.h. */
int daemon_run(const struct conf *conf, struct error *err);

#endif
