/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h -- a session (regions/session.h) as put, get, ping and info use it: its options from the
 * command line, its errors printed.
 *
 * The functions that return int return CLI_OK, or another exit code with the line printed.
 */
#ifndef TOOL_CLIENT_H
#define TOOL_CLIENT_H

#include <stdbool.h>

#include "regions/session.h"
#include "regions/target.h"

struct client_opts {
	struct target target;
	struct session_opts session;
	const char *secret_file; /* NULL: none */
	bool verbose;            /* print the library's log */
};

struct client_opts client_defaults(enum hello_access access, uint32_t depth);
/* --region, --secret-file, --timeout, --verbose; from getopt's optarg. */
int client_take_option(int opt, struct client_opts *opts);
/* The operand HOST[:PORT][:NAME]; what stands behind the host and is no number is a name. */
int client_take_server(const char *text, struct client_opts *opts);

/* Print why a call of librpmafile failed with that result. The exit code. */
int client_report_file(int rc);

/* As the functions of session.h. */
int client_open(struct session *s, const struct client_opts *opts);
int client_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr);
int client_post_failed(struct session *s, const char *what, int rc);
int client_reap(struct session *s, unsigned spin_us, struct ibv_wc *wc);
int client_list(struct session *s, struct hello_list *list);
int client_put_begin(struct session *s, const struct hello_begin *begin);
int client_put_end(struct session *s, const struct hello_content *content);
int client_confirm(struct session *s);

#endif
