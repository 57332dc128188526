/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"

#define DEPTH       6 /* less than the default queue size of 10 */
#define BUF_SIZE    (256u << 10)
#define FLUSH_EVERY 16
#define RETRY_NS    (2 * NSEC_PER_MS)

static uint64_t traffic_next(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1dull;
}

int traffic_open(struct traffic *t, const char *port, unsigned slice, unsigned slices)
{
	int ret;

	memset(t, 0, sizeof(*t));
	t->port = port;
	t->seed = (slice + 1) * 0x9e3779b97f4a7c15ull;
	t->slice = slice;
	t->slices = slices;
	t->broken = true;
	ret = client_open(&t->client, BUF_SIZE);
	if (!ret)
		memset(t->client.buf, (int)slice + 1, BUF_SIZE);
	return ret;
}

void traffic_close(struct traffic *t)
{
	client_close(&t->client);
}

int traffic_fd(const struct traffic *t)
{
	int fd;

	return !t->broken && !rpma_cq_get_fd(t->client.cq, &fd) ? fd : -1;
}

static void traffic_reconnect(struct traffic *t)
{
	int fd;

	if (clock_now_ns() < t->retry_at)
		return;
	client_drop(&t->client);
	t->retry_at = clock_now_ns() + RETRY_NS;
	if (client_connect(&t->client, t->port, NULL))
		return;
	/* If the target has no region for writes, connect again. */
	if (t->client.n_at == 0)
		return;
	t->connects++;
	t->under_way = 0;
	t->broken = false;
	fd = traffic_fd(t);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Returns a size: a word, a cache line, a page, or several FPDUs. */
static size_t traffic_some_size(uint64_t r, size_t max)
{
	static const size_t sizes[] = {8, 64, 1000, 4096, 30001, 65536, 200000, 256 << 10};
	size_t size = sizes[r % (sizeof(sizes) / sizeof(sizes[0]))];

	return size > max ? max : size;
}

static int traffic_post(struct traffic *t)
{
	struct client *c = &t->client;
	uint64_t r = traffic_next(&t->seed);
	int region = (int)(r % (uint64_t)c->n_at);
	size_t size, len, at;

	rpma_mr_remote_get_size(c->at[region], &size);
	size /= t->slices;
	len = traffic_some_size(r >> 8, size < BUF_SIZE ? size : BUF_SIZE);
	at = t->slice * size + (size > len ? (r >> 16) % (size - len) : 0);
	if ((r >> 40) % FLUSH_EVERY == 0) {
		t->flushes++;
		return rpma_flush(c->conn, c->at[region], at, len, RPMA_FLUSH_TYPE_PERSISTENT,
				  RPMA_F_COMPLETION_ALWAYS, NULL);
	}
	t->writes++;
	return rpma_write(c->conn, c->at[region], at, c->mr, 0, len, RPMA_F_COMPLETION_ALWAYS,
			  NULL);
}

static void traffic_collect(struct traffic *t)
{
	struct ibv_wc wc[DEPTH];
	int got = 0;

	rpma_cq_wait(t->client.cq);
	while (!rpma_cq_get_wc(t->client.cq, DEPTH, wc, &got)) {
		for (int i = 0; i < got; i++)
			t->broken |= wc[i].status != IBV_WC_SUCCESS;
		t->under_way -= got;
	}
}

void traffic_step(struct traffic *t)
{
	if (t->broken) {
		traffic_reconnect(t);
		return;
	}
	traffic_collect(t);
	while (!t->broken && t->under_way < DEPTH) {
		t->broken = traffic_post(t) != 0;
		t->under_way += !t->broken;
	}
	t->failures += t->broken;
}
