/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c -- makes pthread_create() fail where the test requests a failure. This wrap is an
 * object of the library under test, because objects take precedence over archives: the linker would
 * otherwise use the __wrap_pthread_create of libgcc, which is for split stacks.
 */
#include <pthread.h>

#include "fault/allocs.h"

#pragma GCC visibility push(default)
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
#pragma GCC visibility pop

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return fault_pthread_create(thread, attr, fn, arg);
}
