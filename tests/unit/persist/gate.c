/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool shut;
	unsigned begun, passed;
	size_t longest;
	int fails_with;
	pid_t thread;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static int gate_enter(size_t len)
{
	int err;

	pthread_mutex_lock(&gate.lock);
	gate.begun++;
	gate.longest = len > gate.longest ? len : gate.longest;
	gate.thread = gettid();
	err = gate.fails_with;
	pthread_mutex_unlock(&gate.lock);
	return err;
}

static void gate_leave(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.passed++;
	pthread_cond_broadcast(&gate.moved);
	while (gate.shut)
		pthread_cond_wait(&gate.moved, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

int msync(void *addr, size_t len, int flags)
{
	int err = gate_enter(len);
	int ret = (int)syscall(SYS_msync, addr, len, flags);

	err = ret ? errno : err;
	gate_leave();
	errno = err;
	return err ? -1 : 0;
}

void gate_set(bool shut)
{
	pthread_mutex_lock(&gate.lock);
	gate.shut = shut;
	if (shut)
		gate.begun = gate.passed = 0;
	pthread_cond_broadcast(&gate.moved);
	pthread_mutex_unlock(&gate.lock);
}

void gate_fail(int err)
{
	pthread_mutex_lock(&gate.lock);
	gate.fails_with = err;
	pthread_mutex_unlock(&gate.lock);
}

unsigned gate_begun(void)
{
	unsigned n;

	pthread_mutex_lock(&gate.lock);
	n = gate.begun;
	pthread_mutex_unlock(&gate.lock);
	return n;
}

void gate_await(unsigned n)
{
	pthread_mutex_lock(&gate.lock);
	while (gate.passed < n)
		pthread_cond_wait(&gate.moved, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

pid_t gate_thread(void)
{
	pid_t thread;

	pthread_mutex_lock(&gate.lock);
	thread = gate.thread;
	pthread_mutex_unlock(&gate.lock);
	return thread;
}

size_t gate_longest(void)
{
	size_t longest;

	pthread_mutex_lock(&gate.lock);
	longest = gate.longest;
	pthread_mutex_unlock(&gate.lock);
	return longest;
}

void gate_forget_longest(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.longest = 0;
	pthread_mutex_unlock(&gate.lock);
}
