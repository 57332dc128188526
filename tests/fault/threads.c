/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c -- makes pthread_create() fail where the test requests a failure. The wrapper must be
 * an object file of the library under test: libgcc also has a __wrap_pthread_create, for split
 * stacks, in an archive, and the linker prefers an object file to an archive.
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
