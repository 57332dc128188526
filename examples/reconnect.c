/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconnect -- a client that writes records, and continues after the server was restarted.
 *
 * The client counts acknowledged records: record n is acknowledged once the flush after it has
 * completed. When the connection breaks, some of the records under way may have arrived, and some
 * not. The client sends them again over the next connection. Writing a record twice does no harm,
 * because each record is always written to the same offset.
 */
#include <endian.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

#define RECORDS      10000
#define WINDOW       8     /* records under way at the same time */
#define AWAY_MS      20000 /* longest time without a server */
#define REPORT_EVERY 50

struct record {
	uint64_t number; /* counted from 1, little-endian */
	char text[56];
};

/*
 * The program keeps all records, because those without an acknowledgement may be sent again.
 */
static struct record records[RECORDS];

static void server(char **args)
{
	offer_file(args, sizeof(records),
		   RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, FOREVER);
}

/* rpma_conn_open() repeats the attempt while there is no listener. */
static void connect_again(struct session *s, char **args, const struct rpma_conn_cfg *cfg)
{
	const char *why = session_connect(s, args, cfg, AWAY_MS);

	if (why)
		errx(EXIT_FAILURE, "the server does not come back: %s", why);
	/* The restarted server has registered its memory again, so the old descriptor is
	 * invalid. */
	session_take_offer(s, sizeof(records));
}

/* No must() here: a record that cannot be posted counts as lost, and is posted again later. */
static bool post(struct session *s, const struct rpma_mr_local *mr, size_t n)
{
	size_t at = n * sizeof(struct record);
	/* number of durable records when this operation completes */
	const void *done = (const void *)(n + 1);

	return !rpma_write(s->conn, s->region, at, mr, at, sizeof(struct record),
			   RPMA_F_COMPLETION_ON_ERROR, done) &&
	       !rpma_flush(s->conn, s->region, at, sizeof(struct record),
			   RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, done);
}

/* Send the records from number `acked` on. Returns how many are acknowledged. */
static size_t send_records(struct session *s, const struct rpma_mr_local *mr, size_t acked,
			   size_t total, useconds_t pause_us)
{
	size_t posted = acked;

	while (acked < total) {
		struct ibv_wc wc;

		while (posted < total && posted - acked < WINDOW) {
			if (!post(s, mr, posted))
				return acked;
			posted++;
		}
		wc = next_completion(s->cq);
		if (wc.status != IBV_WC_SUCCESS)
			return acked;
		acked = wc.wr_id;
		if (acked % REPORT_EVERY == 0)
			printf("acknowledged %zu\n", acked);
		usleep(pause_us); /* time for the user to restart the server */
	}
	return acked;
}

static struct rpma_conn_cfg *room_for_window(void)
{
	struct rpma_conn_cfg *cfg;

	must(rpma_conn_cfg_new(&cfg), "configure");
	/*
	 * Each record has a write and a flush; if the connection breaks, both complete with errors.
	 */
	must(rpma_conn_cfg_set_sq_size(cfg, 2 * WINDOW), "configure");
	must(rpma_conn_cfg_set_cq_size(cfg, 2 * WINDOW), "configure");
	return cfg;
}

static void client(char **args)
{
	size_t total = number(args[2], 1000, RECORDS), acked = 0;
	useconds_t pause_us = number(args[3], 10, 1000) * 1000;
	struct rpma_conn_cfg *cfg = room_for_window();
	struct rpma_mr_local *mr;
	struct session s;

	for (size_t i = 0; i < total; i++) {
		records[i].number = htole64(i + 1);
		snprintf(records[i].text, sizeof(records[i].text), "record %zu\n", i + 1);
	}
	s.peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_REMOTE);
	/* Register once, because memory belongs to the peer object, not to a connection. */
	must(rpma_mr_reg(s.peer, records, sizeof(records), RPMA_MR_USAGE_WRITE_SRC, &mr),
	     "register");
	while (acked < total) {
		connect_again(&s, args, cfg);
		printf("connected, sending from record %zu\n", acked + 1);
		acked = send_records(&s, mr, acked, total, pause_us);
		if (acked < total)
			printf("lost the connection, %zu are acknowledged\n", acked);
		session_disconnect(&s);
	}
	printf("all %zu records are durable\n", total);
	rpma_conn_cfg_delete(&cfg);
	must(rpma_mr_dereg(&mr), "deregister");
	must(rpma_peer_delete(&s.peer), "delete the peer");
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT FILE", server},
					    {"client", "ADDRESS PORT [COUNT] [PAUSE-MS]", client},
					    {0}};

	return play(argc, argv, roles);
}
