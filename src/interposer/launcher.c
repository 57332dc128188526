/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.c -- softrnic run PROGRAM: a verbs program on the software RNIC. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERPOSER "libsoftrnic-verbs.so"

enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static void launcher_usage(FILE *to)
{
	fputs("usage: softrnic run [-p | -d] [--] PROGRAM [ARGUMENT ...]\n"
	      "       softrnic --help | --version\n"
	      "\n"
	      "Run a program that uses libibverbs and librdmacm on a software RNIC.\n"
	      "  -p  only preload the library, for programs linked with them\n"
	      "  -d  only put it in their place, for programs that load them by name\n"
	      "See softrnic(1) and softrnic-verbs(7).\n",
	      to);
}

static int launcher_fail(const char *what, const char *name)
{
	fprintf(stderr, "softrnic: %s: %s: %s\n", what, name, strerror(errno));
	return EXIT_CANNOT_RUN;
}

/* The path of `name` in `dir`, or NULL if it is not there. */
static char *launcher_path_in(const char *dir, const char *name)
{
	char *path, *real;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return NULL;
	real = realpath(path, NULL);
	free(path);
	return real;
}

/* The library's folder, relative to this program, as both were installed or built. */
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

/* Put `value` in front of the variable's present value. */
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

static int launcher_set_environment(int preload, int dropin)
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
	/* Defaults for programs that expect the timing of hardware; see softrnic-verbs(7). */
	if (!ret)
		ret = setenv("SOFTRNIC_REFUSED_MS", "1000", 0);
	if (!ret)
		ret = setenv("SOFTRNIC_CONNECT_MS", "60000", 0);
	if (!ret && preload)
		ret = launcher_prepend("LD_PRELOAD", lib);
	if (!ret && dropin)
		ret = launcher_prepend("LD_LIBRARY_PATH", names);
	free(names);
	free(lib);
	free(dir);
	return ret;
}

static int launcher_run(int argc, char **argv)
{
	int preload = 1, dropin = 1, opt;

	while ((opt = getopt(argc, argv, "+pd")) != -1) {
		if (opt == '?') {
			launcher_usage(stderr);
			return EXIT_USAGE;
		}
		preload = opt == 'p';
		dropin = opt == 'd';
	}
	if (optind == argc) {
		launcher_usage(stderr);
		return EXIT_USAGE;
	}
	if (launcher_set_environment(preload, dropin))
		return launcher_fail("cannot find or set up", INTERPOSER);
	execvp(argv[optind], argv + optind);
	opt = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	launcher_fail("cannot run", argv[optind]);
	return opt;
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
	launcher_usage(stderr);
	return EXIT_USAGE;
}
