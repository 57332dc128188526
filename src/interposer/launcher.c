/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.c -- the command "softrnic run PROGRAM", which runs a verbs program on the software
 * RNIC. */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"

#define INTERPOSER "libsoftrnic-verbs.so"

enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

struct launcher_options {
	bool preload, dropin, iwarp;
};

static void launcher_usage(FILE *to)
{
	fputs("usage: softrnic run [-p | -d] [--iwarp] [--] PROGRAM [ARGUMENT ...]\n"
	      "       softrnic --help | --version\n"
	      "\n"
	      "Run a program that uses libibverbs and librdmacm on a software RNIC.\n"
	      "  -p  only preload the library, for programs linked with them\n"
	      "  -d  only put the library in their place, for programs that load them by name\n"
	      "  --iwarp  show an iWARP device; without it the device looks like RoCE v2\n"
	      "See softrnic(1) and softrnic-verbs(7).\n",
	      to);
}

static int launcher_fail(const char *what, const char *name)
{
	fprintf(stderr, "softrnic: %s: %s: %s\n", what, name, strerror(errno));
	return EXIT_CANNOT_RUN;
}

/* Returns the path of `name` in `dir`, or NULL if the file does not exist. */
static char *launcher_path_in(const char *dir, const char *name)
{
	char *path, *real;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return NULL;
	real = realpath(path, NULL);
	free(path);
	return real;
}

/* Returns the folder of the library. Its path is relative to this program; installed and built
 * programs have different relative paths. */
static char *launcher_lib_dir(void)
{
	static const char *const places[] = {SOFTRNIC_LIBDIR, "."};
	char self[PATH_MAX], *dir = NULL;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return NULL;
	self[len] = '\0';
	dirname(self);
	for (size_t i = 0; !dir && i < sizeof(places) / sizeof(places[0]); i++) {
		char *place = launcher_path_in(self, places[i]);
		char *lib = place ? launcher_path_in(place, INTERPOSER) : NULL;

		if (lib)
			dir = place;
		else
			free(place);
		free(lib);
	}
	return dir;
}

/* Set the variable to the path of a file, unless the variable is already set. */
static int launcher_set_path(const char *variable, const char *dir, const char *name)
{
	char *path;
	int ret;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -1;
	ret = setenv(variable, path, 0);
	free(path);
	return ret;
}

/* Put `value` in front of the present value of the variable. */
static int launcher_prepend(const char *variable, const char *value)
{
	const char *old = getenv(variable);
	char *both;
	int ret;

	if (!old || !*old)
		return setenv(variable, value, 1);
	if (asprintf(&both, "%s:%s", value, old) < 0)
		return -1;
	ret = setenv(variable, both, 1);
	free(both);
	return ret;
}

/*
 * Set variables that some programs need, because the device does not have the timing of hardware,
 * and its files are in other places; see softrnic-verbs(7). Variables that the user has set stay
 * unchanged.
 */
static int launcher_set_defaults(const char *names)
{
	static const char *const defaults[][2] = {
		{"SOFTRNIC_IDENTITY", "roce"},
		{"SOFTRNIC_LOG", "warning"},
		/* programs for hardware often wait only half a second for their peer */
		{"SOFTRNIC_RETRY_MS", "5000"},
		{"SOFTRNIC_REFUSED_MS", "1000"},
		{"SOFTRNIC_CONNECT_MS", "60000"},
		/* NCCL: use index 0 instead of reading the list of GIDs in /sys */
		{"NCCL_IB_GID_INDEX", "0"},
		{"NCCL_NET_GDR_LEVEL", "LOC"}, /* NCCL: do not register memory of GPUs */
		/* UCX: use tcp to connect, because UCX's rdma_cm transport needs datagrams */
		{"UCX_SOCKADDR_TLS_PRIORITY", "tcp"},
		/* libfabric: do not overwrite the code of munmap(), which the device's threads may
		 * be executing */
		{"FI_MR_CACHE_MONITOR", "disabled"},
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(defaults) / sizeof(defaults[0]); i++)
		ret = setenv(defaults[i][0], defaults[i][1], 0);
	/* NCCL loads libibverbs by its name, so a preloaded library has no effect on it. */
	return ret ? ret : launcher_set_path("NCCL_IBVERBS_LIB", names, "libibverbs.so.1");
}

static int launcher_set_environment(const struct launcher_options *how)
{
	char *dir = launcher_lib_dir();
	char *lib = dir ? launcher_path_in(dir, INTERPOSER) : NULL;
	char *names = dir ? launcher_path_in(dir, "softrnic-dropin") : NULL;
	int ret = 0;

	if (!names && dir)
		names = launcher_path_in(dir, "dropin");
	if (!lib || !names) {
		errno = ENOENT;
		ret = -1;
	}
	if (!ret && how->iwarp)
		ret = setenv("SOFTRNIC_IDENTITY", "iwarp", 1);
	if (!ret)
		ret = launcher_set_defaults(names);
	if (!ret && how->preload)
		ret = launcher_prepend("LD_PRELOAD", lib);
	if (!ret && how->dropin)
		ret = launcher_prepend("LD_LIBRARY_PATH", names);
	free(names);
	free(lib);
	free(dir);
	return ret;
}

/* Options after the program's name belong to the program, options before it to the launcher. */
static bool launcher_has_unknown_option(int argc, char **argv, const struct option *options)
{
	char text[256];

	if (optind >= argc || argv[optind][0] != '-' ||
	    !nearest_option_is_unknown(argc, argv, options, text, sizeof(text)))
		return false;
	fprintf(stderr, "softrnic run: %s\n", text);
	return true;
}

/* Parse the options. Returns false after an invalid option, which has been reported. */
static bool launcher_parse(int argc, char **argv, struct launcher_options *how)
{
	static const struct option options[] = {{"iwarp", no_argument, NULL, 'w'}, {0}};
	int opt;

	for (;;) {
		if (launcher_has_unknown_option(argc, argv, options))
			return false;
		opt = getopt_long(argc, argv, "+pd", options, NULL);
		switch (opt) {
		case -1:
			return optind < argc;
		case 'p':
		case 'd':
			how->preload = opt == 'p';
			how->dropin = opt == 'd';
			break;
		case 'w':
			how->iwarp = true;
			break;
		default:
			return false;
		}
	}
}

static int launcher_run(int argc, char **argv)
{
	struct launcher_options how = {.preload = true, .dropin = true};
	int status;

	if (!launcher_parse(argc, argv, &how)) {
		launcher_usage(stderr);
		return EXIT_USAGE;
	}
	if (launcher_set_environment(&how))
		return launcher_fail("cannot find or set up", INTERPOSER);
	execvp(argv[optind], argv + optind);
	status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	launcher_fail("cannot run", argv[optind]);
	return status;
}

static void launcher_refuse(const char *word)
{
	static const char *const words[] = {"run", "--help", "--version"};
	struct nearest n = {.word = word, .prefix = ""};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		nearest_offer(&n, words[i]);
	fprintf(stderr, "softrnic: there is no command '%s'%s\n", word, nearest_hint(&n));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "run"))
		return launcher_run(argc - 1, argv + 1);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("softrnic " SOFTRNIC_VERSION);
		return 0;
	}
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		launcher_usage(stdout);
		return 0;
	}
	if (argc > 1)
		launcher_refuse(argv[1]);
	launcher_usage(stderr);
	return EXIT_USAGE;
}
