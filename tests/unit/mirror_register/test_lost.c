/* SPDX-License-Identifier: BSD-3-Clause */
/* When the client gives a swap up, the kernel keeps no bytes of it that could still be sent. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/unit.h"
#include "mirror/register/register.h"
#include "records.h"

#define LOST_LIMIT_MS 300

/* A server that accepts connections like a member of the register, but never answers. */
static int silent_listen(char uri[64])
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(uri, 64, "etcd://127.0.0.1:%d", ntohs(addr.sin_port));
	return fd;
}

static void a_swap_that_is_given_up_is_reset(void **state)
{
	struct register_entry expected = {.revision = 7}, now;
	struct mirror_register *r;
	struct mirror_record next;
	struct error err;
	char uri[64], buf[4096];
	int listener = silent_listen(uri), fd;
	ssize_t n;

	record_init(&expected.record, "orders");
	next = expected.record;
	record_next(&next);
	assert_int_equal(register_open(uri, "orders", LOST_LIMIT_MS, &r, &err), 0);
	assert_int_equal(register_swap(r, &expected, &next, NULL, &now, &err), REGISTER_UNKNOWN);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	do
		n = recv(fd, buf, sizeof(buf), 0);
	while (n > 0);
	/* 0 would mean a close in good order, before which the kernel sends all bytes */
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
	close(listener);
	register_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_swap_that_is_given_up_is_reset)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
