/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <librpmafile.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "client.h"

struct client_opts client_defaults(enum hello_access access, uint32_t depth)
{
	return (struct client_opts){
		.session = {.region = "", .access = access, .depth = depth, .timeout_ms = 60000}};
}

int client_take_option(int opt, struct client_opts *opts)
{
	uint64_t seconds;

	switch (opt) {
	case 'r':
		if (strlen(optarg) > HELLO_NAME_MAX)
			return cli_usage("--region: '%s' is longer than %d characters", optarg,
					 HELLO_NAME_MAX);
		opts->session.region = optarg;
		return CLI_OK;
	case 'S':
		opts->secret_file = optarg;
		return CLI_OK;
	case 't':
		if (!number_parse(optarg, 1, 86400, &seconds))
			return cli_usage(
				"--timeout: '%s' is not a number of seconds from 1 to 86400",
				optarg);
		opts->session.timeout_ms = (int)seconds * 1000;
		return CLI_OK;
	case 'v':
		opts->verbose = true;
		return CLI_OK;
	default:
		return CLI_USAGE; /* getopt has printed the line */
	}
}

int client_take_server(const char *text, struct client_opts *opts)
{
	struct error err;

	if (target_parse(text, &opts->target, &err))
		return cli_usage("%s", err.text);
	opts->session.server = opts->target.server;
	if (!opts->target.region[0])
		return CLI_OK;
	if (opts->session.region[0] && strcmp(opts->session.region, opts->target.region))
		return cli_usage("--region '%s' and '%s' are two regions", opts->session.region,
				 opts->target.region);
	opts->session.region = opts->target.region;
	return CLI_OK;
}

/* What the server's reason means on our command line; "": nothing more than the text says. */
static const char *client_hint(const struct session *s, const struct error *err, char *hint,
			       size_t size)
{
	*hint = '\0';
	if (err->kind != ERROR_REFUSED)
		return hint;
	if (err->cause == HELLO_SECRET_NEEDED)
		snprintf(hint, size, " (--secret-file)");
	else if (err->cause == HELLO_CHOOSE)
		snprintf(hint, size, ": choose one with --region; 'rpma info %s' lists them",
			 s->server);
	else if (err->cause == HELLO_NO_REGION && !s->region.region[0])
		snprintf(hint, size, "; 'rpma info %s' lists what it serves", s->server);
	return hint;
}

static int client_report(const struct session *s, const struct error *err)
{
	char hint[ADDRESS_TEXT + 80];

	/* Neither what the server refuses nor memory that is gone leaves anything to go on from. */
	if (err->kind == ERROR_REFUSED || err->cause == EFAULT)
		cli_set_tail("%s", "");
	return cli_report(err, client_hint(s, err, hint, sizeof(hint)));
}

int client_report_file(int rc)
{
	static const struct {
		int result;
		enum cli_exit code;
	} codes[] = {
		{RPMA_E_INVAL, CLI_USAGE},          {RPMA_FILE_E_UNREACHED, CLI_REACH},
		{RPMA_FILE_E_REFUSED, CLI_REFUSED}, {RPMA_FILE_E_GONE, CLI_REFUSED},
		{RPMA_FILE_E_TAKEN, CLI_REFUSED},   {RPMA_FILE_E_LOST, CLI_TRANSFER},
		{RPMA_FILE_E_MEDIUM, CLI_TRANSFER}, {RPMA_FILE_E_DIFFERS, CLI_TRANSFER},
	};
	enum cli_exit code = CLI_FILE;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].result == rc)
			code = codes[i].code;
	return cli_fail(code, "%s", rpma_file_errormsg());
}

int client_open(struct session *s, const struct client_opts *opts)
{
	struct error err;

	return session_open_with_file(s, &opts->session, opts->secret_file, &err)
		       ? client_report(s, &err)
		       : CLI_OK;
}

int client_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr)
{
	struct error err;

	return session_register(s, buf, size, mr, &err) ? client_report(s, &err) : CLI_OK;
}

int client_post_failed(struct session *s, const char *what, int rc)
{
	struct error err;

	session_post_failed(s, what, rc, &err);
	return client_report(s, &err);
}

int client_reap(struct session *s, unsigned spin_us, struct ibv_wc *wc)
{
	struct error err;

	return session_reap(s, spin_us, wc, &err) ? client_report(s, &err) : CLI_OK;
}

int client_list(struct session *s, struct hello_list *list)
{
	struct error err;

	return session_list(s, list, &err) ? client_report(s, &err) : CLI_OK;
}

int client_put_begin(struct session *s, const struct hello_begin *begin)
{
	struct error err;

	return session_put_begin(s, begin, &err) ? client_report(s, &err) : CLI_OK;
}

int client_put_end(struct session *s, const struct hello_content *content)
{
	struct error err;

	return session_put_end(s, content, &err) ? client_report(s, &err) : CLI_OK;
}

int client_confirm(struct session *s)
{
	struct error err;

	return session_confirm(s, &err) ? client_report(s, &err) : CLI_OK;
}
