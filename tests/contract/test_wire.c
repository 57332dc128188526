/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wire.c -- the bytes on the wire for each operation. */
#include "ends.h"
#include "relay.h"

/* Lengths of the extension messages at the start, in bytes. Each end sends a HELLO. Then the
 * connecting end sends an Origin, which names its connection. */
#define HELLO  84
#define ORIGIN 72

struct wired {
	struct ends d;
	struct relay relay;
	struct relay_count base[RELAY_WAYS];
};

static void wired_mark(struct wired *w)
{
	for (int way = 0; way < RELAY_WAYS; way++)
		relay_count(&w->relay, (enum relay_way)way, &w->base[way]);
}

/* Connect the two ends through the relay. */
static void wired_open(struct wired *w, const struct ends_opts *opts)
{
	char real[8];

	memset(w, 0, sizeof(*w));
	ends_listen(&w->d, NULL);
	memcpy(real, w->d.port, sizeof(real));
	relay_start(&w->relay, real);
	memcpy(w->d.port, w->relay.port, sizeof(real));
	ends_connect(&w->d, opts, &w->d.cli, &w->d.srv);
	memcpy(w->d.port, real, sizeof(real));
	w->d.cli_buf = ends_map(ENDS_BUF);
	w->d.srv_buf = ends_map(ENDS_BUF);
	w->d.cli_mr = ends_reg(&w->d, w->d.cli_buf, ENDS_BUF);
	w->d.srv_mr = ends_reg(&w->d, w->d.srv_buf, ENDS_BUF);
	w->d.at_srv = ends_remote(w->d.srv_mr);
	w->d.at_cli = ends_remote(w->d.cli_mr);
	wired_mark(w);
}

static void wired_close(struct wired *w)
{
	ends_close(&w->d);
	relay_join(&w->relay);
}

/* Expect this number of FPDUs in each direction since the last mark. */
static void expect_fpdus(struct wired *w, unsigned to_server, unsigned to_client)
{
	unsigned before[RELAY_WAYS] = {w->base[RELAY_TO_SERVER].fpdus,
				       w->base[RELAY_TO_CLIENT].fpdus};

	wired_mark(w);
	assert_int_equal(w->base[RELAY_TO_SERVER].fpdus - before[RELAY_TO_SERVER], to_server);
	assert_int_equal(w->base[RELAY_TO_CLIENT].fpdus - before[RELAY_TO_CLIENT], to_client);
}

static void flush(struct ends *d, enum rpma_flush_type type, size_t len)
{
	OK(rpma_flush(d->cli, d->at_srv, 0, len, type, RPMA_F_COMPLETION_ALWAYS, d));
	ends_expect_wc(d->cli, ends_flush_opcode(), d);
}

static void persistent_flush_is_one_request_and_one_answer(void **state)
{
	struct wired w;

	wired_open(&w, NULL);
	for (int i = 0; i < 3; i++) {
		struct relay_count before[RELAY_WAYS];

		memcpy(before, w.base, sizeof(before));
		flush(&w.d, RPMA_FLUSH_TYPE_PERSISTENT, ENDS_BUF);
		expect_fpdus(&w, 1, 1);
		for (int way = 0; way < RELAY_WAYS; way++) { /* one piece for each FPDU */
			assert_int_equal(w.base[way].pieces, before[way].pieces + 1);
			assert_in_range(w.base[way].bytes - before[way].bytes, 1, 64);
		}
	}
	wired_close(&w);
}

static void write_and_flush_are_answered_once(void **state)
{
	struct wired w;

	wired_open(&w, NULL);
	ends_fill(w.d.cli_buf, 4096, 1);
	OK(rpma_write(w.d.cli, w.d.at_srv, 0, w.d.cli_mr, 0, 4096, RPMA_F_COMPLETION_ON_ERROR,
		      NULL));
	flush(&w.d, RPMA_FLUSH_TYPE_PERSISTENT, 4096);
	expect_fpdus(&w, 2, 1);
	assert_true(ends_is_filled(w.d.srv_buf, 4096, 1));
	wired_close(&w);
}

static void write_and_message_need_no_answer(void **state)
{
	struct wired w;

	wired_open(&w, NULL);
	OK(rpma_recv(w.d.srv, w.d.srv_mr, 0, 64, NULL));
	OK(rpma_write(w.d.cli, w.d.at_srv, 64, w.d.cli_mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_send(w.d.cli, w.d.cli_mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &w));
	ends_expect_wc(w.d.cli, IBV_WC_SEND, &w);
	/* the Send's completion does not prove that the relay has passed its bytes */
	ends_expect_received(w.d.srv, 8, NULL);
	expect_fpdus(&w, 2, 0);
	wired_close(&w);
}

static void read_is_one_request_and_its_data(void **state)
{
	struct wired w;

	wired_open(&w, NULL);
	OK(rpma_read(w.d.cli, w.d.cli_mr, 0, w.d.at_srv, 0, 1000, RPMA_F_COMPLETION_ALWAYS, &w));
	ends_expect_wc(w.d.cli, IBV_WC_RDMA_READ, &w);
	expect_fpdus(&w, 1, 1);
	wired_close(&w);
}

static void idle_connection_is_silent(void **state)
{
	struct wired w;

	wired_open(&w, NULL);
	ends_sleep_ms(100);
	expect_fpdus(&w, 0, 0);
	wired_close(&w);
}

static void private_data_travel_unchanged(void **state)
{
	uint8_t ask[28], answer[100];
	struct rpma_conn_private_data to_srv = {ask, sizeof(ask)},
				      to_cli = {answer, sizeof(answer)};
	struct ends_opts opts = {.cli_pdata = &to_srv, .srv_pdata = &to_cli};
	struct wired w;

	ends_fill(ask, sizeof(ask), 1);
	ends_fill(answer, sizeof(answer), 2);
	wired_open(&w, &opts);
	assert_true(relay_saw(&w.relay, RELAY_TO_SERVER, ask, sizeof(ask)));
	assert_true(relay_saw(&w.relay, RELAY_TO_CLIENT, answer, sizeof(answer)));
	assert_int_equal(w.base[RELAY_TO_SERVER].bytes, 20 + 4 + sizeof(ask) + HELLO + ORIGIN);
	assert_int_equal(w.base[RELAY_TO_CLIENT].bytes, 20 + 4 + sizeof(answer) + HELLO);
	wired_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* This test is first, because the Origin of a later connection also names earlier
		 * connections. */
		cmocka_unit_test(private_data_travel_unchanged),
		cmocka_unit_test(persistent_flush_is_one_request_and_one_answer),
		cmocka_unit_test(write_and_flush_are_answered_once),
		cmocka_unit_test(write_and_message_need_no_answer),
		cmocka_unit_test(read_is_one_request_and_its_data),
		cmocka_unit_test(idle_connection_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
