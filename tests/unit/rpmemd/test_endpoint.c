/* SPDX-License-Identifier: BSD-3-Clause */
/* Which local and remote address the initiator's ssh connection has. */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpmemd/endpoint.h"

static void sshd_says_which_address_it_was(void **state)
{
	struct endpoint e;

	assert_true(endpoint_from_ssh("192.0.2.7 50000 192.0.2.1 22", &e));
	assert_string_equal(e.here, "192.0.2.1");
	assert_string_equal(e.there, "192.0.2.7");
	assert_true(endpoint_from_ssh("2001:db8::7 50000 2001:db8::1 2222", &e));
	assert_string_equal(e.here, "2001:db8::1");
	assert_true(endpoint_from_ssh("fe80::7%eth0 5 fe80::1%eth0 22", &e));
	assert_string_equal(e.here, "fe80::1%eth0");
}

static void what_sshd_does_not_write_leads_to_this_machine(void **state)
{
	static const char *const texts[] = {NULL,
					    "",
					    "192.0.2.7",
					    "192.0.2.7 50000 192.0.2.1",
					    "a b c d",
					    "1 2 host 4",
					    "1.2.3.4 5 1.2.3.400 6"};
	struct endpoint e;

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		assert_false(endpoint_from_ssh(texts[i], &e));
		assert_string_equal(e.here, "127.0.0.1");
		assert_string_equal(e.there, "");
	}
}

/* Connect to a listener of one or both families, and check the address that is found. */
static void connect_by(int family, const struct sockaddr *to, socklen_t len, int listener,
		       const char *want)
{
	int fd = socket(family, SOCK_STREAM, 0), got;
	struct endpoint e;

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, to, len), 0);
	got = accept(listener, NULL, NULL);
	assert_true(got >= 0);
	assert_int_equal(endpoint_from_socket(got, &e), 0);
	assert_string_equal(e.here, want);
	assert_string_equal(e.there, want);
	close(fd);
	close(got);
}

static void a_socket_says_it_itself(void **state)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any}, v6;
	int no = 0, listener = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	socklen_t len = sizeof(v6);

	if (listener < 0)
		skip(); /* the machine has no IPv6 */
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 4)) {
		close(listener);
		skip();
	}
	getsockname(listener, (struct sockaddr *)&v6, &len);
	v4.sin_port = v6.sin6_port;
	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	connect_by(AF_INET, (struct sockaddr *)&v4, sizeof(v4), listener, "127.0.0.1");
	v6.sin6_addr = in6addr_loopback;
	connect_by(AF_INET6, (struct sockaddr *)&v6, sizeof(v6), listener, "::1");
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sshd_says_which_address_it_was),
		cmocka_unit_test(what_sshd_does_not_write_leads_to_this_machine),
		cmocka_unit_test(a_socket_says_it_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
