/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h -- includes cmocka for system tests, and defines how to skip a test. */
#ifndef SYSTEM_CHECK_H
#define SYSTEM_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIB          (1ul << 20)

/* ctest's SKIP_RETURN_CODE of these tests */
#define SKIPPED 77

/* A sanitizer build is ten times slower, and needs additional memory. */
#ifndef SYSTEM_SANITIZED
#define SYSTEM_SANITIZED 0
#endif

/* Fail the test, and print the call, if the call fails. */
#define OK(call)                                                                                   \
	do {                                                                                       \
		int ok_ret_ = (call);                                                              \
		if (ok_ret_)                                                                       \
			fail_msg("%s: %d (%s)", #call, ok_ret_, rpma_err_2str(ok_ret_));           \
	} while (0)

/* Run this command in a shell. Returns the shell's exit status. */
static inline int run_shell(const char *format, ...)
{
	char command[2000];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

static inline void need_root(const char *what)
{
	if (geteuid() == 0)
		return;
	printf("skipped: %s needs root\n", what);
	exit(SKIPPED);
}

/* Returns a number from the environment, for instance so that a long run can repeat a test more
 * often. */
static inline unsigned env_or(const char *name, unsigned dflt)
{
	const char *s = getenv(name);

	return s && *s ? (unsigned)strtoul(s, NULL, 10) : dflt;
}

#endif
