/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_refused_on_the_wire.c -- a forbidden or malformed segment must be answered by the Terminate
 * that the standards (and doc/wire.md) require. No byte must be placed, and other connections must
 * not be affected.
 */
#include "system/lib/check.h"

#include "system/lib/client.h"
#include "system/lib/rawpeer.h"
#include "system/lib/remote.h"

#define SIZE 65536

/* The regions of the target. */
enum { ALL, READ_ONLY, WRITE_ONLY, STRANGE, GONE, REGIONS };

static struct remote target;
static struct client bystander;
static struct raw peer;

static int start(void **state)
{
	static const char *const regions[REGIONS + 1] = {
		[ALL] = "anon:65536:0xff",        [READ_ONLY] = "anon:65536:0x01",
		[WRITE_ONLY] = "anon:65536:0x08", [STRANGE] = "strange:65536:0xff",
		[GONE] = "anon:65536:0xff",
	};

	return remote_start(&target, SYSTEM_TARGET, regions, NULL) ||
	       strcmp(proc_ask(&target.proc, "dereg %d", GONE), "ok") != 0 ||
	       client_open(&bystander, 4096) || client_connect(&bystander, target.port, NULL);
}

static int stop(void **state)
{
	client_close(&bystander);
	return proc_finish(&target.proc);
}

enum op { WRITE, READ, FLUSH };

struct wrong {
	const char *what;
	enum op op;
	int region;
	uint32_t stag_xor;
	int64_t at; /* offset from the begin of the region */
	uint64_t len;
	unsigned error; /* layer, type and code of the Terminate */
};

#define NEAR_THE_TOP ((int64_t)-1) /* an offset so large that the end of the range wraps around */

static const struct wrong wrongs[] = {
	{"write: STag key", WRITE, ALL, 0x01, 0, 8, 0x1100},
	{"write: STag index", WRITE, ALL, 0x5a5a5a00, 0, 8, 0x1100},
	{"write: STag deregistered", WRITE, GONE, 0, 0, 8, 0x1100},
	{"write: one byte behind", WRITE, ALL, 0, SIZE - 7, 8, 0x1101},
	{"write: far behind", WRITE, ALL, 0, 1ll << 40, 8, 0x1101},
	{"write: before", WRITE, ALL, 0, -8, 16, 0x1101},
	{"write: much, one byte behind", WRITE, ALL, 0, SIZE - 59999, 60000, 0x1101},
	{"write: no right", WRITE, READ_ONLY, 0, 0, 8, 0x0102},
	{"write: other domain", WRITE, STRANGE, 0, 0, 8, 0x1102},
	{"write: wraps", WRITE, ALL, 0, NEAR_THE_TOP, 8, 0x1103},
	{"read: STag key", READ, ALL, 0x01, 0, 8, 0x0100},
	{"read: STag deregistered", READ, GONE, 0, 0, 8, 0x0100},
	{"read: one byte behind", READ, ALL, 0, SIZE - 7, 8, 0x0101},
	{"read: before", READ, ALL, 0, -8, 16, 0x0101},
	{"read: no right", READ, WRITE_ONLY, 0, 0, 8, 0x0102},
	{"read: other domain", READ, STRANGE, 0, 0, 8, 0x0103},
	{"read: wraps", READ, ALL, 0, NEAR_THE_TOP, 8, 0x0104},
	{"flush: STag key", FLUSH, ALL, 0x01, 0, 8, 0x0100},
	{"flush: STag deregistered", FLUSH, GONE, 0, 0, 8, 0x0100},
	{"flush: one byte behind", FLUSH, ALL, 0, SIZE - 7, 8, 0x0101},
	{"flush: longer than any region", FLUSH, ALL, 0, 0, 1ull << 63, 0x0101},
	{"flush: no right", FLUSH, WRITE_ONLY, 0, 0, 8, 0x0102},
	{"flush: other domain", FLUSH, STRANGE, 0, 0, 8, 0x0103},
	{"flush: wraps", FLUSH, ALL, 0, NEAR_THE_TOP, 8, 0x0104},
};

static uint64_t address(const struct wrong *w)
{
	return w->at == NEAR_THE_TOP ? UINT64_MAX - 3
				     : peer.region[w->region].addr + (uint64_t)w->at;
}

static int commit(const struct wrong *w)
{
	static const uint8_t bytes[SIZE] = {[0 ... SIZE - 1] = 0xee};
	uint32_t stag = peer.region[w->region].stag ^ w->stag_xor;

	switch (w->op) {
	case WRITE:
		return raw_write(&peer, stag, address(w), bytes, w->len);
	case READ:
		return raw_read(&peer, stag, address(w), (uint32_t)w->len);
	default:
		return raw_flush(&peer, stag, address(w), w->len, EXT_FLUSH_VISIBLE);
	}
}

/* RFC 5040 s4.8: the Terminate contains the headers of the refused segment. */
static void expect_echo(const struct wrong *w, const struct terminate *t)
{
	if (w->op == WRITE) {
		assert_true(t->has_ddp);
		assert_int_equal(t->ddp.stag, peer.region[w->region].stag ^ w->stag_xor);
		assert_int_equal(t->ddp.to, address(w));
	} else if (w->op == READ) {
		assert_true(t->has_read_req);
		assert_int_equal(t->read_req.src_stag, peer.region[w->region].stag ^ w->stag_xor);
		assert_int_equal(t->read_req.src_to, address(w));
	}
}

static void expect_untouched(void)
{
	for (int i = 0; i < REGIONS; i++)
		for (int at = 0; at < SIZE; at += SIZE - 16)
			assert_string_equal(proc_ask(&target.proc, "peek %d %d 16", i, at),
					    "00000000000000000000000000000000");
}

static void bystander_goes_on(void)
{
	memset(bystander.buf, 0, 64);
	OK(client_write(&bystander, ALL, 0, 64, NULL));
	OK(client_flush(&bystander, ALL, 0, 64, RPMA_FLUSH_TYPE_VISIBILITY, NULL));
	OK(client_read(&bystander, ALL, 0, 64, NULL));
	OK(client_echo(&bystander, 32));
}

static void refuse_all(unsigned options)
{
	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		const struct wrong *w = &wrongs[i];
		struct terminate t;
		int error;

		assert_int_equal(raw_connect(&peer, target.port, options), 0);
		assert_int_equal(peer.n_regions, REGIONS);
		assert_int_equal(commit(w), 0);
		error = raw_expect_terminate(&peer, &t);
		if (error != (int)w->error)
			fail_msg("%s: %#x instead of %#x", w->what, (unsigned)error, w->error);
		expect_echo(w, &t);
		assert_int_equal(raw_expect_end(&peer, RAW_WAIT_MS), 0);
		raw_close(&peer);
		bystander_goes_on();
	}
	expect_untouched();
	assert_int_equal(remote_wait_conns(&target, 1, 20000), 0);
}

static void wrong_accesses_are_refused(void **state)
{
	refuse_all(RAW_EXTENSIONS);
}

static void wrong_accesses_are_refused_with_crc(void **state)
{
	refuse_all(RAW_EXTENSIONS | RAW_CRC);
}

/* Bytes before the refused segment are placed, bytes after it are not. */
static void a_write_after_a_refused_one_is_not_placed(void **state)
{
	static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct raw_region *all = &peer.region[ALL];

	assert_int_equal(raw_connect(&peer, target.port, RAW_EXTENSIONS), 0);
	assert_int_equal(raw_write(&peer, all->stag, all->addr + 128, bytes, 16), 0);
	assert_int_equal(raw_write(&peer, all->stag ^ 1, all->addr + 256, bytes, 16), 0);
	raw_write(&peer, all->stag, all->addr + 384, bytes, 16);
	assert_int_equal(raw_expect_terminate(&peer, NULL), 0x1100);
	raw_close(&peer);
	assert_string_equal(proc_ask(&target.proc, "peek 0 128 9"), "010203040506070800");
	assert_string_equal(proc_ask(&target.proc, "peek 0 256 9"), "000000000000000000");
	assert_string_equal(proc_ask(&target.proc, "peek 0 384 9"), "000000000000000000");
	bystander_goes_on();
}

struct malformed {
	const char *what;
	unsigned options;
	struct ddp_hdr hdr;
	size_t len;
	unsigned error;
};

#define CTRL(version, op) ((uint8_t)((version) << 6 | (op)))

static const struct malformed malformed[] = {
	{"send with immediate without consent",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xe), .qn = 0},
	 8,
	 0x0206},
	{"flush without consent",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xc), .qn = 1},
	 24,
	 0x0206},
	{"heartbeat without consent",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xc), .qn = 4},
	 16,
	 0x1201},
	{"unassigned opcode",
	 RAW_EXTENSIONS,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xf), .qn = 4},
	 16,
	 0x0206},
	{"extension request of kind 0",
	 RAW_EXTENSIONS,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xc), .qn = 1},
	 24,
	 0x0206},
	{"extension response of kind 0",
	 RAW_EXTENSIONS,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xd), .qn = 3},
	 8,
	 0x0207},
	{"extension request of 3 bytes",
	 RAW_EXTENSIONS,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xc), .qn = 1},
	 3,
	 0x0207},
	{"immediate data without consent",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0x8), .qn = 0},
	 8,
	 0x0206},
	{"atomic of a region that is not there",
	 RAW_EXTENSIONS,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xa), .qn = 1},
	 52,
	 0x0100},
	{"atomic without consent",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0xa), .qn = 1},
	 52,
	 0x0206},
	{"send in a tagged segment",
	 0,
	 {.tagged = true, .last = true, .version = 1, .ulp = CTRL(1, 0x3)},
	 8,
	 0x0206},
	{"read response that nobody asked for",
	 0,
	 {.tagged = true, .last = true, .version = 1, .ulp = CTRL(1, 0x2)},
	 8,
	 0},
	{"RDMAP version", 0, {.last = true, .version = 1, .ulp = CTRL(2, 0x3), .qn = 0}, 8, 0x0205},
	{"DDP version, untagged",
	 0,
	 {.last = true, .version = 2, .ulp = CTRL(1, 0x3), .qn = 0},
	 8,
	 0x1206},
	{"DDP version, tagged",
	 0,
	 {.tagged = true, .last = true, .version = 3, .ulp = CTRL(1, 0x0)},
	 8,
	 0x1104},
	{"queue number", 0, {.last = true, .version = 1, .ulp = CTRL(1, 0x3), .qn = 9}, 8, 0x1201},
	{"MSN of the future",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0x3), .qn = 0, .msn = 7},
	 8,
	 0x1203},
	{"MO of the future",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0x3), .qn = 0, .msn = 1, .mo = 64},
	 8,
	 0x1204},
	{"message longer than its receive",
	 0,
	 {.last = true, .version = 1, .ulp = CTRL(1, 0x3), .qn = 0, .msn = 1},
	 65,
	 0x1205},
};

static void malformed_segments_are_refused(void **state)
{
	static const uint8_t zeros[128];

	for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
		const struct malformed *m = &malformed[i];
		int error;

		assert_int_equal(raw_connect(&peer, target.port, m->options), 0);
		assert_int_equal(raw_segment(&peer, &m->hdr, zeros, m->len), 0);
		error = raw_expect_terminate(&peer, NULL);
		/* error 0: the standards permit any error. */
		if (m->error ? error != (int)m->error : error < 0)
			fail_msg("%s: %#x instead of %#x", m->what, (unsigned)error, m->error);
		raw_close(&peer);
	}
	bystander_goes_on();
}

static void send_write_with_wrong_crc(void)
{
	uint8_t ulpdu[DDP_TAGGED_HDR + 16];
	struct ddp_hdr hdr = {
		.tagged = true, .last = true, .version = 1, .ulp = rdmap_ctrl(RDMAP_WRITE)};

	hdr.stag = peer.region[ALL].stag;
	hdr.to = peer.region[ALL].addr + 512;
	memset(ulpdu, 0x99, sizeof(ulpdu));
	ddp_encode(ulpdu, sizeof(ulpdu), &hdr);
	assert_int_equal(raw_fpdu(&peer, ulpdu, sizeof(ulpdu), true), 0);
}

static void a_wrong_crc_is_refused_and_nothing_is_placed(void **state)
{
	assert_int_equal(raw_connect(&peer, target.port, RAW_CRC), 0);
	assert_true(peer.crc);
	assert_int_equal(raw_write(&peer, 1, 0, NULL, 0), 0);
	send_write_with_wrong_crc();
	assert_int_equal(raw_expect_terminate(&peer, NULL), 0x2002);
	raw_close(&peer);
	assert_string_equal(proc_ask(&target.proc, "peek 0 512 4"), "00000000");
	bystander_goes_on();
}

/* RFC 5044 s7.1.2: a responder sends nothing before it has received a valid FPDU. */
static void a_first_fpdu_with_wrong_crc_ends_in_silence(void **state)
{
	assert_int_equal(raw_connect(&peer, target.port, RAW_CRC), 0);
	send_write_with_wrong_crc();
	assert_int_equal(raw_expect_end(&peer, RAW_WAIT_MS), 0);
	raw_close(&peer);
	bystander_goes_on();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_accesses_are_refused),
		cmocka_unit_test(wrong_accesses_are_refused_with_crc),
		cmocka_unit_test(a_write_after_a_refused_one_is_not_placed),
		cmocka_unit_test(malformed_segments_are_refused),
		cmocka_unit_test(a_wrong_crc_is_refused_and_nothing_is_placed),
		cmocka_unit_test(a_first_fpdu_with_wrong_crc_ends_in_silence),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
