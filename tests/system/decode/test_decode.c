/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_decode.c -- Wireshark's dissector, an independent implementation, decodes everything that
 * softrnic sends. The dissector does not support the extensions, such as Flush, but accepts their
 * frames as well-formed.
 */
#include "system/lib/check.h"

#include "dissect.h"
#include "relay.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"

#define BIG  30000
#define SIZE 65536

static char file[32]; /* a name for each variant, because both can run at the same time */
static struct remote target;
static struct relay relay;
static struct dissection found;
static bool extended;

static void exchange(void)
{
	static const char word[8] = "12345678";
	struct client c;
	struct ibv_wc wc;

	OK(client_begin(&c, SIZE, relay.port));
	memset(c.buf, 0x3c, SIZE);
	OK(client_write(&c, 0, 8, 100, NULL));
	OK(client_write(&c, 0, 4096, BIG, NULL));
	OK(client_read(&c, 0, 4096, BIG, NULL));
	OK(client_flush(&c, 0, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY, NULL));
	OK(rpma_atomic_write(c.conn, c.at[0], 64, word, RPMA_F_COMPLETION_ALWAYS, NULL));
	OK(client_wait_wc(c.cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	OK(client_echo(&c, 33));
	client_disconnect(&c);
	client_close(&c);
}

/* Add a connection that ends with a Terminate. */
static void exchange_refused(void)
{
	struct client c;

	OK(client_begin(&c, SIZE, relay.port));
	assert_int_equal(client_read(&c, 0, SIZE - 4, 100, NULL), RPMA_E_UNKNOWN);
	client_drop(&c);
	client_close(&c);
}

static int start(void **state)
{
	const char *env = getenv("SOFTRNIC_EXTENSIONS");

	extended = !env || strcmp(env, "0") != 0;
	snprintf(file, sizeof(file), "decode-%d.pcapng", extended);
	need_tshark();
	if (remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:65536:0xff", NULL}, NULL) ||
	    relay_start(&relay, target.port, file))
		return -1;
	exchange();
	exchange_refused();
	if (relay_stop(&relay))
		return -1;
	dissect(&found, file);
	return proc_finish(&target.proc);
}

static void the_start_up_is_understood(void **state)
{
	int requests = 0, replies = 0;

	for (int i = 0; i < found.n; i++) {
		requests += found.packet[i].request;
		replies += found.packet[i].reply;
	}
	assert_int_equal(requests, 2);
	assert_int_equal(replies, 2);
}

static void every_message_is_understood(void **state)
{
	/*
	 * FPDUs by opcode: Write, Read Request, Read Response, Send, -, -, -, Terminate, ...,
	 * Extension Request (four HELLOs, Atomic Write, Flush) and its responses. The target sends
	 * the Send back. Without extensions librpma posts Writes and Reads instead of Atomic Writes
	 * and Flushes.
	 */
	static const int standard[16] = {3, 3, 2, 2, 0, 0, 0, 1};
	static const int ours[16] = {2, 2, 1, 2, 0, 0, 0, 1, [0xc] = 4 + 2, 2};
	const int *want = extended ? ours : standard;

	for (unsigned op = 0; op < 16; op++) {
		/*
		 * The dissector skips a HELLO that arrived in one packet with the reply
		 * (doc/wire.md s11).
		 */
		int hidden = extended && op == 0xc ? 2 : 0, n = dissection_count(&found, op);

		if (n > want[op] || n < want[op] - hidden)
			fail_msg("opcode %#x: %d messages instead of %d", op, n, want[op]);
	}
}

static void nothing_is_malformed(void **state)
{
	dissection_expect_no_trouble(&found);
}

static void every_crc_is_right(void **state)
{
	int bad, good = dissection_crcs(file, &bad);

	assert_true(good >= 10);
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_start_up_is_understood),
		cmocka_unit_test(every_message_is_understood),
		cmocka_unit_test(nothing_is_malformed),
		cmocka_unit_test(every_crc_is_right),
	};

	int failed = cmocka_run_group_tests(tests, start, NULL);

	/* After a failure keep the file for inspection. */
	return failed ? failed : unlink(file);
}
