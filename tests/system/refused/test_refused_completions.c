/* SPDX-License-Identifier: BSD-3-Clause */
/* test_refused_completions.c -- the completion of a refused operation: its status, and vendor_err
 * with the error of the target's Terminate. */
#include "system/lib/check.h"

#include "system/lib/client.h"
#include "system/lib/remote.h"

#define SIZE      65536
#define DESC_SIZE 21

enum { ALL, READ_ONLY, WRITE_ONLY, STRANGE, GONE, REGIONS };
enum op { WRITE, READ, FLUSH };

static struct remote target;
static struct client client;

static int start(void **state)
{
	static const char *const regions[REGIONS + 1] = {
		[ALL] = "anon:65536:0xff",        [READ_ONLY] = "anon:65536:0x01",
		[WRITE_ONLY] = "anon:65536:0x08", [STRANGE] = "strange:65536:0xff",
		[GONE] = "anon:65536:0xff",
	};

	return remote_start(&target, SYSTEM_TARGET, regions, NULL) ||
	       strcmp(proc_ask(&target.proc, "dereg %d", GONE), "ok") != 0 ||
	       client_open(&client, SIZE);
}

static int stop(void **state)
{
	client_close(&client);
	return proc_finish(&target.proc);
}

#define BY_TERMINATE (4u << 24) /* RPMA_REASON_TERMINATE_IN; the low bits have the error */

struct wrong {
	const char *what;
	enum op op;
	int region;
	size_t at, len;
	unsigned vendor_err;
};

static const struct wrong wrongs[] = {
	{"write: deregistered", WRITE, GONE, 0, 64, 0x1100},
	{"write: behind the end", WRITE, ALL, SIZE - 32, 64, 0x1101},
	{"write: no right", WRITE, READ_ONLY, 0, 64, 0x0102},
	{"write: other domain", WRITE, STRANGE, 0, 64, 0x1102},
	{"read: deregistered", READ, GONE, 0, 64, 0x0100},
	{"read: behind the end", READ, ALL, SIZE - 32, 64, 0x0101},
	{"read: no right", READ, WRITE_ONLY, 0, 64, 0x0102},
	{"read: other domain", READ, STRANGE, 0, 64, 0x0103},
	{"flush: deregistered", FLUSH, GONE, 0, 64, 0x0100},
	{"flush: behind the end", FLUSH, ALL, SIZE - 32, 64, 0x0101},
	{"flush: no right", FLUSH, WRITE_ONLY, 0, 64, 0x0102},
	{"flush: other domain", FLUSH, STRANGE, 0, 64, 0x0103},
};

/*
 * librpma itself refuses a flush of a region that was not registered for flushes. Change the last
 * byte of the descriptor, so that librpma sends the flush.
 */
static void pretend_flushable(struct rpma_mr_remote **mr, int region)
{
	const char *line = proc_ask(&target.proc, "desc %d", region);
	uint8_t desc[DESC_SIZE];

	assert_non_null(line);
	for (int i = 0; i < DESC_SIZE; i++)
		assert_int_equal(sscanf(line + 2 * i, "%2hhx", &desc[i]), 1);
	desc[DESC_SIZE - 1] = 0xff;
	OK(rpma_mr_remote_from_descriptor(desc, sizeof(desc), mr));
}

static int post(const struct wrong *w, const struct rpma_mr_remote *mr, struct rpma_mr_remote *own)
{
	struct client *c = &client;

	switch (w->op) {
	case WRITE:
		/* A single write completes when it is sent, so post a flush after it. */
		return client_post_write_and_flush(c, own, w->at, w->len);
	case READ:
		return rpma_read(c->conn, c->mr, 0, mr, w->at, w->len, RPMA_F_COMPLETION_ALWAYS,
				 NULL);
	default:
		return rpma_flush(c->conn, own, w->at, w->len, RPMA_FLUSH_TYPE_VISIBILITY,
				  RPMA_F_COMPLETION_ALWAYS, NULL);
	}
}

/* Make one attempt on a connection, which must then be CLOSED or LOST. */
static void attempt(const struct wrong *w, struct ibv_wc *wc)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_mr_remote *own;

	OK(client_connect(&client, target.port, NULL));
	assert_int_equal(client.n_at, REGIONS);
	pretend_flushable(&own, w->region);
	OK(post(w, client.at[w->region], own));
	OK(client_wait_wc(client.cq, wc, CLIENT_WAIT_MS));
	OK(client_wait_event(client.conn, &event, CLIENT_WAIT_MS));
	assert_true(event == RPMA_CONN_CLOSED || event == RPMA_CONN_LOST);
	OK(rpma_mr_remote_delete(&own));
	client_drop(&client);
}

static void the_completion_says_why(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		const struct wrong *w = &wrongs[i];
		struct ibv_wc wc = {0};

		attempt(w, &wc);
		if (wc.status != IBV_WC_REM_ACCESS_ERR ||
		    wc.vendor_err != (BY_TERMINATE | w->vendor_err))
			fail_msg("%s: %s, vendor_err %#x instead of %#x", w->what,
				 ibv_wc_status_str(wc.status), wc.vendor_err,
				 BY_TERMINATE | w->vendor_err);
	}
}

static void the_target_serves_the_next(void **state)
{
	OK(client_connect(&client, target.port, NULL));
	memset(client.buf, 0x21, SIZE);
	OK(client_write(&client, ALL, 0, SIZE, NULL));
	OK(client_read(&client, READ_ONLY, 0, SIZE, NULL));
	assert_int_equal(client.buf[0] | client.buf[SIZE - 1], 0);
	OK(client_echo(&client, 64));
	client_disconnect(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_completion_says_why),
		cmocka_unit_test(the_target_serves_the_next),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
