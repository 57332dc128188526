/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_keys.h -- the keys of rpmirrord.conf(5): how each is read, and when a change counts. */
#ifndef MIRRORD_CONF_KEYS_H
#define MIRRORD_CONF_KEYS_H

#include "mirrord/conf.h"

/* Returns NULL, or what the value should have been. */
typedef const char *conf_parser(void *field, size_t size, const char *value);

/* In a daemon that runs. */
enum conf_when {
	CONF_NOW,
	CONF_AT_START, /* of the next one */
	CONF_CHECKED,  /* reload.c looks whether it can be used */
};

struct conf_key {
	const char *name;
	conf_parser *parse;
	size_t offset, size; /* of its field; size 0: it may be repeated, and has none of its own */
	enum conf_when when;
};

/* The last one has no name. */
extern const struct conf_key conf_keys[], conf_set_keys[];

#endif
