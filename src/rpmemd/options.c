/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/optfault.h"

const char options_usage[] = "usage: rpmemd [--version] [--help] [<args>]\n";

const char options_help[] =
	"\n"
	"Started by ssh for each pool, or once with --listen.\n"
	"\n"
	"Options:\n"
	"  -c, --config <path>           configuration file location\n"
	"  -r, --remove <poolset>        remove pool described by given poolset file\n"
	"  -f, --force                   ignore errors when removing a pool\n"
	"  -s, --pool-set                remove the pool set file, too\n"
	"  -t, --nthreads <num>          number of processing threads, 0: one for each lane\n"
	"  -l, --listen[=<addr>[:port]]  serve initiators that come without ssh\n"
	"      --openmetrics             print metrics of the pools, and with --listen of that service\n"
	"      --textfile <path>         write them to a file for node_exporter's textfile collector\n"
	"  -h, --help                    display help message and exit\n"
	"  -V, --version                 display target daemon version and exit\n"
	"      --log-file <path>         log file location, - for standard error\n"
	"      --poolset-dir <path>      pool set files directory\n"
	"      --persist-native          the initiator's flush is carried out by the device (default)\n"
	"      --persist-apm             enable Appliance Persistency Method\n"
	"      --persist-general         enable General Server Persistency Mechanism\n"
	"      --use-syslog              use syslog(3) for logging messages\n"
	"      --log-level <level>       set log level value\n"
	"                                        err     error conditions\n"
	"                                        warn    warning conditions\n"
	"                                        notice  normal, but significant, condition\n"
	"                                        info    informational message\n"
	"                                        debug   debug-level message\n"
	"      --max-lanes <num>         lanes that one initiator gets at most\n"
	"      --port-range <a>-<b>      ports of the data path, 0: any\n"
	"      --secret-file <path>      the secret that initiators without ssh prove\n"
	"      --max-pools <num>         pools that are served without ssh at a time,\n"
	"      --max-per-address <num>   and to one address\n"
	"      --max-pending <num>       initiators that have not proved the secret yet\n"
	"      --allow-volatile          serve volatile memory without ssh, too\n"
	"\n"
	"All keys of rpmemd.conf(5) are options; those of them that are yes or no can be\n"
	"given as --key=no. For complete documentation see rpmemd(1) manual page.\n";

enum { OPTION_WORKER = 0x100, OPTION_METRICS, OPTION_TEXTFILE, OPTION_KEY };

static const struct option options_own[] = {
	{"config", required_argument, NULL, 'c'},
	{"remove", required_argument, NULL, 'r'},
	{"force", no_argument, NULL, 'f'},
	{"pool-set", no_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	/* This option chooses the task, and also sets the key of the same name. */
	{"listen", optional_argument, NULL, 'l'},
	{OPTIONS_WORKER_WORD, no_argument, NULL, OPTION_WORKER},
	{"openmetrics", no_argument, NULL, OPTION_METRICS},
	{"textfile", required_argument, NULL, OPTION_TEXTFILE},
};
#define OPTIONS_OWN (sizeof(options_own) / sizeof(options_own[0]))

/* Build the table of getopt_long(): the options above, then the keys. */
static void options_table(struct option table[OPTIONS_OWN + OPTIONS_SET_MAX + 1])
{
	const char *key;
	bool is_switch;
	size_t n = OPTIONS_OWN;

	memcpy(table, options_own, sizeof(options_own));
	for (unsigned i = 0; (key = settings_key(i, &is_switch)); i++)
		if (strcmp(key, "listen") != 0)
			table[n++] = (struct option){
				key, is_switch ? optional_argument : required_argument, NULL,
				OPTION_KEY + (int)i};
	table[n] = (struct option){0};
}

static int options_add(struct options *opts, const char *key, const char *value, struct error *err)
{
	struct settings scratch;
	int rc;

	settings_init(&scratch, "/");
	rc = settings_set(&scratch, key, value, err);
	if (rc)
		return rc;
	if (opts->set_count == OPTIONS_SET_MAX)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "too many options");
	opts->set[opts->set_count].key = key;
	opts->set[opts->set_count++].value = value;
	return 0;
}

static int options_set_task(struct options *opts, enum options_task task, struct error *err)
{
	/* Ignore all later options that choose a task: --help or --version ends the program. */
	if (opts->task == OPTIONS_HELP || opts->task == OPTIONS_VERSION)
		return 0;
	opts->listens |= task == OPTIONS_LISTEN;
	/* If both --listen and --openmetrics are given, in any order, the task is --openmetrics. */
	if ((opts->task == OPTIONS_METRICS && task == OPTIONS_LISTEN) ||
	    (opts->task == OPTIONS_LISTEN && task == OPTIONS_METRICS))
		task = OPTIONS_METRICS;
	else if (opts->task != OPTIONS_CONTROL && opts->task != task && task != OPTIONS_HELP &&
		 task != OPTIONS_VERSION)
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "--remove and --listen or --openmetrics do not go together");
	opts->task = task;
	return 0;
}

static int options_take_own(struct options *opts, int option, struct error *err)
{
	switch (option) {
	case 'c':
		opts->config = optarg;
		return 0;
	case 'r':
		opts->remove_set = optarg;
		return options_set_task(opts, OPTIONS_REMOVE, err);
	case 'f':
		opts->force = true;
		return 0;
	case 's':
		opts->pool_set = true;
		return 0;
	case 't':
		return options_add(opts, "nthreads", optarg, err);
	case 'l':
		if (optarg && options_add(opts, "listen", optarg, err))
			return ERROR_ARGUMENT;
		return options_set_task(opts, OPTIONS_LISTEN, err);
	case OPTION_TEXTFILE:
		opts->textfile = optarg;
		/* fall through */
	case OPTION_METRICS:
		return options_set_task(opts, OPTIONS_METRICS, err);
	case OPTION_WORKER:
		return options_set_task(opts, OPTIONS_WORKER, err);
	case 'h':
		return options_set_task(opts, OPTIONS_HELP, err);
	case 'V':
		return options_set_task(opts, OPTIONS_VERSION, err);
	}
	return error_set(err, ERROR_ARGUMENT, EINVAL, "not a correct command line");
}

static int options_refuse(int fault, char *const *argv, const struct option *table,
			  struct error *err)
{
	char text[160];

	optfault_explain(fault, argv, table, text, sizeof(text));
	return error_set(err, ERROR_ARGUMENT, EINVAL, "%s", text);
}

static int options_take(struct options *opts, int option, struct error *err)
{
	const char *key;
	bool is_switch;

	if (option < OPTION_KEY)
		return options_take_own(opts, option, err);
	key = settings_key((unsigned)(option - OPTION_KEY), &is_switch);
	return options_add(opts, key, optarg ? optarg : "yes", err);
}

int options_parse(struct options *opts, int argc, char *const *argv, struct error *err)
{
	struct option table[OPTIONS_OWN + OPTIONS_SET_MAX + 1];
	int option, rc = 0;

	*opts = (struct options){.task = OPTIONS_CONTROL};
	options_table(table);
	opterr = 0;
	optind = 0; /* start from the beginning, even in a second call */
	while (!rc && (option = getopt_long(argc, argv, ":c:hVr:fst:l::", table, NULL)) != -1)
		rc = option == '?' || option == ':' ? options_refuse(option, argv, table, err)
						    : options_take(opts, option, err);
	/* "--listen ADDR": getopt_long() takes an optional argument only after '='. */
	if (!rc && opts->listens && optind == argc - 1)
		rc = options_add(opts, "listen", argv[optind++], err);
	if (!rc && optind < argc)
		rc = error_set(err, ERROR_ARGUMENT, EINVAL, "'%s' is not an option", argv[optind]);
	return rc;
}

int options_apply(const struct options *opts, struct settings *s, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; i < opts->set_count && !rc; i++)
		rc = settings_set(s, opts->set[i].key, opts->set[i].value, err);
	return rc;
}
