/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.h -- parses NAME=VALUE of `rpmirror set`. */
#ifndef RPMIRROR_SETTINGS_H
#define RPMIRROR_SETTINGS_H

#include "out.h"

/* Add the settings to the request. Returns 0, or an exit code with the reason in *f. */
int settings_parse(const char *text, json_t *settings, struct failure *f);

#endif
