/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * args.h -- helpers for tests of wrong arguments: a call returns RPMA_E_INVAL before it does
 * anything else, and writes no output. The tests use only the public interface, so that they can
 * run with another librpma.
 */
#ifndef TEST_RPMA_ARGS_H
#define TEST_RPMA_ARGS_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <librpma.h>

/* Stands for an object that the call must not touch: reading it would give poison, and writing it
 * would change the poison. */
static unsigned char poison[4096];

#define FAKE(type) ((struct type *)(void *)poison)
#define ALWAYS     RPMA_F_COMPLETION_ALWAYS
#define PERSISTENT RPMA_FLUSH_TYPE_PERSISTENT

/* Returns rpma_err_last(), or NULL if this librpma does not have the function. */
static inline const char *last_text(void)
{
	const char *(*last)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "rpma_err_last");

	return last ? last() : NULL;
}

static inline const char *text_of_another_failure(void)
{
	static char text[512];

	rpma_mr_remote_from_descriptor(NULL, 12345, NULL);
	if (last_text())
		snprintf(text, sizeof(text), "%s", last_text());
	return text;
}

static inline void expect_inval(const char *call, int ret, const char *before)
{
	if (ret != RPMA_E_INVAL)
		fail_msg("%s returned %d", call, ret);
	if (last_text() && !strstr(call, "rpma_mr_remote_from_descriptor") &&
	    !strcmp(before, last_text()))
		fail_msg("%s does not say what is wrong", call);
}
#define INVAL(call)                                                                                \
	do {                                                                                       \
		const char *before_ = text_of_another_failure();                                   \
                                                                                                   \
		expect_inval(#call, call, before_);                                                \
	} while (0)

static inline int poison_set(void **state)
{
	memset(poison, 0xa5, sizeof(poison));
	return 0;
}

static inline int poison_check(void **state)
{
	for (size_t i = 0; i < sizeof(poison); i++)
		if (poison[i] != 0xa5)
			return -1;
	return 0;
}

#endif
