/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.h -- NAME=VALUE of `rpmirror set`. */
#ifndef RPMIRROR_SETTINGS_H
#define RPMIRROR_SETTINGS_H

#include "out.h"

/* Added to what the request asks for. 0, or an exit code, and *f says why. */
int settings_parse(const char *text, json_t *settings, struct failure *f);

#endif
