/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf_keys.h -- the keys of rpmirrord.conf(5): the parser of each key, and the time at which a
 * change takes effect.
 */
#ifndef MIRRORD_CONF_KEYS_H
#define MIRRORD_CONF_KEYS_H

#include "mirrord/conf.h"

/* Parses a value. Returns NULL, or a description of the valid values. */
typedef const char *conf_parser(void *field, size_t size, const char *value);

/* The time at which a change takes effect in a running daemon. */
enum conf_when {
	CONF_NOW,
	CONF_AT_START, /* at the next start */
	CONF_CHECKED,  /* immediately, if reload.c finds that the new value can be used */
};

struct conf_key {
	const char *name;
	conf_parser *parse;
	/* position and size of the key's field; size 0: the key may be repeated, and has no field
	 * of its own */
	size_t offset, size;
	enum conf_when when;
};

/* The last entry has no name. */
extern const struct conf_key conf_keys[], conf_set_keys[];

#endif
