/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * postgres -- measures INSERT of one row in its own transaction, by libpq. Several transactions
 * under way form a pipeline, which the server executes in order. See ../README.md.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "lib/die.h"
#include "load.h"

static void postgres_must(PGconn *pg, bool ok, const char *what)
{
	if (!ok)
		die("%s: %s", what, PQerrorMessage(pg));
}

static void postgres_open(struct load_conn *lc)
{
	char info[128];
	PGresult *res;
	PGconn *pg;

	snprintf(info, sizeof(info), "host=%s port=%u user=bench dbname=postgres",
		 lc->load->c->addr, lc->load->port);
	pg = PQconnectdb(info);
	postgres_must(pg, PQstatus(pg) == CONNECTION_OK, "connect");
	res = PQprepare(pg, "put", "INSERT INTO bench (data) VALUES ($1::bytea)", 1, NULL);
	postgres_must(pg, PQresultStatus(res) == PGRES_COMMAND_OK, "prepare");
	PQclear(res);
	postgres_must(pg, PQenterPipelineMode(pg) && !PQsetnonblocking(pg, 1), "pipeline");
	lc->own = pg;
	lc->fd = PQsocket(pg);
}

static void postgres_post(struct load_conn *lc, unsigned slot, uint64_t at)
{
	const char *values[] = {lc->load->payload};
	const int lengths[] = {(int)lc->load->c->size}, formats[] = {1};
	PGconn *pg = lc->own;

	(void)slot;
	(void)at;
	postgres_must(pg, PQsendQueryPrepared(pg, "put", 1, values, lengths, formats, 1), "insert");
	postgres_must(pg, PQpipelineSync(pg) && PQflush(pg) >= 0, "send");
}

static void postgres_take(struct load_conn *lc, PGresult *res)
{
	switch (PQresultStatus(res)) {
	case PGRES_COMMAND_OK: /* the row is inserted; the next result ends the transaction */
		break;
	case PGRES_PIPELINE_SYNC:
		load_done_oldest(lc);
		break;
	default:
		die("insert: %s", PQresultErrorMessage(res));
	}
	PQclear(res);
}

static void postgres_service(struct load_conn *lc, unsigned events)
{
	PGconn *pg = lc->own;
	unsigned nothing = 0;

	if (events & EPOLLIN)
		postgres_must(pg, PQconsumeInput(pg), "receive");
	postgres_must(pg, PQflush(pg) >= 0, "send");
	/* One NULL ends the results of a query; two in a row end the results of all queries. */
	while (nothing < 2 && !PQisBusy(pg)) {
		PGresult *res = PQgetResult(pg);

		nothing = res ? 0 : nothing + 1;
		if (res)
			postgres_take(lc, res);
	}
}

static unsigned postgres_wants(const struct load_conn *lc)
{
	return EPOLLIN | (PQflush(lc->own) > 0 ? EPOLLOUT : 0);
}

static void postgres_close(struct load_conn *lc)
{
	PQfinish(lc->own);
}

int main(int argc, char **argv)
{
	static const struct load_client client = {.who = "postgres",
						  .open = postgres_open,
						  .post = postgres_post,
						  .service = postgres_service,
						  .wants = postgres_wants,
						  .close = postgres_close};

	return load_main(&client, argc, argv);
}
