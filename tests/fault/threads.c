/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c -- part of the library under test. libgcc has a __wrap_pthread_create of its own, for
 * split stacks, which the linker would use; an object takes precedence over an archive.
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
