/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/env.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rpmem/log.h"

#define ENV_COMMANDS      4096 /* bytes of RPMEM_CMD */
#define ENV_TIMEOUT_MS    30000
#define ENV_WORK_QUEUE    50
#define ENV_WORK_QUEUE_HI 4096
#define ENV_SPIN_US       50

static struct {
	pthread_mutex_t lock; /* guards the two members below */
	char commands[ENV_COMMANDS];
	const char *next;
	unsigned max_lanes, work_queue_size;
} env = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the variable's number if it is from min to max, else `otherwise`. */
static long env_number(const char *name, long min, long max, long otherwise)
{
	const char *text = getenv(name);
	char *end;
	long value;

	if (!text || !*text)
		return otherwise;
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max) {
		LOG_ERROR("%s=%s is not a number from %ld to %ld, and is ignored", name, text, min,
			  max);
		return otherwise;
	}
	return value;
}

static void env_read_commands(void)
{
	const char *text = getenv("RPMEM_CMD");

	if (!text || !*text)
		text = "rpmemd";
	pthread_mutex_lock(&env.lock);
	if (strlen(text) < sizeof(env.commands))
		strcpy(env.commands, text);
	else
		env.commands[0] = '\0';
	env.next = env.commands;
	pthread_mutex_unlock(&env.lock);
}

void env_read(void)
{
	log_open();
	env_read_commands();
	env.max_lanes = (unsigned)env_number("RPMEM_MAX_NLANES", 1, UINT_MAX, UINT_MAX);
	env.work_queue_size =
		(unsigned)env_number("RPMEM_WORK_QUEUE_SIZE", 1, UINT_MAX, ENV_WORK_QUEUE);
	if (env.work_queue_size < 2)
		env.work_queue_size = 2;
	if (env.work_queue_size > ENV_WORK_QUEUE_HI)
		env.work_queue_size = ENV_WORK_QUEUE_HI;
}

__attribute__((constructor)) static void env_on_load(void)
{
	env_read();
}

bool env_next_command(char *buf, size_t size)
{
	size_t len;
	bool fits;

	pthread_mutex_lock(&env.lock);
	len = strcspn(env.next, "|");
	fits = env.commands[0] && len < size;
	if (fits) {
		memcpy(buf, env.next, len);
		buf[len] = '\0';
	}
	env.next += len;
	env.next = *env.next ? env.next + 1 : env.commands;
	pthread_mutex_unlock(&env.lock);
	return fits;
}

unsigned env_max_lanes(void)
{
	return env.max_lanes;
}

unsigned env_work_queue_size(void)
{
	return env.work_queue_size;
}

const char *env_ssh(void)
{
	const char *ssh = getenv("RPMEM_SSH");

	return ssh && *ssh ? ssh : "ssh";
}

bool env_sockets_allowed(void)
{
	return env_number("RPMEM_ENABLE_SOCKETS", INT_MIN, INT_MAX, 0) != 0;
}

bool env_verbs_allowed(void)
{
	return env_number("RPMEM_ENABLE_VERBS", INT_MIN, INT_MAX, 1) != 0;
}

int env_timeout_ms(void)
{
	return (int)env_number("RPMEM_TIMEOUT_MS", 1, INT_MAX, ENV_TIMEOUT_MS);
}

/* On a single processor spinning is useless: the other end makes no progress meanwhile. */
unsigned env_spin_us(void)
{
	cpu_set_t cpus;
	bool alone = !sched_getaffinity(0, sizeof(cpus), &cpus) && CPU_COUNT(&cpus) < 2;

	return (unsigned)env_number("RPMEM_SPIN_US", 0, 1000000, alone ? 0 : ENV_SPIN_US);
}

bool env_secret_file(char *buf, size_t size)
{
	const char *path = getenv("RPMEM_SECRET_FILE"), *home = getenv("HOME");

	if (path && *path)
		return snprintf(buf, size, "%s", path) < (int)size;
	return home && *home && snprintf(buf, size, "%s/.rpmem/secret", home) < (int)size;
}
