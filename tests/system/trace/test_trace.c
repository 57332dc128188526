/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trace.c -- both ends of connections write traces. Wireshark's dissector decodes both traces,
 * which must contain the same bytes.
 */
#include "system/lib/check.h"

#include "lib/packets.h"
#include "system/decode/dissect.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"

#define BIG  (3 * MIB)
#define SIZE (4 * MIB)

enum { OURS, THEIRS };
static char file[2][64];
static struct dissection found[2];
static struct remote target;
static bool extended, crc;

static void expect_success(struct client *c)
{
	struct ibv_wc wc;

	OK(client_wait_wc(c->cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void use_extensions(struct client *c)
{
	struct rpma_digest digest;
	struct ibv_wc wc;

	OK(rpma_verify(c->conn, c->at[0], 0, 8192, RPMA_DIGEST_AUTO, &digest,
		       RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_success(c);
	OK(rpma_recv(c->conn, c->mr, SIZE / 2, 64, NULL));
	OK(rpma_send_with_imm(c->conn, c->mr, 0, 33, RPMA_F_COMPLETION_ALWAYS, 1234, NULL));
	expect_success(c);
	expect_success(c);
	/* During this time both ends are idle, and send heartbeats. */
	usleep(2500000);
	assert_int_equal(client_wait_wc(c->cq, &wc, 0), CLIENT_TIMEOUT);
}

static void exchange(void)
{
	static const char word[8] = "12345678";
	struct client c;

	OK(client_begin(&c, SIZE, target.port));
	for (size_t i = 0; i < SIZE; i++)
		c.buf[i] = (uint8_t)(i * 2654435761u >> 13);
	OK(client_write(&c, 0, 8, 100, NULL));
	OK(client_write(&c, 0, 4096, BIG, NULL));
	OK(client_read(&c, 0, 4096, BIG, NULL));
	OK(client_flush(&c, 0, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY, NULL));
	OK(rpma_atomic_write(c.conn, c.at[0], 64, word, RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_success(&c);
	OK(client_echo(&c, 33));
	if (extended)
		use_extensions(&c);
	client_disconnect(&c);
	client_close(&c);
}

/* Add a connection that ends with a Terminate. */
static void exchange_refused(void)
{
	struct client c;

	OK(client_begin(&c, SIZE, target.port));
	assert_int_equal(client_read(&c, 0, SIZE - 4, 100, NULL), RPMA_E_UNKNOWN);
	client_drop(&c);
	client_close(&c);
}

static int start(void **state)
{
	char env[128];

	need_tshark();
	extended = strcmp(getenv("SOFTRNIC_EXTENSIONS"), "0") != 0;
	crc = !strcmp(getenv("SOFTRNIC_CRC"), "on");
	for (int i = 0; i < 2; i++) {
		snprintf(file[i], sizeof(file[i]), "trace-%d-%d-%d.pcapng", extended, crc, i);
		unlink(file[i]);
	}
	setenv("SOFTRNIC_TRACE", file[OURS], 1);
	snprintf(env, sizeof(env), "SOFTRNIC_TRACE=%s", file[THEIRS]);
	if (remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:4194304:0xff", NULL},
			 (const char *[]){env, NULL}))
		return -1;
	exchange();
	exchange_refused();
	if (remote_wait_conns(&target, 0, CLIENT_WAIT_MS) || proc_finish(&target.proc))
		return -1;
	dissect(&found[OURS], file[OURS]);
	dissect(&found[THEIRS], file[THEIRS]);
	return 0;
}

static void the_start_up_is_understood(void **state)
{
	for (int end = 0; end < 2; end++) {
		int requests = 0, replies = 0;

		for (int i = 0; i < found[end].n; i++) {
			requests += found[end].packet[i].request;
			replies += found[end].packet[i].reply;
		}
		assert_int_equal(requests, 2);
		assert_int_equal(replies, 2);
	}
}

static void messages_are_understood(void **state)
{
	static const unsigned standard[] = {0, 1, 2, 3, 7};
	/* The opcodes of Extension Request, Extension Response, and Send with immediate data. */
	static const unsigned ours[] = {0xc, 0xd, 0xe};

	for (int end = 0; end < 2; end++) {
		for (size_t i = 0; i < ARRAY_LEN(standard); i++)
			assert_true(dissection_count(&found[end], standard[i]) > 0);
		for (size_t i = 0; i < ARRAY_LEN(ours); i++)
			assert_int_equal(dissection_count(&found[end], ours[i]) > 0, extended);
	}
}

static void nothing_is_malformed(void **state)
{
	dissection_expect_no_trouble(&found[OURS]);
	dissection_expect_no_trouble(&found[THEIRS]);
}

static void crcs_are_right_where_there_are_some(void **state)
{
	for (int end = 0; end < 2; end++) {
		int bad, good = dissection_crcs(file[end], &bad);

		assert_int_equal(bad, 0);
		assert_int_equal(good > 10, crc);
	}
}

/* Copy the bytes that one end of a connection has sent, from the packets of a trace. */
static size_t said(const struct packets *p, uint16_t sport, uint16_t dport, uint8_t *bytes)
{
	size_t len = 0;

	for (unsigned i = 0; i < p->n; i++) {
		const struct packet *k = &p->all[i];

		if (k->sport != sport || k->dport != dport)
			continue;
		if (bytes && k->len)
			memcpy(bytes + len, k->data, k->len);
		len += k->len;
	}
	return len;
}

static void expect_same(const struct packets p[2], uint16_t sport, uint16_t dport)
{
	size_t len = said(&p[OURS], sport, dport, NULL);
	uint8_t *a = test_malloc(len), *b = test_malloc(len);

	assert_true(len > 0);
	assert_int_equal(said(&p[THEIRS], sport, dport, NULL), len);
	said(&p[OURS], sport, dport, a);
	said(&p[THEIRS], sport, dport, b);
	assert_memory_equal(a, b, len);
	test_free(a);
	test_free(b);
}

static void both_traces_have_the_same_bytes(void **state)
{
	uint16_t to = (uint16_t)atoi(target.port);
	struct packets p[2];
	int conns = 0;

	for (int end = 0; end < 2; end++)
		assert_int_equal(packets_load(&p[end], file[end]), 0);
	for (unsigned i = 0; i < p[OURS].n; i++) {
		if (!strstr(p[OURS].all[i].comment, "initiator, "))
			continue;
		conns++;
		expect_same(p, p[OURS].all[i].sport, to);
		expect_same(p, to, p[OURS].all[i].sport);
	}
	assert_int_equal(conns, 2);
	packets_fini(&p[OURS]);
	packets_fini(&p[THEIRS]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_start_up_is_understood),
		cmocka_unit_test(messages_are_understood),
		cmocka_unit_test(nothing_is_malformed),
		cmocka_unit_test(crcs_are_right_where_there_are_some),
		cmocka_unit_test(both_traces_have_the_same_bytes),
	};

	int failed = cmocka_run_group_tests(tests, start, NULL);

	/* After a failure keep the files for inspection. */
	if (!failed)
		failed = unlink(file[OURS]) | unlink(file[THEIRS]);
	return failed;
}
