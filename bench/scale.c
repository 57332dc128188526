/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scale -- the cost of many connections between two processes, through librpma on 127.0.0.1.
 *
 *   scale idle CONNS SECONDS          bytes and CPU of idle connections
 *   scale connect SECONDS THREADS     connects + disconnects a second
 *   scale rate CONNS SECONDS SIZE DEPTH   writes + flushes a second, DEPTH under way on each
 *   scale latency CONNS SECONDS      latency of one connection, alone and beside CONNS idle ones
 *
 * Each prints one line of JSON. bench/scale.md has the details.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/clock.h"
#include "scale_impl.h"

#define USAGE (RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST)

static struct scale_target target;
static struct scale_side side;

static struct scale_conn *connect_all(int n, const struct rpma_conn_cfg *cfg)
{
	struct scale_conn *c = calloc((size_t)n, sizeof(*c));

	if (!c)
		scale_die("calloc");
	for (int i = 0; i < n; i++)
		scale_connect(&side, target.port, cfg, &c[i]);
	return c;
}

static void disconnect_all(struct scale_conn *c, int n)
{
	for (int i = 0; i < n; i++)
		scale_disconnect(&c[i]);
	free(c);
}

/* --- idle ------------------------------------------------------------------------------------ */

static double each(uint64_t before, uint64_t after, int n)
{
	return (double)(int64_t)(after - before) / n;
}

static void run_idle(int n, int seconds)
{
	struct scale_conn warm, *conns;
	struct scale_usage u[3][2];

	scale_connect(&side, target.port, NULL, &warm);
	sleep(1);
	u[0][0] = scale_usage();
	u[0][1] = scale_target_usage(&target);
	conns = connect_all(n, side.shared);
	sleep(1);
	u[1][0] = scale_usage();
	u[1][1] = scale_target_usage(&target);
	sleep((unsigned)seconds);
	u[2][0] = scale_usage();
	u[2][1] = scale_target_usage(&target);
	for (int i = 0; i < 2; i++)
		printf("{\"what\":\"idle\",\"end\":\"%s\",\"conns\":%d,\"allocated\":%.0f,"
		       "\"anonymous\":%.0f,\"socket_buffers\":%.0f,"
		       "\"cpu_percent_per_1000\":%.4f,\"waits_per_s\":%.1f}\n",
		       i ? "target" : "initiator", n, each(u[0][i].allocated, u[1][i].allocated, n),
		       each(u[0][i].anonymous, u[1][i].anonymous, n),
		       each(u[0][i].socket_pages, u[1][i].socket_pages, n) * 4096,
		       each(u[1][i].cpu_ns, u[2][i].cpu_ns, n) * 1000 / seconds / 1e7,
		       (double)(u[2][i].switches - u[1][i].switches) / seconds);
	disconnect_all(conns, n);
	scale_disconnect(&warm);
}

/* --- connect --------------------------------------------------------------------------------- */

static uint64_t deadline;

static void *connect_main(void *arg)
{
	unsigned *count = arg;
	struct scale_conn c;

	while (clock_now_ns() < deadline) {
		scale_connect(&side, target.port, NULL, &c);
		scale_disconnect(&c);
		++*count;
	}
	return NULL;
}

static void run_connect(int seconds, int threads)
{
	unsigned count[64] = {0}, sum = 0;
	pthread_t thread[64];
	uint64_t start = clock_now_ns();
	struct scale_usage a[2] = {scale_usage(), scale_target_usage(&target)}, b[2];

	deadline = start + (uint64_t)seconds * 1000000000u;
	for (int i = 0; i < threads && i < 64; i++)
		if (pthread_create(&thread[i], NULL, connect_main, &count[i]))
			scale_die("thread");
	for (int i = 0; i < threads && i < 64; i++) {
		pthread_join(thread[i], NULL);
		sum += count[i];
	}
	b[0] = scale_usage();
	b[1] = scale_target_usage(&target);
	printf("{\"what\":\"connect\",\"threads\":%d,\"per_s\":%.0f,\"initiator_us\":%.1f,"
	       "\"target_us\":%.1f}\n",
	       threads, sum / ((double)(clock_now_ns() - start) / 1e9),
	       (double)(b[0].cpu_ns - a[0].cpu_ns) / sum / 1e3,
	       (double)(b[1].cpu_ns - a[1].cpu_ns) / sum / 1e3);
}

/* --- rate and latency ------------------------------------------------------------------------ */

#define WARM_UP_NS 300000000u

static double rate(struct scale_conn *c, int n, int seconds, size_t size, int depth)
{
	uint64_t start = clock_now_ns() + WARM_UP_NS, count = 0, now;
	uint64_t end = start + (uint64_t)seconds * 1000000000u;

	for (int i = 0; i < n; i++)
		for (int k = 0; k < depth; k++)
			scale_post(&side, &c[i], size);
	do {
		now = clock_now_ns();
		for (int i = 0; i < n; i++) {
			if (!scale_poll(&c[i]))
				continue;
			count += now >= start;
			scale_post(&side, &c[i], size);
		}
	} while (now < end);
	for (int i = 0; i < n; i++)
		while (c[i].pending)
			scale_poll(&c[i]);
	return (double)count / ((double)(now - start) / 1e9);
}

static void run_rate(int n, int seconds, int size, int depth)
{
	struct scale_conn *c = connect_all(n, NULL);
	double per_s = rate(c, n, seconds, (size_t)size, depth);

	printf("{\"what\":\"rate\",\"conns\":%d,\"size\":%d,\"depth\":%d,\"per_s\":%.0f}\n", n,
	       size, depth, per_s);
	disconnect_all(c, n);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

struct latency {
	double median, p99; /* ns */
};

static struct latency latency(struct scale_conn *c, int seconds)
{
	static uint32_t sample[1 << 20];
	uint64_t end = clock_now_ns() + (uint64_t)seconds * 1000000000u, begin;
	size_t n = 0;

	while ((begin = clock_now_ns()) < end && n < sizeof(sample) / sizeof(sample[0])) {
		scale_post(&side, c, 64);
		while (!scale_poll(c))
			;
		sample[n++] = (uint32_t)(clock_now_ns() - begin);
	}
	qsort(sample, n, sizeof(sample[0]), compare);
	return (struct latency){.median = sample[n / 2], .p99 = sample[n * 99 / 100]};
}

static void run_latency(int n, int seconds)
{
	struct scale_conn one, *idle;
	struct latency alone, beside, after;

	scale_connect(&side, target.port, NULL, &one);
	alone = latency(&one, seconds);
	idle = connect_all(n, side.shared);
	sleep(1);
	beside = latency(&one, seconds);
	disconnect_all(idle, n);
	after = latency(&one, seconds);
	printf("{\"what\":\"latency\",\"idle\":%d,\"alone_ns\":%.0f,\"beside_ns\":%.0f,"
	       "\"after_ns\":%.0f,\"alone_p99_ns\":%.0f,\"beside_p99_ns\":%.0f,"
	       "\"after_p99_ns\":%.0f}\n",
	       n, alone.median, beside.median, after.median, alone.p99, beside.p99, after.p99);
	scale_disconnect(&one);
}

static int number(char **argv, int i, int argc, int dflt)
{
	return i < argc ? atoi(argv[i]) : dflt;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	/* Switch off rings, because only some of many connections would get them. */
	if (setenv("SOFTRNIC_SHM", "0", 0))
		scale_die("setenv");
	scale_target_start(&target);
	scale_side_open(&side, USAGE);
	if (!strcmp(what, "idle"))
		run_idle(number(argv, 2, argc, 1000), number(argv, 3, argc, 10));
	else if (!strcmp(what, "connect"))
		run_connect(number(argv, 2, argc, 3), number(argv, 3, argc, 1));
	else if (!strcmp(what, "rate"))
		run_rate(number(argv, 2, argc, 1), number(argv, 3, argc, 3),
			 number(argv, 4, argc, 64), number(argv, 5, argc, 1));
	else if (!strcmp(what, "latency"))
		run_latency(number(argv, 2, argc, 1000), number(argv, 3, argc, 3));
	else
		fprintf(stderr, "usage: scale idle|connect|rate|latency ...\n");
	scale_target_stop(&target);
	return 0;
}
