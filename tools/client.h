/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h -- a session (regions/session.h) for ping, bench and info, which measure librpma's
 * operations or examine the connection.
 *
 * The functions return CLI_OK, or another exit code after printing the error line.
 */
#ifndef TOOL_CLIENT_H
#define TOOL_CLIENT_H

#include "regions/session.h"
#include "remote.h"

int client_open(struct session *s, const struct remote_opts *opts, enum hello_access access,
		uint32_t depth);
/* These functions call those of session.h with the same names, and print errors. */
int client_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr);
int client_post_failed(struct session *s, const char *what, int rc);
int client_reap(struct session *s, unsigned spin_us);
int client_list(struct session *s, struct hello_list *list);
int client_put_begin(struct session *s, const struct hello_begin *begin);
int client_confirm(struct session *s);

#endif
