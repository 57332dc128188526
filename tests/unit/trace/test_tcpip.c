/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/trace/flow.h"

static const struct tcpip_end near4 = {{192, 0, 2, 1}, 0x1234}, far4 = {{198, 51, 100, 2}, 7204};
static const struct tcpip_end near6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}, 0x1234},
			      far6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 2}, 7204};

/* The sum of the bytes with their checksum, and of the pseudo header in `more`, must be 0xffff. */
static uint32_t sum(uint32_t more, const uint8_t *p, size_t len)
{
	uint64_t s = more;

	for (size_t i = 0; i < len; i++)
		s += i % 2 ? p[i] : (uint64_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint32_t)s;
}

static void ipv4_and_tcp_match_a_known_packet(void **state)
{
	/* clang-format off */
	static const uint8_t golden[] = {
		0x45, 0, 0, 43, 0, 0, 0x40, 0, 64, 6, 0x4e, 0x96, 192, 0, 2, 1, 198, 51, 100, 2,
		0x12, 0x34, 0x1c, 0x24, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0xff, 0xff, 0xc0, 0xc3, 0, 0,
		'a', 'b', 'c',
	};
	/* clang-format on */
	struct tcpip_segment seg = {false,      &near4,     &far4,
				    0x01020304, 0x05060708, TCP_PSH | TCP_ACK};
	uint8_t buf[sizeof(golden)];

	memcpy(buf + 40, "abc", 3);
	assert_int_equal(tcpip_headers_len(&seg), 40);
	tcpip_encode(buf, &seg, buf + 40, 3);
	assert_memory_equal(buf, golden, sizeof(golden));
}

static void a_syn_carries_mss_and_scale_and_acknowledges_nothing(void **state)
{
	static const uint8_t options[] = {2, 4, 0xff, 0xbb, 3, 3, 14, 1};
	struct tcpip_segment seg = {true, &near6, &far6, 7, 0xffffffff, TCP_SYN};
	uint8_t buf[TCPIP_HEADERS_MAX];

	assert_int_equal(TCPIP_PAYLOAD_MAX, 0xffbb);
	assert_int_equal(tcpip_headers_len(&seg), TCPIP_HEADERS_MAX);
	tcpip_encode(buf, &seg, NULL, 0);
	assert_int_equal(buf[0], 0x60);
	assert_int_equal(buf[5], 28); /* the length without the IPv6 header */
	assert_memory_equal(buf + 8, near6.addr, 16);
	assert_memory_equal(buf + 24, far6.addr, 16);
	assert_memory_equal(buf + 40 + 8, "\0\0\0\0", 4);
	assert_int_equal(buf[40 + 12], 0x70);
	assert_memory_equal(buf + 60, options, sizeof(options));
}

static void checksums_of_all_lengths_are_right(void **state)
{
	static uint8_t buf[TCPIP_HEADERS_MAX + TCPIP_PAYLOAD_MAX];
	static const size_t lens[] = {0, 1, 2, 3, 1447, 65000, TCPIP_PAYLOAD_MAX};
	uint64_t seed = 42;

	for (size_t i = 0; i < ARRAY_LEN(lens); i++)
		for (int v6 = 0; v6 < 2; v6++) {
			struct tcpip_segment seg = {
				v6, v6 ? &near6 : &near4, v6 ? &far6 : &far4, 1, 2, TCP_ACK};
			size_t hdr = tcpip_headers_len(&seg), ip = hdr - 20, tcp = 20 + lens[i];
			uint32_t pseudo;

			for (size_t k = 0; k < lens[i]; k++)
				buf[hdr + k] = (uint8_t)test_random(&seed);
			tcpip_encode(buf, &seg, buf + hdr, lens[i]);
			pseudo = sum(6 + (uint32_t)tcp, buf + (v6 ? 8 : 12), v6 ? 32 : 8);
			assert_int_equal(sum(pseudo, buf + ip, tcp), 0xffff);
			if (!v6)
				assert_int_equal(sum(0, buf, ip), 0xffff);
			assert_int_equal(v6 ? buf[4] << 8 | buf[5] : buf[2] << 8 | buf[3],
					 v6 ? tcp : ip + tcp);
		}
}

/* --- datagrams ------------------------------------------------------------------------------- */

static void an_ipv4_datagram_matches_a_known_packet(void **state)
{
	/* clang-format off */
	static const uint8_t golden[] = {
		0x45, 0x68, 0, 31, 0, 0, 0, 0, 7, 17, 0xc7, 0x2f, 192, 0, 2, 1, 198, 51, 100, 2,
		0x12, 0x34, 0x1c, 0x24, 0, 11, 0x20, 0xe6,
		'a', 'b', 'c',
	};
	/* clang-format on */
	struct udpip_packet p = {.from = near4, .to = far4, .traffic_class = 0x68, .hop_limit = 7};
	uint8_t buf[sizeof(golden)];

	memcpy(buf + 28, "abc", 3);
	assert_int_equal(udpip_headers_len(&p), 28);
	udpip_encode(buf, &p, buf + 28, 3);
	assert_memory_equal(buf, golden, sizeof(golden));
}

static void checksums_of_datagrams_are_right(void **state)
{
	uint8_t buf[UDPIP_HEADERS_MAX + 64];

	for (int v6 = 0; v6 <= 1; v6++) {
		struct udpip_packet p = {.v6 = v6,
					 .from = v6 ? near6 : near4,
					 .to = v6 ? far6 : far4,
					 .traffic_class = 0xff,
					 .hop_limit = 255};
		size_t headers = udpip_headers_len(&p), ip = headers - 8;

		for (size_t len = 0; len <= 64; len++) {
			uint32_t pseudo;

			memset(buf + headers, 0xa5, len);
			udpip_encode(buf, &p, buf + headers, len);
			pseudo = sum(17 + 8 + (uint32_t)len, buf + (v6 ? 8 : 12), v6 ? 32 : 8);
			assert_int_equal(sum(pseudo, buf + ip, 8 + len), 0xffff);
			if (!v6)
				assert_int_equal(sum(0, buf, ip), 0xffff);
		}
	}
}

/* In UDP 0 means "no checksum", so a computed checksum of 0 is written as 0xffff. */
static void a_checksum_of_0_is_written_as_all_ones(void **state)
{
	struct udpip_packet p = {.from = near4, .to = far4};
	uint8_t buf[28 + 2] = {0}, sum_at = 26;
	uint16_t plain;

	udpip_encode(buf, &p, buf + 28, 2);
	plain = (uint16_t)(buf[sum_at] << 8 | buf[sum_at + 1]);
	buf[28] = (uint8_t)(plain >> 8);
	buf[29] = (uint8_t)plain;
	udpip_encode(buf, &p, buf + 28, 2);
	assert_int_equal(buf[sum_at], 0xff);
	assert_int_equal(buf[sum_at + 1], 0xff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_and_tcp_match_a_known_packet),
		cmocka_unit_test(a_syn_carries_mss_and_scale_and_acknowledges_nothing),
		cmocka_unit_test(checksums_of_all_lengths_are_right),
		cmocka_unit_test(an_ipv4_datagram_matches_a_known_packet),
		cmocka_unit_test(checksums_of_datagrams_are_right),
		cmocka_unit_test(a_checksum_of_0_is_written_as_all_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
