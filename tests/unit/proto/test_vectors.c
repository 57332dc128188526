/* SPDX-License-Identifier: BSD-3-Clause */
/* The examples of frames and FPDUs in doc/wire.md, section 9, byte for byte. */
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/ext_origin.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/proto/terminate.h"

#define STAG 0x12345600u
#define TO   0x7f0011223340ull

static const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static size_t bytes_of(const char *hex, uint8_t *to)
{
	char *end;
	size_t n = 0;

	for (; *hex; hex = end, n++)
		to[n] = (uint8_t)strtoul(hex, &end, 16);
	return n;
}

static struct ddp_hdr untagged(uint8_t opcode, uint32_t qn, uint32_t msn)
{
	return (struct ddp_hdr){.last = true,
				.version = DDP_VERSION,
				.ulp = (uint8_t)(RDMAP_VERSION << 6 | opcode),
				.qn = qn,
				.msn = msn};
}

/* The FPDU of this header and payload must equal the one in the document. */
static void assert_fpdu(const struct ddp_hdr *hdr, const void *payload, size_t len, const char *hex)
{
	uint8_t expected[256], fpdu[256] = {0};
	size_t n = bytes_of(hex, expected), hdr_len = ddp_hdr_len(hdr->tagged);
	size_t ulpdu = hdr_len + len, whole = mpa_fpdu_len(ulpdu);
	struct iovec covered = {.iov_base = fpdu, .iov_len = whole - MPA_CRC_LEN};

	assert_true(whole <= sizeof(fpdu));
	fpdu[0] = (uint8_t)(ulpdu >> 8);
	fpdu[1] = (uint8_t)ulpdu;
	assert_int_equal(ddp_encode(fpdu + MPA_LENGTH_LEN, hdr_len, hdr), hdr_len);
	memcpy(fpdu + MPA_LENGTH_LEN + hdr_len, payload, len);
	mpa_crc_encode(fpdu + covered.iov_len, mpa_crc(&covered, 1, covered.iov_len));
	assert_int_equal(whole, n);
	assert_memory_equal(fpdu, expected, n);
}

static void assert_request(const void *payload, int len, const char *hex)
{
	struct ddp_hdr hdr = untagged(0xc, DDP_QN_REQUEST, 1);

	assert_fpdu(&hdr, payload, (size_t)len, hex);
}

static void assert_answer(uint8_t kind, uint32_t status, uint32_t detail, const char *hex)
{
	struct ddp_hdr hdr = untagged(0xd, DDP_QN_RESPONSE, 1);
	struct ext_answer answer = {{kind, status}, detail};
	uint8_t bytes[EXT_ANSWER_LEN];

	assert_int_equal(ext_answer_encode(bytes, sizeof(bytes), &answer), sizeof(bytes));
	assert_fpdu(&hdr, bytes, sizeof(bytes), hex);
}

static void assert_range(uint8_t kind, uint32_t arg, uint64_t len, const char *hex)
{
	struct ext_range req = {{kind, arg}, STAG, TO, len};
	uint8_t bytes[EXT_RANGE_LEN];

	assert_request(bytes, ext_range_encode(bytes, sizeof(bytes), &req), hex);
}

static void a_write(void **state)
{
	struct ddp_hdr hdr = {.tagged = true,
			      .last = true,
			      .version = DDP_VERSION,
			      .ulp = rdmap_ctrl(RDMAP_WRITE),
			      .stag = STAG,
			      .to = TO};

	assert_fpdu(&hdr, data, sizeof(data),
		    "00 16 c1 40 12 34 56 00 00 00 7f 00 11 22 33 40 "
		    "01 02 03 04 05 06 07 08 80 41 4f d6");
}

static void a_hello(void **state)
{
	struct ext_hello hello = {.major = EXT_HELLO_MAJOR,
				  .kinds = EXT_BIT(EXT_FLUSH) | EXT_BIT(EXT_FLUSH_ALL) |
					   EXT_BIT(EXT_VERIFY) | EXT_BIT(EXT_QUERY) |
					   EXT_BIT(EXT_ATOMIC_WRITE),
				  .limit_ms = 15000,
				  .max_ulpdu = MPA_ULPDU_MAX};
	struct ddp_hdr hdr = untagged(0xc, 4, 1);
	uint8_t bytes[EXT_HELLO_LEN];

	assert_int_equal(ext_hello_encode(bytes, sizeof(bytes), &hello), sizeof(bytes));
	assert_fpdu(&hdr, bytes, sizeof(bytes),
		    "00 3a 41 4c 00 00 00 00 00 00 00 04 00 00 00 01 "
		    "00 00 00 00 01 00 00 00 00 01 00 04 00 02 00 00 "
		    "00 02 00 08 00 00 00 00 00 00 00 f8 00 03 00 04 "
		    "00 00 3a 98 00 04 00 04 00 00 fd 00 04 83 f2 71");
}

static void origins(void **state)
{
	struct ext_origin ask = {.asks = true, .limit_ms = 5000, .serial = 9, .n = 2},
			  last = {.serial = 9};
	struct ext_answer answer = {{EXT_ORIGIN, EXT_ORIGIN_CUT}, 0};
	struct ddp_hdr request = untagged(0xc, 4, 2), response = untagged(0xd, 4, 2),
		       next = untagged(0xc, 4, 3);
	uint8_t bytes[EXT_ORIGIN_LEN + 2 * EXT_ORIGIN_RANGE_LEN];

	for (uint8_t i = 0; i < EXT_ID_LEN; i++)
		ask.id[i] = last.id[i] = i;
	ask.ranges[0] = (struct ext_range_of_serials){1, 3};
	ask.ranges[1] = (struct ext_range_of_serials){5, 5};
	assert_int_equal(ext_origin_encode(bytes, sizeof(bytes), &ask), sizeof(bytes));
	assert_fpdu(&request, bytes, sizeof(bytes),
		    "00 62 41 4c 00 00 00 00 00 00 00 04 00 00 00 02 "
		    "00 00 00 00 09 00 02 01 00 00 13 88 00 00 00 00 "
		    "00 00 00 09 00 01 02 03 04 05 06 07 08 09 0a 0b "
		    "0c 0d 0e 0f 00 00 00 00 00 00 00 00 00 00 00 00 "
		    "00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 "
		    "00 00 00 03 00 00 00 00 00 00 00 05 00 00 00 00 "
		    "00 00 00 05 19 27 79 f5");
	assert_int_equal(ext_answer_encode(bytes, sizeof(bytes), &answer), EXT_ANSWER_LEN);
	assert_fpdu(&response, bytes, EXT_ANSWER_LEN,
		    "00 1a 41 4d 00 00 00 00 00 00 00 04 00 00 00 02 "
		    "00 00 00 00 09 00 00 00 00 00 00 00 3b bc 60 79");
	assert_int_equal(ext_origin_encode(bytes, sizeof(bytes), &last), EXT_ORIGIN_LEN);
	assert_fpdu(&next, bytes, EXT_ORIGIN_LEN,
		    "00 42 41 4c 00 00 00 00 00 00 00 04 00 00 00 03 "
		    "00 00 00 00 09 00 00 00 00 00 00 00 00 00 00 00 "
		    "00 00 00 09 00 01 02 03 04 05 06 07 08 09 0a 0b "
		    "0c 0d 0e 0f 00 00 00 00 00 00 00 00 00 00 00 00 "
		    "00 00 00 00 4d e0 fe cc");
}

static void acks(void **state)
{
	struct ext_ack ack = {{EXT_ACK, 0}, 0x0102030405060708};
	struct ddp_hdr hdr = untagged(0xc, 4, 2);
	uint8_t bytes[EXT_ACK_LEN];

	assert_int_equal(ext_ack_encode(bytes, sizeof(bytes), &ack), sizeof(bytes));
	assert_fpdu(&hdr, bytes, sizeof(bytes),
		    "00 1e 41 4c 00 00 00 00 00 00 00 04 00 00 00 02 "
		    "00 00 00 00 0b 00 00 00 01 02 03 04 05 06 07 08 e0 ff 50 6f");
}

static void heartbeats(void **state)
{
	struct ext_heartbeat ping = {{EXT_HEARTBEAT, 0}, 0, 0x0102030405060708};
	struct ddp_hdr request = untagged(0xc, 4, 2), response = untagged(0xd, 4, 2);
	uint8_t bytes[EXT_HEARTBEAT_LEN];

	assert_int_equal(ext_heartbeat_encode(bytes, sizeof(bytes), &ping), sizeof(bytes));
	assert_fpdu(&request, bytes, sizeof(bytes),
		    "00 22 41 4c 00 00 00 00 00 00 00 04 00 00 00 02 "
		    "00 00 00 00 02 00 00 00 00 00 00 00 01 02 03 04 "
		    "05 06 07 08 67 1b 50 cf");
	assert_fpdu(&response, bytes, sizeof(bytes),
		    "00 22 41 4d 00 00 00 00 00 00 00 04 00 00 00 02 "
		    "00 00 00 00 02 00 00 00 00 00 00 00 01 02 03 04 "
		    "05 06 07 08 48 30 69 95");
}

static void a_flush_and_its_answers(void **state)
{
	assert_range(EXT_FLUSH, EXT_FLUSH_PERSIST, 4096,
		     "00 2a 41 4c 00 00 00 00 00 00 00 01 00 00 00 01 "
		     "00 00 00 00 03 00 00 01 12 34 56 00 00 00 7f 00 "
		     "11 22 33 40 00 00 00 00 00 00 10 00 1c 8e 10 ad");
	assert_answer(EXT_FLUSH, EXT_OK, 0,
		      "00 1a 41 4d 00 00 00 00 00 00 00 03 00 00 00 01 "
		      "00 00 00 00 03 00 00 00 00 00 00 00 6c 69 07 62");
	assert_answer(EXT_FLUSH, EXT_FAILED, 28,
		      "00 1a 41 4d 00 00 00 00 00 00 00 03 00 00 00 01 "
		      "00 00 00 00 03 00 00 01 00 00 00 1c 7f 0e 0b 07");
}

static void a_flush_of_everything(void **state)
{
	struct ext_word word = {EXT_FLUSH_ALL, EXT_FLUSH_PERSIST};
	uint8_t bytes[EXT_ALL_LEN];

	assert_request(bytes, ext_word_encode(bytes, sizeof(bytes), &word),
		       "00 16 41 4c 00 00 00 00 00 00 00 01 00 00 00 01 "
		       "00 00 00 00 04 00 00 01 f9 31 1d ba");
}

static void a_verify_and_its_digest(void **state)
{
	struct ddp_hdr hdr = untagged(0xd, DDP_QN_RESPONSE, 1);
	struct ext_answer answer = {.word = {.kind = EXT_VERIFY}};
	struct vext_digest digest = {.source = 2,
				     .durability = VEXT_DURABILITY_FILE,
				     .alg = VEXT_DIGEST_CRC32C,
				     .len = sizeof(data)};
	uint8_t bytes[EXT_ANSWER_LEN + EXT_DIGEST_LEN];
	struct wcursor c = wcursor_init(bytes, sizeof(bytes));
	uint32_t crc = crc32c_final(crc32c_update(CRC32C_INIT, data, sizeof(data)));

	for (int i = 0; i < 4; i++)
		digest.bytes[i] = (uint8_t)(crc >> (24 - 8 * i));
	ext_answer_put(&c, &answer);
	ext_digest_put(&c, &digest);
	assert_false(c.bad);
	assert_range(EXT_VERIFY, EXT_FLUSH_PERSIST | EXT_VERIFY_ALG(VEXT_DIGEST_CRC32C), 8,
		     "00 2a 41 4c 00 00 00 00 00 00 00 01 00 00 00 01 "
		     "00 00 00 00 05 00 01 01 12 34 56 00 00 00 7f 00 "
		     "11 22 33 40 00 00 00 00 00 00 00 08 d1 dd 8d d7");
	assert_fpdu(&hdr, bytes, sizeof(bytes),
		    "00 4a 41 4d 00 00 00 00 00 00 00 03 00 00 00 01 "
		    "00 00 00 00 05 00 00 00 00 00 00 00 00 00 00 02 "
		    "00 00 00 02 00 00 00 01 00 00 00 08 46 89 1f 81 "
		    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
		    "00 00 00 00 00 00 00 00 00 00 00 00 52 e2 91 fb");
}

static void a_query_and_its_answer(void **state)
{
	assert_range(EXT_QUERY, 0, 4096,
		     "00 2a 41 4c 00 00 00 00 00 00 00 01 00 00 00 01 "
		     "00 00 00 00 06 00 00 00 12 34 56 00 00 00 7f 00 "
		     "11 22 33 40 00 00 00 00 00 00 10 00 a5 d6 b2 f8");
	assert_answer(EXT_QUERY, EXT_OK, VEXT_DURABILITY_FILE,
		      "00 1a 41 4d 00 00 00 00 00 00 00 03 00 00 00 01 "
		      "00 00 00 00 06 00 00 00 00 00 00 02 d1 e6 1d eb");
}

static void an_atomic_write_and_its_answer(void **state)
{
	struct ext_atomic_write req = {{EXT_ATOMIC_WRITE, 0}, STAG, TO, {1, 2, 3, 4, 5, 6, 7, 8}};
	uint8_t bytes[EXT_ATOMIC_WRITE_LEN];

	assert_request(bytes, ext_atomic_write_encode(bytes, sizeof(bytes), &req),
		       "00 2a 41 4c 00 00 00 00 00 00 00 01 00 00 00 01 "
		       "00 00 00 00 07 00 00 00 12 34 56 00 00 00 7f 00 "
		       "11 22 33 40 01 02 03 04 05 06 07 08 a1 48 99 b7");
	assert_answer(EXT_ATOMIC_WRITE, EXT_OK, 0,
		      "00 1a 41 4d 00 00 00 00 00 00 00 03 00 00 00 01 "
		      "00 00 00 00 07 00 00 00 00 00 00 00 01 eb 1a 43");
}

static void a_terminate(void **state)
{
	struct terminate term = terminate_of(TERM_RDMAP_UNEXPECTED_OPCODE);
	struct ddp_hdr hdr = untagged(RDMAP_TERMINATE, DDP_QN_TERMINATE, 1);
	uint8_t bytes[TERM_MAX_LEN];
	int len = terminate_encode(bytes, sizeof(bytes), &term);

	assert_true(len > 0);
	assert_fpdu(&hdr, bytes, (size_t)len,
		    "00 16 41 47 00 00 00 00 00 00 00 02 00 00 00 01 "
		    "00 00 00 00 02 06 00 00 6f 77 b9 73");
}

/* `hex` has the bytes after the key. */
static void assert_start(const struct mpa_start *start, const void *pdata, const char *hex)
{
	uint8_t expected[64], frame[MPA_START_MAX];
	size_t n = bytes_of(hex, expected);

	assert_int_equal(mpa_start_encode(frame, sizeof(frame), start, pdata), 16 + n);
	assert_memory_equal(frame + 16, expected, n);
}

static void start_up_frames(void **state)
{
	struct mpa_start native = {.crc = true,
				   .enhanced = true,
				   .revision = 2,
				   .rtr_send = true,
				   .rtr_write = true,
				   .rtr_read = true,
				   .ird = 128,
				   .ord = 128};
	struct mpa_start reading = native, greeting = native, p2p = native, old = {.crc = true};

	assert_start(&native, NULL, "50 02 00 04 40 80 c0 80");
	reading.reply = true;
	reading.rtr_send = true;
	reading.rtr_write = reading.rtr_read = false;
	assert_start(&reading, NULL, "50 02 00 04 40 80 00 80");
	greeting.crc = false;
	greeting.pd_len = 2;
	assert_start(&greeting, "hi", "10 02 00 06 40 80 c0 80 68 69");
	p2p.p2p = true;
	p2p.rtr_send = false;
	assert_start(&p2p, NULL, "50 02 00 04 80 80 c0 80");
	old.revision = 1;
	assert_start(&old, NULL, "40 01 00 00");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_up_frames),
		cmocka_unit_test(a_write),
		cmocka_unit_test(a_hello),
		cmocka_unit_test(origins),
		cmocka_unit_test(acks),
		cmocka_unit_test(heartbeats),
		cmocka_unit_test(a_flush_and_its_answers),
		cmocka_unit_test(a_flush_of_everything),
		cmocka_unit_test(a_verify_and_its_digest),
		cmocka_unit_test(a_query_and_its_answer),
		cmocka_unit_test(an_atomic_write_and_its_answer),
		cmocka_unit_test(a_terminate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
