/* SPDX-License-Identifier: BSD-3-Clause */
/* redis -- measures pipelined SETs of keys of a Redis server. See ../README.md. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/die.h"
#include "load.h"
#include "wire.h"

#define REDIS_OK "+OK\r\n"

struct redis {
	char answer[256]; /* the first bytes of an answer */
	size_t have;
};

static void redis_post(struct load_conn *lc, unsigned slot, uint64_t at)
{
	size_t len = lc->load->c->size;
	char head[96];

	(void)slot;
	snprintf(head, sizeof(head), "*3\r\n$3\r\nSET\r\n$17\r\nk%016llx\r\n$%zu\r\n",
		 (unsigned long long)at, len);
	wire_put(lc->wire,
		 (const struct iovec[]){
			 {head, strlen(head)}, {lc->load->payload, len}, {(char[]){"\r\n"}, 2}},
		 3);
}

static void redis_service(struct load_conn *lc, unsigned events)
{
	const size_t len = strlen(REDIS_OK);
	struct redis *r = lc->own;
	size_t at = 0;

	wire_flush(lc->wire);
	if (events & EPOLLIN)
		r->have += wire_get(lc->wire, r->answer + r->have, sizeof(r->answer) - r->have);
	for (; r->have - at >= len; at += len) {
		if (memcmp(r->answer + at, REDIS_OK, len) != 0)
			die("the server answers %.*s", (int)(r->have - at), r->answer + at);
		load_done_oldest(lc);
	}
	memmove(r->answer, r->answer + at, r->have - at);
	r->have -= at;
}

int main(int argc, char **argv)
{
	static const struct load_client client = {.who = "redis",
						  .own = sizeof(struct redis),
						  .has_wire = true,
						  .post = redis_post,
						  .service = redis_service};

	return load_main(&client, argc, argv);
}
