/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h -- the settings: one list of keys for the configuration files (rpmemd.conf(5)) and
 * the command line.
 */
#ifndef RPMEMD_SETTINGS_H
#define RPMEMD_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "service/address.h"

#define SETTINGS_DEFAULT_PORT "7205"
#define SETTINGS_LANES_MAX    1024

/* first and last zero: any port */
struct settings_ports {
	uint16_t first, last;
};

struct settings {
	char log_file[PATH_MAX], poolset_dir[PATH_MAX], secret_file[PATH_MAX]; /* "": not set */
	bool use_syslog;
	bool persist_native, persist_apm, persist_general;
	bool allow_volatile; /* permit volatile memory to initiators without ssh */
	enum log_level log_level;
	struct settings_ports ports; /* ports of the data path */
	struct address listen;
	unsigned nthreads; /* threads of the general method; 0: one for each lane */
	unsigned max_lanes, max_pools, max_per_address, max_pending;
};

/* Returns the name of key number i, or NULL if i is too large. *is_switch: the key's value is yes
 * or no. */
const char *settings_key(unsigned i, bool *is_switch);

/* Set the defaults. home: the user's folder, which is the default folder of pool sets. */
void settings_init(struct settings *s, const char *home);
/* Set a key. ERROR_ARGUMENT: the key does not exist, or the value is not valid for the key. */
int settings_set(struct settings *s, const char *key, const char *value, struct error *err);
/*
 * Call this after all keys are set: replaces $HOME in paths by home, and checks that poolset-dir is
 * absolute. Returns 0 or ERROR_ARGUMENT.
 */
int settings_finish(struct settings *s, const char *home, struct error *err);

#endif
