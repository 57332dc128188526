/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures `every` calls of pwrite() with `size` bytes, each at least a page after the previous
 * one, and then one fdatasync(). With conns=N there are N processes that do the same at the same
 * time.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/file.h"
#include "lib/result.h"
#include "lib/span.h"
#include "limit_impl.h"

#define DISK_MAX 8

struct disk {
	const struct bench_case *c;
	struct span span;
	char *buf;
	int fd;
};

static struct disk disk_open(const struct bench_case *c)
{
	struct disk d = {.c = c, .span = span_of(c), .buf = limit_buffer(c->size)};

	d.fd = file_open(c->where, d.span.size);
	return d;
}

static void disk_one(struct disk *d)
{
	ssize_t len = (ssize_t)d->c->size;

	for (unsigned i = 0; i < d->c->every; i++)
		if (pwrite(d->fd, d->buf, d->c->size, (off_t)span_next(&d->span)) != len)
			die_errno("write the file");
	if (fdatasync(d->fd))
		die_errno("fdatasync");
	d->buf[0]++;
}

/* Start another process that does the same until it is killed. */
static pid_t disk_start_other(const struct bench_case *c)
{
	pid_t pid = child_fork();
	struct disk d;

	if (pid)
		return pid;
	for (d = disk_open(c);;)
		disk_one(&d);
}

void limit_disk(const struct bench_case *c)
{
	struct samples *s = samples_new();
	struct disk d = disk_open(c);
	pid_t others[DISK_MAX];
	uint64_t warm = clock_now_ns() + case_warmup_ns(c), begin = 0, then = 0, now;
	struct result r = {0};

	if (c->conns > DISK_MAX)
		die("conns=%u: at most %u", c->conns, DISK_MAX);
	for (unsigned i = 1; i < c->conns; i++)
		others[i] = disk_start_other(c);
	while (!begin || then - begin < case_ns(c)) {
		disk_one(&d);
		now = clock_now_ns();
		if (begin)
			samples_add(s, now - then);
		else if (now > warm)
			begin = now;
		then = now;
	}
	for (unsigned i = 1; i < c->conns; i++) {
		kill(others[i], SIGKILL);
		waitpid(others[i], NULL, 0);
	}
	close(d.fd);
	r.count = s->total;
	r.ns = then - begin;
	result_print(c, &r, s);
	samples_delete(s);
}
