/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurements of a mirrored set that are more than calls in a loop. */
#include <librpmirror.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "lib/samples.h"
#include "mirror_impl.h"

#define MIRROR_CHUNK   (256u << 10)
#define MIRROR_LOOK_NS 2000000u
#define MIRROR_WAIT_NS 25000000000u

static void mirror_sleep_ms(long ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static void mirror_flush_word(struct rpmirror *m, char *addr, uint64_t word)
{
	char *at = addr + word % 64 * 4096;
	struct rpmirror_range range = {at, 64};

	*(uint64_t *)(void *)at = word;
	mirror_must(rpmirror_flush(m, &range, 1, 0, NULL), "flush");
}

/* ---- another host takes the role ---- */

/* A process that maps the set on a host, and flushes until it is killed or has to unmap. */
struct mirror_user {
	pid_t pid;
	/* pipe on which the process reports that it has mapped, that the set is complete, and that
	 * it unmaps */
	int fd;
};

static void mirror_user_stamp(int fd)
{
	uint64_t now = clock_now_ns();

	ends_put(fd, &now, sizeof(now));
}

static void mirror_user_run(const struct mirror_hosts *h, unsigned host, int fd)
{
	char *addr, order;
	struct rpmirror *m;
	uint64_t word = 0;

	mirror_host_enter(h, host);
	m = mirror_map(RPMIRROR_MAP_WAIT, &addr, h->size);
	mirror_user_stamp(fd);
	mirror_await_all(m);
	mirror_user_stamp(fd);
	while (recv(fd, &order, 1, MSG_DONTWAIT) < 0)
		mirror_flush_word(m, addr, ++word);
	mirror_user_stamp(fd);
	mirror_unmap(m);
}

static struct mirror_user mirror_user_start(const struct mirror_hosts *h, unsigned host)
{
	struct mirror_user user;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die_errno("socketpair");
	user.pid = child_fork();
	if (!user.pid) {
		close(fds[0]);
		mirror_user_run(h, host, fds[1]);
		_exit(EXIT_SUCCESS);
	}
	close(fds[1]);
	user.fd = fds[0];
	return user;
}

static uint64_t mirror_user_time(const struct mirror_user *user)
{
	uint64_t at;

	ends_get(user->fd, &at, sizeof(at));
	return at;
}

static void mirror_user_end(struct mirror_user *user)
{
	close(user->fd);
	waitpid(user->pid, NULL, 0);
}

/* Measure repeatedly how long no process has the set mapped. */
static void mirror_take_over(struct mirror_hosts *h, struct result *result, struct samples *samples,
			     bool by_death)
{
	struct mirror_user now = mirror_user_start(h, 0), next;
	uint64_t begin = clock_now_ns(), from, took;
	unsigned host = 0;

	mirror_user_time(&now);
	mirror_user_time(&now);
	do {
		host = (host + 1) % h->count;
		next = mirror_user_start(h, host);
		/* give the other process time to begin waiting at its daemon */
		mirror_sleep_ms(50);
		if (by_death) {
			from = clock_now_ns();
			kill(now.pid, SIGKILL);
		} else {
			ends_put(now.fd, "u", 1);
			from = mirror_user_time(&now);
		}
		took = mirror_user_time(&next) - from;
		samples_add(samples, took);
		result->ns += took;
		mirror_user_time(&next);
		mirror_user_end(&now);
		now = next;
	} while (clock_now_ns() - begin < case_ns(h->c));
	ends_put(now.fd, "u", 1);
	mirror_user_time(&now);
	mirror_user_end(&now);
}

void mirror_failover(struct mirror_hosts *h, struct result *result, struct samples *samples)
{
	mirror_take_over(h, result, samples, true);
}

void mirror_switch_over(struct mirror_hosts *h, struct result *result, struct samples *samples)
{
	mirror_take_over(h, result, samples, false);
}

/* ---- a resync while flushes continue ---- */

struct mirror_busy {
	struct rpmirror *m;
	char *addr;
	uint64_t word;
	unsigned slot; /* slot of the member that gets the resync */
};

static enum rpmirror_copy mirror_busy_copy(const struct mirror_busy *b)
{
	return mirror_state(b->m).members[b->slot].copy;
}

/* Flush until the member's copy enters (`is` true) or leaves (`is` false) the state `copy`, or
 * until `ns` is over. Returns how long it took. */
static uint64_t mirror_busy_until(struct mirror_busy *b, struct samples *samples,
				  enum rpmirror_copy copy, bool is, uint64_t ns)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin, look = begin;

	samples_clear(samples);
	while (now - begin < ns) {
		mirror_flush_word(b->m, b->addr, ++b->word);
		now = clock_now_ns();
		samples_add(samples, now - then);
		if (now - look > MIRROR_LOOK_NS) {
			look = now;
			if ((mirror_busy_copy(b) == copy) == is)
				return now - begin;
			now = clock_now_ns();
		}
		then = now;
	}
	return now - begin;
}

static void mirror_fill(struct mirror_busy *b, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += MIRROR_CHUNK) {
		struct rpmirror_range range = {b->addr + at, MIRROR_CHUNK};

		memset(b->addr + at, (int)(at / MIRROR_CHUNK + b->word) | 1, MIRROR_CHUNK);
		mirror_must(rpmirror_flush(b->m, &range, 1, 0, NULL), "flush");
	}
}

/* Measure the resync of the last member, which lacks all data, while flushes are sent to the other
 * members over the same link. */
void mirror_resync(struct mirror_hosts *h, struct result *result, struct samples *samples)
{
	struct mirror_busy b = {.slot = h->count - 1};

	if (h->count < 3)
		die("a resync needs another replica, to which flushes go: conns=2");
	b.m = mirror_map(0, &b.addr, h->size);
	mirror_await_all(b.m);
	mirror_busy_until(&b, samples, RPMIRROR_COPY_FAILED, true, case_ns(h->c));
	samples_sort(samples);
	result->calm_p99_us = samples_percentile_us(samples, 99);
	mirror_host_kill(h, b.slot);
	mirror_busy_until(&b, samples, RPMIRROR_COPY_IN_SYNC, false, MIRROR_WAIT_NS);
	mirror_fill(&b, h->size);
	mirror_host_start(h, b.slot);
	mirror_busy_until(&b, samples, RPMIRROR_COPY_SYNCING, true, MIRROR_WAIT_NS);
	result->ns = mirror_busy_until(&b, samples, RPMIRROR_COPY_IN_SYNC, true, MIRROR_WAIT_NS);
	if (mirror_busy_copy(&b) != RPMIRROR_COPY_IN_SYNC)
		die("the resync does not end");
	result->bytes = h->size;
	mirror_unmap(b.m);
}
