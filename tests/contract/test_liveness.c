/* SPDX-License-Identifier: BSD-3-Clause */
/* test_liveness.c -- a peer that is alive is not reported lost, although it sends nothing for
 * several times the liveness limit. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends.h"
#include "relay.h"

#define LIMIT_MS  1200 /* SOFTRNIC_LIVENESS_MS of this test */
#define LONG_MS   (3 * LIMIT_MS)
#define FILE_SIZE (1u << 20)
#define SENDS     600 /* more than the server's device can park */

static atomic_int slow_ms, slow_syncs;

/* Replaces libc's msync() by a function that waits as for a slow disk. */
__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	int ms = atomic_load(&slow_ms);

	if (ms) {
		atomic_fetch_add(&slow_syncs, 1);
		ends_sleep_ms(ms);
	}
	return (int)syscall(SYS_msync, addr, len, flags);
}

/* Neither end gets an event, and both still work. */
static void expect_both_alive(struct ends *d)
{
	enum rpma_conn_event ev;

	assert_false(ends_event_within(d->cli, 0, &ev));
	assert_false(ends_event_within(d->srv, 0, &ev));
	ends_flush(d->cli, d->at_srv, 0, 64);
	ends_flush(d->srv, d->at_cli, 0, 64);
}

static void applications_that_do_nothing_for_long(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	ends_sleep_ms(LONG_MS);
	expect_both_alive(&d);
	ends_close(&d);
}

static void a_write_back_that_takes_long(void **state)
{
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	char name[64];
	uint8_t *map;
	struct ends d;
	int fd;

	snprintf(name, sizeof(name), "contract_liveness.%ld", (long)getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, FILE_SIZE), 0);
	map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	unlink(name);
	ends_open(&d, NULL);
	mr = ends_reg(&d, map, FILE_SIZE);
	remote = ends_remote(mr);
	atomic_store(&slow_ms, LONG_MS);
	OK(rpma_write(d.cli, remote, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.cli, remote, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
		      &d));
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	atomic_store(&slow_ms, 0);
	if (atomic_load(&slow_syncs) == 0)
		print_message("the file system here needs no msync(): nothing was slow\n");
	expect_both_alive(&d);
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	munmap(map, FILE_SIZE);
	close(fd);
	ends_close(&d);
}

/* Without posted receives the server's device stops reading the socket, so it does not receive the
 * heartbeat, either. */
static void a_server_that_posts_no_receives_for_long(void **state)
{
	struct rpma_conn_cfg *cli_cfg = ends_cfg(64, 0, SENDS + 8, 0),
			     *srv_cfg = ends_cfg(64, 0, 0, 64);
	struct ends_opts opts = {.cli_cfg = cli_cfg, .srv_cfg = srv_cfg};
	int received = 0, posted = 0;
	enum rpma_conn_event ev;
	struct ends d;

	ends_open(&d, &opts);
	for (int i = 0; i < SENDS; i++)
		OK(rpma_send(d.cli, d.cli_mr, 0, 1000, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_sleep_ms(LONG_MS);
	assert_false(ends_event_within(d.cli, 0, &ev));
	assert_false(ends_event_within(d.srv, 0, &ev));
	for (; received < SENDS; received++) {
		for (; posted < SENDS && posted - received < 32; posted++)
			OK(rpma_recv(d.srv, d.srv_mr, 0, 1000, &d));
		ends_expect_received(d.srv, 1000, &d);
	}
	expect_both_alive(&d);
	OK(rpma_conn_cfg_delete(&cli_cfg));
	OK(rpma_conn_cfg_delete(&srv_cfg));
	ends_close(&d);
}

/* One large message delays the heartbeat of its sender. */
static void a_large_write_on_a_slow_link(void **state)
{
	struct ends_opts opts = {.buf_size = 4u << 20};
	struct rpma_conn *slow_cli, *slow_srv;
	struct relay relay;
	char real[8];
	struct ends d;

	ends_open(&d, &opts);
	memcpy(real, d.port, sizeof(real));
	relay_start_slow(&relay, real, opts.buf_size * 1000 / LONG_MS);
	memcpy(d.port, relay.port, sizeof(real));
	ends_connect(&d, NULL, &slow_cli, &slow_srv);
	ends_fill(d.cli_buf, opts.buf_size, 1);
	OK(rpma_write(slow_cli, d.at_srv, 0, d.cli_mr, 0, opts.buf_size, RPMA_F_COMPLETION_ON_ERROR,
		      NULL));
	ends_flush(slow_cli, d.at_srv, 0, opts.buf_size);
	assert_true(ends_is_filled(d.srv_buf, opts.buf_size, 1));
	expect_both_alive(&d);
	OK(rpma_conn_disconnect(slow_cli));
	OK(rpma_conn_delete(&slow_cli));
	OK(rpma_conn_delete(&slow_srv));
	relay_join(&relay);
	memcpy(d.port, real, sizeof(real));
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applications_that_do_nothing_for_long),
		cmocka_unit_test(a_write_back_that_takes_long),
		cmocka_unit_test(a_server_that_posts_no_receives_for_long),
		cmocka_unit_test(a_large_write_on_a_slow_link),
	};

	return cmocka_run_group_tests_name("slow, but alive", tests, NULL, NULL);
}
