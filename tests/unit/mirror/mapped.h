/* SPDX-License-Identifier: BSD-3-Clause */
/* mapped.h -- a mapped set of three members, for test programs. */
#ifndef TESTS_MIRROR_MAPPED_H
#define TESTS_MIRROR_MAPPED_H

#include <librpmirror.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "standin.h"

static struct standin *s;
static struct rpmirror *m;
static uint8_t *addr;

static inline void map_set_with(unsigned flags)
{
	void *at;
	size_t len;
	int rc = rpmirror_map(STANDIN_SET, NULL, flags, &m, &at, &len);

	if (rc)
		fail_msg("%s: %s", rpmirror_err_2str(rc), rpmirror_errormsg());
	addr = at;
	assert_int_equal(len, STANDIN_SIZE);
}

static inline void map_set(void)
{
	map_set_with(0);
}

static int setup(void **state)
{
	s = standin_new(3);
	return 0;
}

static inline int setup_mapped(void **state)
{
	setup(state);
	map_set();
	return 0;
}

static int teardown(void **state)
{
	rpmirror_unmap(&m);
	standin_delete(s);
	return 0;
}

/* Assert that the copies of the members in the mask have the application's bytes. */
static inline void assert_flushed(unsigned mask, size_t offset, size_t len)
{
	for (unsigned slot = 0; slot < 3; slot++)
		if (mask & 1u << slot)
			assert_memory_equal(standin_copy(s, slot) + offset, addr + offset, len);
}

#define MAPPED(test) cmocka_unit_test_setup_teardown(test, setup_mapped, teardown)

#endif
