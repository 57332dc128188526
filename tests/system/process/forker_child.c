/* SPDX-License-Identifier: BSD-3-Clause */
#include "forker.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__;                                                           \
	} while (0)

/* Each call on an inherited object must return immediately, and must not end the process. */
static int inherited_handles_fail(struct forker *f)
{
	struct client *c = &f->traffic.client;
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req;
	struct rpma_mr_local *mr;

	if (c->conn) {
		CHECK(rpma_write(c->conn, c->at[0], 0, c->mr, 0, 8, RPMA_F_COMPLETION_ALWAYS,
				 NULL) != 0);
		CHECK(rpma_flush(c->conn, c->at[0], 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
				 RPMA_F_COMPLETION_ALWAYS, NULL) != 0);
		CHECK(client_wait_event(c->conn, &event, 10000) == 0);
		CHECK(event == RPMA_CONN_LOST);
		rpma_conn_disconnect(c->conn);
		client_drop(c);
	}
	CHECK(rpma_ep_next_conn_req(f->target.ep, NULL, &req) != 0);
	/* A new device must work. Calls on the inherited domain can fail, but must not hang. */
	if (!rpma_mr_reg(c->peer, c->buf, 64, RPMA_MR_USAGE_READ_SRC, &mr))
		CHECK(rpma_mr_dereg(&mr) == 0);
	return 0;
}

static int inherited_handles_can_be_deleted(struct forker *f)
{
	client_close(&f->traffic.client);
	CHECK(f->traffic.client.conn == NULL && f->traffic.client.mr == NULL);
	target_close(&f->target);
	CHECK(f->target.ep == NULL && f->target.peer == NULL && f->target.n_conns == 0);
	return 0;
}

struct server {
	struct target target;
	atomic_bool stop;
};

static void *serve(void *arg)
{
	struct server *s = arg;

	while (!atomic_load(&s->stop))
		target_step(&s->target, 10);
	return NULL;
}

static int exchange(const char *port, bool alone)
{
	struct client c;

	CHECK(client_open(&c, 65536) == 0);
	CHECK(client_connect(&c, port, NULL) == 0);
	memset(c.buf, 0x42, 65536);
	CHECK(client_write(&c, 0, 4096, 65536, NULL) == 0);
	memset(c.buf, 0, 65536);
	CHECK(client_read(&c, 0, 4096, 65536, NULL) == 0);
	/* The parent possibly writes to the same memory at this time. */
	CHECK(!alone || (c.buf[0] == 0x42 && c.buf[65535] == 0x42));
	CHECK(client_echo(&c, 64) == 0);
	client_close(&c);
	return 0;
}

static int a_new_life_works(const char *elsewhere)
{
	static struct server s;
	pthread_t thread;
	int line;

	CHECK(target_open(&s.target) == 0);
	CHECK(target_add_anon(&s.target, 1 << 20, 0xff, false) == 0);
	CHECK(pthread_create(&thread, NULL, serve, &s) == 0);
	line = exchange(s.target.port, true);
	if (!line)
		line = exchange(elsewhere, false);
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	target_close(&s.target);
	return line;
}

int forker_child(struct forker *f)
{
	int line = inherited_handles_fail(f);

	if (!line)
		line = inherited_handles_can_be_deleted(f);
	return line ? line : a_new_life_works(f->traffic.port);
}
