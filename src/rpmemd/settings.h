/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h -- the settings: one list of keys for the configuration files and the command line
 * (rpmemd.conf(5)).
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
	char log_file[PATH_MAX], poolset_dir[PATH_MAX], secret_file[PATH_MAX]; /* "": none */
	bool use_syslog;
	bool persist_native, persist_apm, persist_general;
	bool allow_volatile; /* permit volatile memory to initiators without ssh */
	enum log_level log_level;
	struct settings_ports ports; /* ports of the data path */
	struct address listen;
	unsigned nthreads; /* threads that persist for the initiator; 0: one for each lane */
	unsigned max_lanes, max_pools, max_per_address, max_pending;
};

/* The name of key number i; NULL: i is too large. *is_switch: the key's value is yes or no. */
const char *settings_key(unsigned i, bool *is_switch);

/* home: the user's folder, which is the default place of pool sets. */
void settings_init(struct settings *s, const char *home);
/* ERROR_ARGUMENT: the key does not exist, or the value is not valid for the key. */
int settings_set(struct settings *s, const char *key, const char *value, struct error *err);
/*
 * After all keys are set: replace $HOME in paths by home, and check that poolset-dir is absolute.
 * ERROR_ARGUMENT.
 */
int settings_finish(struct settings *s, const char *home, struct error *err);

#endif
