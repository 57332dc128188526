/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "regions/advice.h"
#include "regions/target.h"

#define REMOTE_OPTIONS_MAX 24

struct remote_parser {
	const struct remote_command *command;
	void *arg;
	struct remote_opts *opts;
};

static int remote_take_option(int opt, void *arg)
{
	const struct remote_parser *p = arg;
	struct remote_opts *opts = p->opts;
	uint64_t seconds;

	switch (opt) {
	case 'r':
		if (strlen(optarg) > HELLO_NAME_MAX)
			return cli_usage("--region: '%s' is longer than %d characters", optarg,
					 HELLO_NAME_MAX);
		opts->region = optarg;
		return CLI_OK;
	case 'S':
		opts->secret_file = optarg;
		return CLI_OK;
	case 't':
		if (!number_parse(optarg, 1, 86400, &seconds))
			return cli_usage(
				"--timeout: '%s' is not a number of seconds from 1 to 86400",
				optarg);
		opts->timeout_ms = (int)seconds * 1000;
		return CLI_OK;
	case 'v':
		opts->verbose = true;
		return CLI_OK;
	case 'j':
		opts->json = true;
		return CLI_OK;
	case '?': /* getopt has already printed the error line */
		return CLI_USAGE;
	default:
		return p->command->take(opt, p->arg);
	}
}

int remote_parse(int argc, char **argv, const struct remote_command *command, void *arg,
		 struct remote_opts *opts)
{
	static const struct option common[] = {
		{"secret-file", required_argument, NULL, 'S'},
		{"timeout", required_argument, NULL, 't'},
		{"verbose", no_argument, NULL, 'v'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct remote_parser parser = {command, arg, opts};
	struct option all[REMOTE_OPTIONS_MAX];
	size_t count = 0;

	*opts = (struct remote_opts){.region = "", .timeout_ms = 60000};
	while (command->options && command->options[count].name) {
		all[count] = command->options[count];
		count++;
	}
	assert(count + sizeof(common) / sizeof(common[0]) <= REMOTE_OPTIONS_MAX);
	memcpy(all + count, common, sizeof(common));
	return cli_options(argc, argv, all, command->help, remote_take_option, &parser);
}

int remote_take_server(const char *text, struct remote_opts *opts)
{
	struct target target;
	struct error err;
	char server[ADDRESS_TEXT];
	size_t len;

	if (target_parse(text, &target, &err))
		return cli_usage("%s", err.text);
	if (opts->region[0] && target.region[0] && strcmp(opts->region, target.region) != 0)
		return cli_usage("--region '%s' and '%s' are two regions", opts->region,
				 target.region);
	if (!target.region[0])
		snprintf(target.region, sizeof(target.region), "%s", opts->region);
	len = (size_t)snprintf(opts->target, sizeof(opts->target), "%s%s%s",
			       address_show(&target.server, server), target.region[0] ? ":" : "",
			       target.region);
	opts->region = opts->target + len - strlen(target.region);
	return CLI_OK;
}

struct rpma_file_options remote_file_options(const struct remote_opts *opts, uint32_t flags)
{
	return (struct rpma_file_options){.size = sizeof(struct rpma_file_options),
					  .flags = flags,
					  .timeout_ms = opts->timeout_ms,
					  .secret_file = opts->secret_file};
}

static enum cli_exit remote_exit_code(int rc)
{
	switch (rc) {
	case RPMA_E_INVAL:
		return CLI_USAGE;
	case RPMA_FILE_E_UNREACHED:
		return CLI_REACH;
	case RPMA_FILE_E_REFUSED:
	case RPMA_FILE_E_GONE:
	case RPMA_FILE_E_TAKEN:
		return CLI_REFUSED;
	case RPMA_FILE_E_LOST:
	case RPMA_FILE_E_MEDIUM:
	case RPMA_FILE_E_DIFFERS:
		return CLI_TRANSFER;
	default:
		return CLI_FILE;
	}
}

/* Returns the length of the error text without the library's advice, which is for programs that
 * continue. The tool prints its own advice instead (cli_set_tail()). */
static size_t remote_text_len(const char *text)
{
	static const char *const advice[] = {ADVICE_WRITER, ADVICE_READER};
	const char *end = NULL;

	for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]) && !end; i++)
		end = strstr(text, advice[i]);
	return end ? (size_t)(end - text) : strlen(text);
}

int remote_check(int rc)
{
	const char *text = rpma_file_errormsg();

	if (!rc)
		return CLI_OK;
	/* After a refusal the user cannot resume, so print no advice. */
	if (remote_exit_code(rc) == CLI_REFUSED)
		cli_set_tail("%s", "");
	return cli_fail(remote_exit_code(rc), "%.*s", (int)remote_text_len(text), text);
}
