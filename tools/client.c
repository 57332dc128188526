/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include "cli.h"
#include "regions/target.h"

/* Report err if rc is not 0. Returns an exit status. */
static int client_check(int rc, const struct error *err)
{
	return rc ? cli_report(err, "") : CLI_OK;
}

int client_open(struct session *s, const struct remote_opts *opts, enum hello_access access,
		uint32_t depth)
{
	struct session_opts with = {
		.access = access, .depth = depth, .timeout_ms = opts->timeout_ms};
	struct target target;
	struct error err;
	int rc = target_parse(opts->target, &target, &err);

	with.server = target.server;
	with.region = target.region;
	if (!rc)
		rc = session_open_with_file(s, &with, opts->secret_file, &err);
	return client_check(rc, &err);
}

int client_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr)
{
	struct error err;

	return client_check(session_register(s, buf, size, mr, &err), &err);
}

int client_post_failed(struct session *s, const char *what, int rc)
{
	struct error err;

	return client_check(session_post_failed(s, what, rc, &err), &err);
}

int client_reap(struct session *s, unsigned spin_us)
{
	struct error err;

	return client_check(session_reap(s, spin_us, NULL, &err), &err);
}

int client_list(struct session *s, struct hello_list *list)
{
	struct error err;

	return client_check(session_list(s, list, &err), &err);
}

int client_put_begin(struct session *s, const struct hello_begin *begin)
{
	struct error err;

	return client_check(session_put_begin(s, begin, &err), &err);
}

int client_confirm(struct session *s)
{
	struct error err;

	return client_check(session_confirm(s, &err), &err);
}
