/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf.h -- reads rpmirrord.conf(5): the address at which the daemon listens, and the copies of
 * this host.
 *
 * A line has the form `key = value`; '#' begins a comment. Keys before the first section belong to
 * the daemon; `[set NAME]` begins the section of this host's copy of that set.
 */
#ifndef MIRRORD_CONF_H
#define MIRRORD_CONF_H

#include <stddef.h>

#include "base/error.h"
#include "base/log.h"
#include "mirror/core/types.h"
#include "service/address.h"

#define CONF_FILE         "/etc/rpmirror/rpmirrord.conf"
#define CONF_SOCKET       "/run/rpmirror/rpmirrord.socket"
#define CONF_DEFAULT_PORT "7650"
#define CONF_SETS_MAX     64
#define CONF_SCRUB_S      (7u * 24 * 3600)
#define CONF_SCRUB_RATE   (64ull << 20)
#define CONF_PROGRAM_MS   60000
#define CONF_USERS_MAX    8
#define CONF_USER_MAX     32
#define CONF_PATH_SIZE    (MIRROR_PATH_MAX + 16) /* longest path of a file of a set, in bytes */

struct conf_set {
	char name[MIRROR_SET_MAX + 1];
	char member[MIRROR_NAME_MAX + 1]; /* name of this host's member of the set */
	char data[MIRROR_PATH_MAX + 1], meta[MIRROR_PATH_MAX + 1];
	char register_uri[MIRROR_PATH_MAX + 1];
	char secret_file[MIRROR_PATH_MAX + 1]; /* "": no secret */
	/* users that may map the set; if the list is empty, only the daemon's user and root may */
	char users[CONF_USERS_MAX][CONF_USER_MAX + 1];
	unsigned user_count;
	unsigned scrub_s; /* time between comparisons of the copies; 0: never */
	/* number of bytes of each copy that a comparison reads in a second */
	uint64_t scrub_rate;
	bool automatic;                        /* take over without an operator's order */
	char on_promote[MIRROR_PATH_MAX + 1];  /* "": no program */
	char fence_agent[MIRROR_PATH_MAX + 1]; /* "": no program */
	unsigned promote_timeout_ms, fence_timeout_ms;
};

struct conf {
	struct address listen;
	char socket[108]; /* the size of sun_path in struct sockaddr_un */
	unsigned peer_timeout_ms, max_connections, max_pending, register_timeout_ms;
	enum log_level log_level;
	struct conf_set sets[CONF_SETS_MAX];
	unsigned set_count;
};

void conf_init(struct conf *c);
/* Parse len bytes. `name` is for the error's text, which also has the number of the line. Returns 0
 * or ERROR_ARGUMENT. */
int conf_parse(struct conf *c, const char *text, size_t len, const char *name, struct error *err);
/*
 * After the whole text is parsed, check that no key is missing, and that no keys exclude each
 * other. Returns 0 or ERROR_ARGUMENT.
 */
int conf_check(const struct conf *c, struct error *err);
/*
 * Check that no file of the set also belongs to another copy, for instance through a link. Returns
 * 0 or ERROR_ARGUMENT.
 */
int conf_check_files(const struct conf *c, const struct conf_set *set, struct error *err);
void conf_meta_path(const struct conf_set *set, char *path, size_t size);
/* Read, parse and check a file. Returns 0, ERROR_ARGUMENT or ERROR_LOCAL. */
int conf_load(struct conf *c, const char *path, struct error *err);

#endif
