/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_decode.c -- Wireshark's dissector, which nobody here has written, understands what we
 * send. With our extensions it knows neither the Flush nor the large FPDUs' reason, but their
 * frames are as well-formed as all others.
 *
 * Expert information that is normal: chats and notes of TCP, which tell that a connection begins
 * and ends. Warnings and errors are not.
 */
#include "system/lib/check.h"

#include "relay.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"

#define BIG         30000
#define SIZE        65536
#define PACKETS_MAX 200

static char file[32]; /* both variants may run at the same time */
static struct remote target;
static struct relay relay;
static bool extended;

static void exchange(void)
{
	static const char word[8] = "12345678";
	struct client c;
	struct ibv_wc wc;

	OK(client_open(&c, SIZE));
	OK(client_connect(&c, relay.port, NULL));
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

/* And one that ends with a Terminate. */
static void exchange_refused(void)
{
	struct client c;

	OK(client_open(&c, SIZE));
	OK(client_connect(&c, relay.port, NULL));
	assert_int_equal(client_read(&c, 0, SIZE - 4, 100, NULL), RPMA_E_UNKNOWN);
	client_drop(&c);
	client_close(&c);
}

/* What tshark says of a packet. Severities: doc of expert information in Wireshark. */
#define WARNING 0x600000

struct packet {
	int len; /* of TCP's payload */
	bool request, reply, malformed, continued;
	char opcodes[64];
	unsigned long worst;
};
static struct packet packet[PACKETS_MAX];
static int n_packets;

static unsigned long worst_of(const char *severities)
{
	unsigned long worst = 0, one;
	char *end;

	for (; *severities; severities = *end ? end + 1 : end) {
		one = strtoul(severities, &end, 10);
		worst = one > worst ? one : worst;
	}
	return worst;
}

static void take_packet(char *line)
{
	struct packet *p = &packet[n_packets++];
	char *field[7] = {0};

	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		field[i] = strsep(&line, "|\n");
	assert_non_null(field[6]);
	p->len = atoi(field[0]);
	p->request = field[1][0] != '\0';
	p->reply = field[2][0] != '\0';
	snprintf(p->opcodes, sizeof(p->opcodes), "%s", field[3]);
	p->malformed = field[4][0] != '\0';
	p->worst = worst_of(field[5]);
	p->continued = field[6][0] != '\0';
}

static void dissect(void)
{
	char command[512], line[1024];
	FILE *p;

	snprintf(
		command, sizeof(command),
		"HOME=/nonexistent tshark -2 -r %s -E separator='|' -T fields -e tcp.len -e iwarp_mpa.req "
		"-e iwarp_mpa.rep -e iwarp_rdma.opcode -e _ws.malformed -e _ws.expert.severity "
		"-e tcp.reassembled_in 2>/dev/null",
		file);
	p = popen(command, "re"); /* without anybody's preferences */
	assert_non_null(p);
	while (n_packets < PACKETS_MAX && fgets(line, sizeof(line), p))
		take_packet(line);
	assert_int_equal(pclose(p), 0);
}

static int start(void **state)
{
	const char *env = getenv("SOFTRNIC_EXTENSIONS");

	extended = !env || strcmp(env, "0") != 0;
	snprintf(file, sizeof(file), "decode-%d.pcap", extended);
	if (system("command -v tshark >/dev/null")) {
		printf("skipped: tshark is not installed\n");
		exit(SKIPPED);
	}
	if (remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:65536:0xff", NULL}, NULL) ||
	    relay_start(&relay, target.port, file))
		return -1;
	exchange();
	exchange_refused();
	relay_stop(&relay);
	dissect();
	return proc_finish(&target.proc);
}

static int stop(void **state)
{
	return unlink(file);
}

static void the_start_up_is_understood(void **state)
{
	int requests = 0, replies = 0;

	for (int i = 0; i < n_packets; i++) {
		requests += packet[i].request;
		replies += packet[i].reply;
	}
	assert_int_equal(requests, 2);
	assert_int_equal(replies, 2);
}

static int messages(unsigned opcode)
{
	char text[8];
	int n = 0;

	snprintf(text, sizeof(text), "0x%02x", opcode);
	for (int i = 0; i < n_packets; i++)
		for (const char *s = packet[i].opcodes; (s = strstr(s, text)); s += 4)
			n++;
	return n;
}

static void every_message_is_understood(void **state)
{
	/* Write, Read Request, Read Response, Send, -, -, -, Terminate, ..., atomic write and Flush
	 * and their answers; the Send comes back. Without the latter two, librpma writes and reads.
	 */
	static const int standard[16] = {3, 3, 2, 2, 0, 0, 0, 1};
	static const int ours[16] = {2, 2, 1, 2, 0, 0, 0, 1, [0xa] = 1, 1, [0xc] = 1, 1};
	const int *want = extended ? ours : standard;

	for (unsigned op = 0; op < 16; op++)
		if (messages(op) != want[op])
			fail_msg("opcode %#x: %d messages instead of %d", op, messages(op),
				 want[op]);
}

static void nothing_is_malformed(void **state)
{
	for (int i = 0; i < n_packets; i++) {
		const struct packet *p = &packet[i];

		assert_false(p->malformed);
		if (p->worst >= WARNING)
			fail_msg("packet %d: expert information %#lx", i + 1, p->worst);
		/* No bytes are left over that only TCP could make something of. */
		if (p->len && !p->request && !p->reply && !p->opcodes[0] && !p->continued)
			fail_msg("packet %d is not understood", i + 1);
	}
}

static void every_crc_is_right(void **state)
{
	char command[256], line[1024];
	int good = 0, bad = 0;
	FILE *p;

	snprintf(command, sizeof(command), "HOME=/nonexistent tshark -2 -r %s -V 2>/dev/null",
		 file);
	p = popen(command, "re");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		if (!strstr(line, "CRC check:"))
			continue;
		good += strstr(line, "(Good CRC32)") != NULL;
		bad += strstr(line, "(Good CRC32)") == NULL;
	}
	assert_int_equal(pclose(p), 0);
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

	return cmocka_run_group_tests(tests, start, stop);
}
