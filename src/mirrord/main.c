/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirrord: the daemon of mirrored files, one on each host (rpmirrord(1)). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log_prefix.h"
#include "base/optfault.h"
#include "base/text.h"
#include "mirrord/daemon.h"
#include "service/forward_log.h"
#include "service/manager.h"
#include "service/secret.h"

static const char main_usage[] = "usage: rpmirrord [--config FILE] [--check]\n";
static const char main_help[] = "\n"
				"Serves the copies that this host has of mirrored files.\n"
				"\n"
				"  -c, --config FILE  instead of " CONF_FILE "\n"
				"      --check        only read the configuration and the secrets\n"
				"  -h, --help         display this text and exit\n"
				"  -V, --version      display the version and exit\n"
				"\n"
				"See rpmirrord(1) and rpmirrord.conf(5).\n";

/* MAIN_USAGE: the command line or the configuration is wrong. */
enum main_exit { MAIN_FAILED = 1, MAIN_USAGE = 2 };

struct main_opts {
	const char *config;
	bool checks, helps, shows_version;
};

/* Use one write, so that lines of several processes do not mix. */
static void main_log(enum log_level level, const char *file, int line, const char *func,
		     const char *text)
{
	static const char *const names[] = {"fatal", "err", "warn", "notice", "info", "debug"};
	char printable[1200], out[1300];
	int n;

	snprintf(printable, sizeof(printable), "%s", text);
	text_make_printable(printable);
	n = snprintf(out, sizeof(out), "%srpmirrord[%d]: %s: %s\n", log_prefix(level),
		     (int)getpid(), names[level], printable);
	if (write(STDERR_FILENO, out, (size_t)n) < 0)
		return; /* a failure here cannot be reported anywhere */
}

static void main_set_log(enum log_level level)
{
	log_set(main_log, level);
	forward_log(level);
}

static bool main_parse(struct main_opts *opts, int argc, char **argv)
{
	static const struct option table[] = {{"config", required_argument, NULL, 'c'},
					      {"check", no_argument, NULL, 'k'},
					      {"help", no_argument, NULL, 'h'},
					      {"version", no_argument, NULL, 'V'},
					      {0}};
	char text[160];
	int c;

	*opts = (struct main_opts){.config = CONF_FILE};
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":c:hV", table, NULL)) != -1) {
		switch (c) {
		case 'c':
			opts->config = optarg;
			break;
		case 'k':
			opts->checks = true;
			break;
		case 'h':
			opts->helps = true;
			break;
		case 'V':
			opts->shows_version = true;
			break;
		default:
			optfault_explain(c, argv, table, text, sizeof(text));
			LOG_ERROR("%s", text);
			return false;
		}
	}
	if (optind < argc)
		LOG_ERROR("'%s' is not an option", argv[optind]);
	return optind == argc;
}

/* Check that each secret can be read as the daemon will read it. The log names every secret that
 * cannot be read. */
static bool main_check_secrets(const struct conf *conf)
{
	bool all = true;

	for (unsigned i = 0; i < conf->set_count; i++) {
		struct secret secret;
		struct error err;

		if (!conf->sets[i].secret_file[0])
			continue;
		if (secret_load(&secret, conf->sets[i].secret_file, &err)) {
			LOG_ERROR("set %s: %s", conf->sets[i].name, err.text);
			all = false;
		}
		secret_forget(&secret);
	}
	return all;
}

static int main_serve(const struct main_opts *opts)
{
	static struct conf conf;
	struct error err;

	if (conf_load(&conf, opts->config, &err)) {
		LOG_ERROR("%s", err.text);
		return MAIN_USAGE;
	}
	main_set_log(conf.log_level);
	if (opts->checks) {
		if (!main_check_secrets(&conf))
			return MAIN_FAILED;
		printf("%s: %u sets\n", opts->config, conf.set_count);
		return 0;
	}
	if (daemon_run(&conf, opts->config, main_set_log, &err)) {
		LOG_ERROR("%s", err.text);
		return MAIN_FAILED;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct main_opts opts;

	main_set_log(LOG_LVL_WARNING);
	manager_begin();
	/* If the memory cannot be persistent, a persistent flush must fail. */
	setenv("RPMA_STRICT_PERSIST", "1", 0);
	if (!main_parse(&opts, argc, argv)) {
		fprintf(stderr, "%s%s", log_prefix(LOG_LVL_ERROR), main_usage);
		return MAIN_USAGE;
	}
	if (opts.helps)
		printf("%s%s", main_usage, main_help);
	else if (opts.shows_version)
		puts("rpmirrord " RPMIRRORD_VERSION);
	else
		return main_serve(&opts);
	return 0;
}
