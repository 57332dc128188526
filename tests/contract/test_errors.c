/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_errors.c -- errors in the manual pages that occur without an injected failure and have no
 * other test: every operation on a connection that is not established, or whose queue is full, and
 * objects that cannot be made or released. tests/fault injects failures of the provider's calls.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends.h"

static atomic_bool disk_waits;

/* Replaces libc's msync() by a function that waits as for a slow disk. */
__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	while (atomic_load(&disk_waits))
		ends_sleep_ms(1);
	return (int)syscall(SYS_msync, addr, len, flags);
}

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

/* Every operation that occupies a slot of the send queue. */
static int do_read(struct ends *d, struct rpma_conn *c)
{
	return rpma_read(c, d->cli_mr, 0, d->at_srv, 0, 8, ALWAYS, d);
}
static int do_write(struct ends *d, struct rpma_conn *c)
{
	return rpma_write(c, d->at_srv, 0, d->cli_mr, 0, 8, ALWAYS, d);
}
static int do_write_with_imm(struct ends *d, struct rpma_conn *c)
{
	return rpma_write_with_imm(c, d->at_srv, 0, d->cli_mr, 0, 8, ALWAYS, 1, d);
}
static int do_atomic_write(struct ends *d, struct rpma_conn *c)
{
	return rpma_atomic_write(c, d->at_srv, 0, "1234567", ALWAYS, d);
}
static int do_flush(struct ends *d, struct rpma_conn *c)
{
	return rpma_flush(c, d->at_srv, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, d);
}
static int do_send(struct ends *d, struct rpma_conn *c)
{
	return rpma_send(c, d->cli_mr, 0, 8, ALWAYS, d);
}
static int do_send_with_imm(struct ends *d, struct rpma_conn *c)
{
	return rpma_send_with_imm(c, d->cli_mr, 0, 8, ALWAYS, 1, d);
}

static const struct {
	const char *name;
	int (*post)(struct ends *d, struct rpma_conn *c);
} operations[] = {
	{"rpma_read", do_read},
	{"rpma_write", do_write},
	{"rpma_write_with_imm", do_write_with_imm},
	{"rpma_atomic_write", do_atomic_write},
	{"rpma_flush", do_flush},
	{"rpma_send", do_send},
	{"rpma_send_with_imm", do_send_with_imm},
};

static void expect_all_refused(struct ends *d, struct rpma_conn *c)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		int ret = operations[i].post(d, c);

		if (ret != RPMA_E_PROVIDER)
			fail_msg("%s returned \"%s\"", operations[i].name, rpma_err_2str(ret));
	}
}

static void expect_no_completion(struct rpma_conn *conn)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	OK(rpma_conn_get_cq(conn, &cq));
	assert_int_equal(rpma_cq_get_wc(cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
}

static void nothing_is_queued_before_the_connection_stands(void **state)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct ends d;

	SOFTRNIC_ONLY(); /* RDMA devices can accept the request and drop it */
	ends_open(&d, NULL);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, NULL, &req));
	/* no program accepts the request, so the connection is not established */
	OK(rpma_conn_req_connect(&req, NULL, &conn));
	expect_all_refused(&d, conn);
	expect_no_completion(conn);
	OK(rpma_conn_delete(&conn));
	ends_close(&d);
}

struct file {
	char name[64];
	int fd;
	uint8_t *map;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
};

static void file_open(struct file *f, struct ends *d)
{
	snprintf(f->name, sizeof(f->name), "contract_errors.%ld.XXXXXX", (long)getpid());
	f->fd = mkstemp(f->name);
	assert_true(f->fd >= 0);
	assert_int_equal(ftruncate(f->fd, 4096), 0);
	f->map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	assert_ptr_not_equal(f->map, MAP_FAILED);
	f->mr = ends_reg(d, f->map, 4096);
	f->remote = ends_remote(f->mr);
}

static void file_close(struct file *f)
{
	OK(rpma_mr_remote_delete(&f->remote));
	OK(rpma_mr_dereg(&f->mr));
	munmap(f->map, 4096);
	close(f->fd);
	unlink(f->name);
}

/* Returns the strictest type of flush that this peer permits without a declaration. */
static enum rpma_flush_type best_type(void)
{
	return ends_flushes_by_reading() ? RPMA_FLUSH_TYPE_VISIBILITY : RPMA_FLUSH_TYPE_PERSISTENT;
}

/* A flush waits for the disk, and the disconnect waits for the flush. */
static void nothing_is_queued_while_this_end_disconnects(void **state)
{
	struct file f;
	struct ends d;

	SOFTRNIC_ONLY(); /* RDMA devices do not call msync() */
	ends_open(&d, NULL);
	file_open(&f, &d);
	atomic_store(&disk_waits, true);
	OK(rpma_write(d.cli, f.remote, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.cli, f.remote, 0, 64, best_type(), ALWAYS, &d));
	OK(rpma_conn_disconnect(d.cli));
	expect_all_refused(&d, d.cli);
	atomic_store(&disk_waits, false);
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	expect_no_completion(d.cli);
	file_close(&f);
	ends_close(&d);
}

static void what_is_posted_to_an_ended_connection_is_never_carried_out(void **state)
{
	struct ibv_wc wc;
	struct ends d;

	if (!ends_late_posts_complete())
		skip(); /* the late Send would never complete */
	ends_open(&d, NULL);
	OK(rpma_conn_disconnect(d.srv));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	ends_disconnect(d.cli);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		OK(operations[i].post(&d, d.cli));
		ends_wait_wc(d.cli, &wc);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	ends_close(&d);
}

/* Two flushes, or the reads that replace them, wait for the disk and fill the queue. */
static void nothing_more_is_queued_in_a_full_send_queue(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 2, 0);
	struct ends_opts opts = {.cli_cfg = cfg};
	struct file f;
	struct ends d;

	SOFTRNIC_ONLY(); /* RDMA devices do not call msync() */
	ends_open(&d, &opts);
	file_open(&f, &d);
	atomic_store(&disk_waits, true);
	/* The send queue frees the slot of a Write only some time after the Write was sent. */
	OK(rpma_write(d.cli, f.remote, 0, d.cli_mr, 0, 64, ALWAYS, NULL));
	ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, NULL);
	for (int i = 0; i < 2; i++)
		OK(rpma_flush(d.cli, f.remote, 0, 64, best_type(), ALWAYS, &d));
	expect_all_refused(&d, d.cli);
	atomic_store(&disk_waits, false);
	for (int i = 0; i < 2; i++)
		ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	expect_no_completion(d.cli);
	OK(do_write(&d, d.cli));
	ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, &d);
	file_close(&f);
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void a_full_receive_queue_takes_no_more(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 2);
	struct ends_opts opts = {.srv_cfg = cfg};
	struct rpma_conn_req *req;
	/* post more requests, because a device can round the queue size up */
	int ret = 0, more = ends_is_kernels() ? 1000 : 1;
	struct ends d;

	ends_open(&d, &opts);
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, cfg, &req));
	for (int i = 0; i < 2; i++) {
		OK(rpma_recv(d.srv, d.srv_mr, 0, 8, NULL));
		OK(rpma_conn_req_recv(req, d.srv_mr, 0, 8, NULL));
	}
	while (more-- > 0 && !ret)
		ret = rpma_recv(d.srv, d.srv_mr, 0, 8, NULL);
	assert_int_equal(ret, RPMA_E_PROVIDER);
	if (!ends_is_kernels())
		assert_int_equal(rpma_conn_req_recv(req, d.srv_mr, 0, 8, NULL), RPMA_E_PROVIDER);
	OK(rpma_conn_req_delete(&req));
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void a_connection_with_a_shared_queue_has_no_receives_of_its_own(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 0);
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_srq *srq;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_srq_new(d.peer, NULL, &srq));
	OK(rpma_conn_cfg_set_srq(cfg, srq));
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, cfg, &req));
	assert_int_equal(rpma_conn_req_recv(req, d.srv_mr, 0, 8, NULL), RPMA_E_PROVIDER);
	OK(rpma_conn_req_connect(&req, NULL, &conn));
	assert_int_equal(rpma_recv(conn, d.srv_mr, 0, 8, NULL), RPMA_E_PROVIDER);
	OK(rpma_conn_delete(&conn));
	OK(rpma_srq_delete(&srq));
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void a_shared_queue_of_impossible_size_is_refused(void **state)
{
	static const uint32_t sizes[] = {0, 1u << 30, UINT32_MAX};
	struct rpma_srq_cfg *cfg;
	struct rpma_srq *srq = NULL;
	struct ends d = {0};

	ends_listen(&d, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		OK(rpma_srq_cfg_new(&cfg));
		OK(rpma_srq_cfg_set_rq_size(cfg, sizes[i]));
		assert_int_equal(rpma_srq_new(d.peer, cfg, &srq), RPMA_E_PROVIDER);
		OK(rpma_srq_cfg_set_rq_size(cfg, 4));
		/* size 0 means that the connection has no completion queue of its own */
		if (sizes[i]) {
			OK(rpma_srq_cfg_set_rcq_size(cfg, sizes[i]));
			assert_int_equal(rpma_srq_new(d.peer, cfg, &srq), RPMA_E_PROVIDER);
		}
		OK(rpma_srq_cfg_delete(&cfg));
	}
	assert_null(srq);
	ends_close(&d);
}

/* Functions of the leak sanitizer, NULL if it does not run. It ignores leaks of objects that were
 * made between the two calls. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/*
 * A delete call on an object in use fails. The librpma object is freed nevertheless, and the
 * device's object leaks.
 */
static void an_object_in_use_is_reported_when_it_is_released(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 0);
	struct rpma_conn_req *req;
	struct rpma_mr_local *mr;
	struct rpma_peer *peer;
	struct ibv_context *ctx;
	struct rpma_srq *srq;
	struct ends d = {0};
	char buf[64];

	if (__lsan_disable)
		__lsan_disable();
	ends_listen(&d, NULL);
	OK(rpma_srq_new(d.peer, NULL, &srq));
	OK(rpma_conn_cfg_set_srq(cfg, srq));
	OK(rpma_conn_req_new(d.peer, ends_addr(), d.port, cfg, &req));
	assert_int_equal(rpma_srq_delete(&srq), RPMA_E_PROVIDER);
	assert_null(srq);
	OK(rpma_conn_req_delete(&req));
	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	OK(rpma_peer_new(ctx, &peer));
	OK(rpma_mr_reg(peer, buf, sizeof(buf), RPMA_MR_USAGE_SEND, &mr));
	assert_int_equal(rpma_peer_delete(&peer), RPMA_E_PROVIDER);
	assert_null(peer);
	OK(rpma_mr_dereg(&mr));
	OK(rpma_conn_cfg_delete(&cfg));
	OK(rpma_ep_shutdown(&d.ep));
	/* The shared queue of the case above keeps its protection domain until the process ends. */
	assert_int_equal(rpma_peer_delete(&d.peer), RPMA_E_PROVIDER);
	if (__lsan_enable)
		__lsan_enable();
}

static void memory_that_is_not_mapped_is_not_registered(void **state)
{
	uint8_t *p = ends_map(3 * 4096);
	struct rpma_mr_local *mr = NULL;
	struct ends d = {0};

	ends_listen(&d, NULL);
	assert_int_equal(munmap(p + 4096, 4096), 0);
	assert_int_equal(rpma_mr_reg(d.peer, p, (size_t)3 * 4096, RPMA_MR_USAGE_SEND, &mr),
			 RPMA_E_PROVIDER);
	assert_null(mr);
	munmap(p, 4096);
	munmap(p + 8192, 4096);
	ends_close(&d);
}

static void advice_must_fit_the_region_and_the_device(void **state)
{
	struct ends d;

	/* contract_test_device tests for which mappings a device accepts advice */
	SOFTRNIC_ONLY();
	ends_open(&d, NULL);
	assert_int_equal(
		rpma_mr_advise(d.cli_mr, ENDS_BUF - 4096, 8192, IBV_ADVISE_MR_ADVICE_PREFETCH, 0),
		RPMA_E_INVAL);
	assert_int_equal(rpma_mr_advise(d.cli_mr, 0, 4096, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 31),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_advise(d.cli_mr, 0, 4096, 77, 0), RPMA_E_NOSUPP);
	ends_close(&d);
}

static void unreachable_addresses_are_refused(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;
	struct ends d = {0};

	ends_listen(&d, NULL);
	assert_int_equal(rpma_ep_listen(d.peer, "no.such.name.invalid", "7", &ep), RPMA_E_PROVIDER);
	/* TEST-NET-1 (RFC 5737) belongs to no host. */
	assert_int_equal(rpma_ep_listen(d.peer, "192.0.2.1", "7777", &ep), RPMA_E_PROVIDER);
	assert_int_equal(rpma_ep_listen(d.peer, ends_addr(), "no port", &ep), RPMA_E_PROVIDER);
	assert_int_equal(rpma_conn_req_new(d.peer, "no.such.name.invalid", "7", NULL, &req),
			 RPMA_E_PROVIDER);
	assert_int_equal(rpma_conn_req_new(d.peer, ends_addr(), "no port", NULL, &req),
			 RPMA_E_PROVIDER);
	assert_null(ep);
	assert_null(req);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_queued_before_the_connection_stands),
		cmocka_unit_test(nothing_is_queued_while_this_end_disconnects),
		cmocka_unit_test(what_is_posted_to_an_ended_connection_is_never_carried_out),
		cmocka_unit_test(nothing_more_is_queued_in_a_full_send_queue),
		cmocka_unit_test(a_full_receive_queue_takes_no_more),
		cmocka_unit_test(a_connection_with_a_shared_queue_has_no_receives_of_its_own),
		cmocka_unit_test(a_shared_queue_of_impossible_size_is_refused),
		cmocka_unit_test(memory_that_is_not_mapped_is_not_registered),
		cmocka_unit_test(advice_must_fit_the_region_and_the_device),
		cmocka_unit_test(unreachable_addresses_are_refused),
		cmocka_unit_test(an_object_in_use_is_reported_when_it_is_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
