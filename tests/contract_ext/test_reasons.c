/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reasons.c -- a failed completion has a reason, as a value and as a line of text. Requests
 * that are flushed because of the failure report the same reason.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends_ext.h"

static atomic_int disk_error;

/* Replaces libc's msync() by a function that fails as on a failing disk. */
__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	int err = atomic_load(&disk_error);

	if (!err)
		return (int)syscall(SYS_msync, addr, len, flags);
	errno = err;
	return -1;
}

/* Expect a reason in the completion, and print its text into the test's log. */
static void expect_reason(const struct rpma_conn *conn, const struct ibv_wc *wc,
			  enum rpma_reason reason, uint32_t code, const char *words)
{
	char text[256] = "";
	uint32_t found = 77;

	OK(rpma_wc_explain(conn, wc, text, sizeof(text)));
	print_message("%s\n", text);
	assert_int_equal(rpma_wc_get_reason(conn, wc, &found), reason);
	assert_int_equal(found, code);
	if (!strstr(text, words))
		fail_msg("no \"%s\" in \"%s\"", words, text);
	assert_null(strchr(text, '\n'));
	assert_true(strlen(text) < sizeof(text) - 1);
}

/* Wait for the next completion that has failed. */
static void wait_failure(struct rpma_conn *conn, struct ibv_wc *wc)
{
	do
		ends_wait_wc(conn, wc);
	while (wc->status == IBV_WC_SUCCESS);
}

/* A request that is posted after a failure gets no completion: the post call returns the
 * failure. */
static void expect_the_same_of_the_next(struct ends *d, enum rpma_reason reason, uint32_t code)
{
	struct ibv_wc wc;

	wait_failure(d->cli, &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	expect_reason(d->cli, &wc, reason, code, "not completed, because ");
}

static void post_flush(struct ends *d, struct rpma_mr_remote *dst, size_t at, size_t len)
{
	OK(rpma_flush(d->cli, dst, at, len, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
		      d));
}

static void post_read(struct ends *d, struct rpma_mr_remote *src, size_t at, size_t len)
{
	OK(rpma_read(d->cli, d->cli_mr, 0, src, at, len, RPMA_F_COMPLETION_ALWAYS, d));
}

static void a_disk_that_fails(void **state)
{
	static const int errors[] = {EIO, ENOSPC};

	if (ends_is_plain())
		/* without extensions a flush is a read, so a failed flush ends in a Terminate */
		skip();
	for (size_t i = 0; i < 2; i++) {
		struct ends_file file;
		struct ibv_wc wc;
		struct ends d;

		ends_open(&d, NULL);
		ends_file_open(&file, &d, 4096);
		OK(rpma_write(d.cli, file.remote, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		atomic_store(&disk_error, errors[i]);
		post_flush(&d, file.remote, 0, 64);
		post_flush(&d, file.remote, 0, 64);
		wait_failure(d.cli, &wc);
		atomic_store(&disk_error, 0);
		assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
		expect_reason(d.cli, &wc, RPMA_REASON_WRITE_BACK, (uint32_t)errors[i],
			      i ? "No space left on device (errno 28); "
				: "Input/output error (errno 5); ");
		expect_the_same_of_the_next(&d, RPMA_REASON_WRITE_BACK, (uint32_t)errors[i]);
		ends_file_close(&file);
		ends_close(&d);
	}
}

static void a_range_past_the_end_of_its_file(void **state)
{
	struct ends_file file;
	uint32_t code = 0;
	struct ibv_wc wc;
	struct ends d;

	if (ends_is_plain())
		skip();
	ends_open(&d, NULL);
	ends_file_open(&file, &d, 8192);
	assert_int_equal(ftruncate(file.fd, 4096), 0);
	post_flush(&d, file.remote, 4096, 64);
	wait_failure(d.cli, &wc);
	assert_int_equal(rpma_wc_get_reason(d.cli, &wc, &code), RPMA_REASON_GONE);
	expect_reason(d.cli, &wc, RPMA_REASON_GONE, code, "past the end of its file");
	ends_file_close(&file);
	ends_close(&d);
}

static void a_region_that_is_not_there(void **state)
{
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *gone;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	mr = ends_reg(&d, d.srv_buf, 4096);
	gone = ends_remote(mr);
	OK(rpma_mr_dereg(&mr));
	post_read(&d, gone, 0, 64);
	post_read(&d, d.at_srv, 0, 64);
	wait_failure(d.cli, &wc);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	expect_reason(d.cli, &wc, RPMA_REASON_TERMINATE_IN, 0x0100, "names no region");
	expect_the_same_of_the_next(&d, RPMA_REASON_TERMINATE_IN, 0x0100);
	OK(rpma_mr_remote_delete(&gone));
	ends_close(&d);
}

static void a_range_outside_of_the_region(void **state)
{
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	post_read(&d, d.at_srv, ENDS_BUF - 8, 64);
	wait_failure(d.cli, &wc);
	expect_reason(d.cli, &wc, RPMA_REASON_TERMINATE_IN, 0x0101, "not inside the region");
	ends_close(&d);
}

static void a_right_that_was_not_given(void **state)
{
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_mr_reg(d.peer, d.srv_buf, 4096, RPMA_MR_USAGE_WRITE_DST, &mr));
	remote = ends_remote(mr);
	post_read(&d, remote, 0, 64);
	wait_failure(d.cli, &wc);
	expect_reason(d.cli, &wc, RPMA_REASON_TERMINATE_IN, 0x0102, "not registered for this use");
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	ends_close(&d);
}

/* The refusing end has pending requests, too, which are flushed. */
static void what_this_end_refused(void **state)
{
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d)); /* no Send fills this receive */
	post_read(&d, d.at_srv, ENDS_BUF - 8, 64);
	wait_failure(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	expect_reason(d.srv, &wc, RPMA_REASON_TERMINATE_OUT, 0x0101, "this end refused");
	ends_close(&d);
}

static void local_memory_that_may_not_be_used(void **state)
{
	struct rpma_mr_local *mr;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_mr_reg(d.peer, d.cli_buf, 4096, RPMA_MR_USAGE_WRITE_SRC, &mr));
	OK(rpma_write(d.cli, d.at_srv, 0, mr, 4000, 200, RPMA_F_COMPLETION_ALWAYS, &d));
	wait_failure(d.cli, &wc);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	expect_reason(d.cli, &wc, RPMA_REASON_LOCAL, ERANGE, "local range is not inside");
	OK(rpma_mr_dereg(&mr));
	ends_close(&d);
}

static void a_connection_that_was_closed(void **state)
{
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_recv(d.srv, d.srv_mr, 0, 64, &d)); /* no Send fills this receive */
	OK(rpma_conn_disconnect(d.cli));
	wait_failure(d.srv, &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	expect_reason(d.srv, &wc, RPMA_REASON_LINK, ENOTCONN, "the other end closed");
	ends_close(&d);
}

/*
 * The server runs in a child process that the test can kill. It uses plain checks, because cmocka's
 * assertions do not work in a child.
 */
static int serve(int port_fd)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_ep *ep = NULL;
	struct ibv_context *ctx;
	char port[8] = "";
	int ret = -1;

	if (rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx) ||
	    rpma_peer_new(ctx, &peer))
		return 1;
	for (int i = 0; i < 10 && ret; i++) {
		ends_free_port(port);
		ret = rpma_ep_listen(peer, ends_addr(), port, &ep);
	}
	if (ret || write(port_fd, port, sizeof(port)) != sizeof(port) ||
	    rpma_ep_next_conn_req(ep, NULL, &req) || rpma_conn_req_connect(&req, NULL, &conn))
		return 2;
	pause();
	return 0;
}

static pid_t start_server(char port[8])
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(serve(ready[1]));
	close(ready[1]);
	assert_int_equal(read(ready[0], port, 8), 8);
	close(ready[0]);
	return pid;
}

static void a_peer_that_was_killed(void **state)
{
	struct rpma_conn_req *req;
	uint32_t code = 77;
	struct ibv_wc wc;
	struct ends d = {0};
	char port[8];
	pid_t pid = start_server(port);

	ends_listen(&d, NULL);
	d.cli_buf = ends_map(ENDS_BUF);
	d.srv_buf = ends_map(ENDS_BUF);
	d.cli_mr = ends_reg(&d, d.cli_buf, ENDS_BUF);
	OK(rpma_conn_req_new(d.peer, ends_addr(), port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d.cli));
	ends_expect_event(d.cli, RPMA_CONN_ESTABLISHED);
	OK(rpma_recv(d.cli, d.cli_mr, 0, 64, &d)); /* no Send fills this receive */
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	wait_failure(d.cli, &wc);
	assert_int_equal(rpma_wc_get_reason(d.cli, &wc, &code), RPMA_REASON_LINK);
	if (code != ENOTCONN && code != ECONNRESET)
		fail_msg("the code is %u", code);
	expect_reason(d.cli, &wc, RPMA_REASON_LINK, code, "see whether it still runs");
	ends_close(&d);
}

static void a_success_has_no_reason(void **state)
{
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	post_read(&d, d.at_srv, 0, 64);
	ends_wait_wc(d.cli, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.vendor_err, 0);
	expect_reason(d.cli, &wc, RPMA_REASON_NONE, 0, "success");
	ends_close(&d);
}

/* Every value in a completion, even an unknown one, has a text that fits into the buffer. */
static void every_value_has_its_words(void **state)
{
	static const uint32_t codes[] = {0,      1,      EIO,    ENOSPC, ETIMEDOUT, ECONNRESET,
					 EPIPE,  0x0100, 0x0101, 0x0102, 0x0103,    0x0104,
					 0x0206, 0x0207, 0x1100, 0x1101, 0x1102,    0x1103,
					 0x1202, 0x1205, 0x2002, 0x7fff, 0xffffff};
	struct ends d;

	ends_open(&d, NULL);
	for (uint32_t reason = 0; reason <= 0xff; reason = reason < 12 ? reason + 1 : reason + 81)
		for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
			for (int status = 1; status < 24; status++) {
				struct ibv_wc wc = {.status = (enum ibv_wc_status)status,
						    .vendor_err = reason << 24 | codes[i]};
				char text[512] = "";

				OK(rpma_wc_explain(d.cli, &wc, text, sizeof(text)));
				assert_true(strlen(text) > 20);
				if (strlen(text) > 255)
					fail_msg("%zu: %s", strlen(text), text);
			}
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* this test forks, so it runs before any use of the device */
		cmocka_unit_test(a_peer_that_was_killed),
		cmocka_unit_test(a_disk_that_fails),
		cmocka_unit_test(a_range_past_the_end_of_its_file),
		cmocka_unit_test(a_region_that_is_not_there),
		cmocka_unit_test(a_range_outside_of_the_region),
		cmocka_unit_test(a_right_that_was_not_given),
		cmocka_unit_test(what_this_end_refused),
		cmocka_unit_test(local_memory_that_may_not_be_used),
		cmocka_unit_test(a_connection_that_was_closed),
		cmocka_unit_test(a_success_has_no_reason),
		cmocka_unit_test(every_value_has_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
