/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_persist.c -- every way to flush persistently; the test checks which pages are still dirty.
 *
 * The test uses a file on a real file system, in the configuration that users get. Reading the
 * bytes proves nothing, because a direct read first writes the dirty pages back. So the test checks
 * the mapping's dirty pages, which the write must produce and the flush must clean, and counts the
 * target's write-backs. Each new way to complete a persistent flush must be added to the table.
 */
#include <stdio.h>

#include "ends_ext.h"

#include <unistd.h>

enum { LEN = 16384, SQ = 8 };

/* Returns the dirty kilobytes of the mapping: those that the kernel has not written to the file. */
static size_t dirty_kb(const struct ends_file *f)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	size_t begin, end, kb, sum = 0;
	bool is_ours = false;
	char line[512];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%zx-%zx ", &begin, &end) == 2)
			is_ours = begin >= (size_t)f->map && end <= (size_t)f->map + f->size;
		else if (is_ours && (sscanf(line, "Shared_Dirty: %zu", &kb) == 1 ||
				     sscanf(line, "Private_Dirty: %zu", &kb) == 1))
			sum += kb;
	}
	fclose(smaps);
	return sum;
}

struct scene {
	struct ends d;
	struct ends_file file;
	struct rpma_conn *writer; /* the end that writes: client or server */
	struct rpma_mr_local *src;
	struct rpma_batch *batch; /* NULL until the batch is described */
};

/* --- ways to flush -------------------------------------------------------------------------- */

static void post_write(struct scene *s)
{
	OK(rpma_write(s->writer, s->file.remote, 0, s->src, 0, LEN, RPMA_F_COMPLETION_ON_ERROR,
		      NULL));
}

static void by_flush(struct scene *s)
{
	post_write(s);
	OK(rpma_flush(s->writer, s->file.remote, 0, LEN, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, s));
}

/* A flush of length 0 covers the whole region, and thereby the write of this function. */
static void by_empty_flush(struct scene *s)
{
	post_write(s);
	OK(rpma_flush(s->writer, s->file.remote, 2 * LEN, 0, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, s));
}

static void by_flush_all(struct scene *s)
{
	post_write(s);
	OK(rpma_flush_all(s->writer, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, s));
}

static void by_verify(struct scene *s)
{
	static struct rpma_digest digest;

	post_write(s);
	OK(rpma_verify(s->writer, s->file.remote, 0, LEN, RPMA_DIGEST_AUTO, &digest,
		       RPMA_F_COMPLETION_ALWAYS, s));
}

static void describe_write(struct scene *s)
{
	OK(rpma_batch_new(s->writer, 2, &s->batch));
	OK(rpma_batch_write(s->batch, s->file.remote, 0, s->src, 0, LEN, RPMA_F_COMPLETION_ON_ERROR,
			    NULL));
}

static void describe_flush(struct scene *s)
{
	describe_write(s);
	OK(rpma_batch_flush(s->batch, s->file.remote, 0, LEN, RPMA_FLUSH_TYPE_PERSISTENT,
			    RPMA_F_COMPLETION_ALWAYS, s));
}

static void describe_flush_all(struct scene *s)
{
	describe_write(s);
	OK(rpma_batch_flush_all(s->batch, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, s));
}

static void by_batch(struct scene *s)
{
	if (!s->batch)
		describe_flush(s);
	OK(rpma_batch_post(s->batch));
}

static void by_batch_of_all(struct scene *s)
{
	if (!s->batch)
		describe_flush_all(s);
	OK(rpma_batch_post(s->batch));
}

/* This declaration permits reads in place of flushes towards a peer without native flushes. */
static void declare_direct_write(struct scene *s)
{
	struct rpma_peer_cfg *pcfg;

	OK(rpma_peer_cfg_new(&pcfg));
	OK(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	OK(rpma_conn_apply_remote_peer_cfg(s->writer, pcfg));
	OK(rpma_peer_cfg_delete(&pcfg));
}

static void by_declared_flush(struct scene *s)
{
	declare_direct_write(s);
	by_flush(s);
}

static void declare_and_describe(struct scene *s)
{
	declare_direct_write(s);
	describe_flush(s);
}

static void by_declared_batch(struct scene *s)
{
	declare_direct_write(s);
	OK(rpma_batch_post(s->batch));
}

/* A flush before ESTABLISHED is refused, and so is its batch; the test posts both again later. */
static void too_early(struct scene *s)
{
	assert_int_equal(rpma_flush(s->writer, s->file.remote, 0, LEN, RPMA_FLUSH_TYPE_PERSISTENT,
				    RPMA_F_COMPLETION_ALWAYS, s),
			 RPMA_E_PROVIDER);
	describe_flush(s);
	assert_int_equal(rpma_batch_post(s->batch), RPMA_E_PROVIDER);
}

enum { NATIVE = 1, BY_SERVER = 2, COMMON_CQ = 4 };

struct way {
	const char *name;
	void (*early)(struct scene *s); /* runs before the connection is established */
	void (*ask)(struct scene *s);
	int how;
};

static const struct way ways[] = {
	{"flush", NULL, by_flush, NATIVE},
	{"flush of the passive side", NULL, by_flush, NATIVE | BY_SERVER},
	{"flush, completions in a common queue", NULL, by_flush, NATIVE | COMMON_CQ},
	{"flush of no bytes, which is of the region", NULL, by_empty_flush, NATIVE},
	{"flush_all", NULL, by_flush_all, NATIVE},
	{"verify", NULL, by_verify, NATIVE},
	{"batch", NULL, by_batch, NATIVE},
	{"batch, flush_all", NULL, by_batch_of_all, NATIVE},
	{"batch described early", describe_flush, by_batch, NATIVE},
	{"batch described early, flush_all", describe_flush_all, by_batch_of_all, NATIVE},
	{"batch described early by the passive side", describe_flush, by_batch, NATIVE | BY_SERVER},
	{"batch posted too early, then again", too_early, by_batch, NATIVE},
	{"flush of a declared peer", NULL, by_declared_flush, 0},
	{"flush of a declared peer by the passive side", NULL, by_declared_flush, BY_SERVER},
	{"batch declared and described early", declare_and_describe, by_batch, 0},
	{"the same by the passive side", declare_and_describe, by_batch, BY_SERVER},
	{"batch described early, declared later", describe_flush, by_declared_batch, 0},
};

/* --- one way ------------------------------------------------------------------------------ */

static void connect_in_steps(struct scene *s, const struct way *way, struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req;

	OK(rpma_conn_req_new(s->d.peer, ends_addr(), s->d.port, cfg, &req));
	OK(rpma_conn_req_connect(&req, NULL, &s->d.cli));
	s->writer = s->d.cli;
	if (way->early && !(way->how & BY_SERVER))
		way->early(s);
	OK(rpma_ep_next_conn_req(s->d.ep, cfg, &req));
	OK(rpma_conn_req_connect(&req, NULL, &s->d.srv));
	if (way->how & BY_SERVER)
		s->writer = s->d.srv;
	if (way->early && way->how & BY_SERVER)
		way->early(s);
	/* The server does not take its own event here, because it is allowed to post before that
	 * event. */
	ends_expect_event(s->d.cli, RPMA_CONN_ESTABLISHED);
	if (!(way->how & BY_SERVER))
		ends_expect_event(s->d.srv, RPMA_CONN_ESTABLISHED);
	else if (ends_is_plain()) /* the initiator sends the first message (RFC 5044 s7.1.3) */
		OK(rpma_write(s->d.cli, s->d.at_srv, 0, s->d.cli_mr, 0, 1,
			      RPMA_F_COMPLETION_ON_ERROR, NULL));
}

static void await_success(struct rpma_conn *conn, const struct scene *s)
{
	struct ibv_wc wc = {0};

	ends_wait_wc(conn, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("completion failed: %s", ibv_wc_status_str(wc.status));
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, s);
}

/* The server's event arrives shortly after the client's. After this event the server is allowed to
 * post. */
static void await_established(struct rpma_conn *conn)
{
	uint32_t caps;
	int ret;

	while ((ret = rpma_conn_get_remote_caps(conn, &caps)) == RPMA_E_AGAIN)
		ends_sleep_ms(1);
	OK(ret);
}

static void expect_written_back(struct scene *s, const struct way *way)
{
	const struct rpma_conn *target = way->how & BY_SERVER ? s->d.cli : s->d.srv;
	size_t dirty = dirty_kb(&s->file);

	if (dirty)
		fail_msg("%s: completed with %zu kB of the file not written back", way->name,
			 dirty);
	if (!ends_is_kernels() && ends_counter(target, "writebacks") == 0)
		fail_msg("%s: completed without a write-back", way->name);
	assert_memory_equal(s->file.map, s->d.cli_buf, LEN);
}

static void try_way(const struct way *way)
{
	struct rpma_conn_cfg *cfg = ends_cfg(2 * SQ, 0, SQ, 0);
	struct rpma_cq *cq = NULL;
	struct scene s = {.batch = NULL};

	ends_listen(&s.d, NULL);
	s.d.cli_buf = ends_map(ENDS_BUF);
	s.d.srv_buf = ends_map(ENDS_BUF);
	s.d.cli_mr = s.src = ends_reg(&s.d, s.d.cli_buf, ENDS_BUF);
	s.d.srv_mr = ends_reg(&s.d, s.d.srv_buf, ENDS_BUF);
	s.d.at_srv = ends_remote(s.d.srv_mr);
	ends_fill(s.d.cli_buf, LEN, 1);
	ends_file_open(&s.file, &s.d, ENDS_BUF);
	if (way->how & COMMON_CQ) {
		OK(rpma_cq_new(s.d.peer, 4 * SQ, &cq));
		OK(rpma_conn_cfg_set_cq(cfg, cq));
	}
	connect_in_steps(&s, way, cfg);
	await_established(s.writer);
	way->ask(&s);
	await_success(s.writer, &s);
	expect_written_back(&s, way);
	OK(rpma_batch_delete(&s.batch));
	ends_file_close(&s.file);
	ends_close(&s.d);
	OK(rpma_conn_cfg_delete(&cfg));
	OK(rpma_cq_delete(&cq));
}

static void whatever_completes_a_persistent_flush_has_written_back(void **state)
{
	SOFTRNIC_ONLY(); /* on a device the machine decides whether a write is durable */
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (ways[i].how & NATIVE && ends_is_plain())
			continue;
		print_message("%s\n", ways[i].name);
		try_way(&ways[i]);
	}
}

/* A write without a flush leaves dirty pages, which shows that the checks of this file can fail. */
static void a_write_alone_leaves_the_pages_to_be_written_back(void **state)
{
	struct ends_file file;
	struct ends d;

	SOFTRNIC_ONLY();
	ends_open(&d, NULL);
	ends_file_open(&file, &d, ENDS_BUF);
	memset(d.cli_buf, 0x5a, LEN);
	OK(rpma_write(d.cli, file.remote, 0, d.cli_mr, 0, LEN, RPMA_F_COMPLETION_ON_ERROR, NULL));
	while (__atomic_load_n(&file.map[LEN - 1], __ATOMIC_ACQUIRE) != 0x5a)
		usleep(1000);
	assert_int_equal(dirty_kb(&file), LEN / 1024);
	ends_file_close(&file);
	ends_close(&d);
}

static uint64_t opcode_after_early_description(struct ends *d, bool is_flush)
{
	struct rpma_conn_req *req;
	struct rpma_batch *b;
	struct ibv_wc wc = {0};

	OK(rpma_conn_req_new(d->peer, ends_addr(), d->port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d->cli));
	OK(rpma_batch_new(d->cli, 1, &b));
	if (is_flush)
		OK(rpma_batch_flush(b, d->at_srv, 0, 64, RPMA_FLUSH_TYPE_VISIBILITY,
				    RPMA_F_COMPLETION_ALWAYS, NULL));
	else
		OK(rpma_batch_atomic_write(b, d->at_srv, 0, "1234567", RPMA_F_COMPLETION_ALWAYS,
					   NULL));
	OK(rpma_ep_next_conn_req(d->ep, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d->srv));
	ends_expect_event(d->cli, RPMA_CONN_ESTABLISHED);
	OK(rpma_batch_post(b));
	ends_wait_wc(d->cli, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	OK(rpma_batch_delete(&b));
	OK(rpma_conn_delete(&d->cli));
	OK(rpma_conn_delete(&d->srv));
	return wc.opcode;
}

static void operations_described_early_are_those_of_the_peer(void **state)
{
	struct ends d = {0};

	ends_listen(&d, NULL);
	d.srv_buf = ends_map(ENDS_BUF);
	d.srv_mr = ends_reg(&d, d.srv_buf, ENDS_BUF);
	d.at_srv = ends_remote(d.srv_mr);
	d.cli_buf = ends_map(ENDS_BUF);
	d.cli_mr = ends_reg(&d, d.cli_buf, ENDS_BUF);
	assert_int_equal(opcode_after_early_description(&d, true), ends_flush_opcode());
	assert_int_equal(opcode_after_early_description(&d, false), ends_atomic_write_opcode());
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_alone_leaves_the_pages_to_be_written_back),
		cmocka_unit_test(whatever_completes_a_persistent_flush_has_written_back),
		cmocka_unit_test(operations_described_early_are_those_of_the_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
