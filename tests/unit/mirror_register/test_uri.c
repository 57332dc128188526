/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/unit.h"
#include "mirror/register/register.h"

static void refused(const char *uri, const char *set, const char *why)
{
	struct mirror_register *r = NULL;
	struct error err = {0};

	if (!register_open(uri, set, 100, &r, &err))
		fail_msg("accepted: %s", uri);
	if (!strstr(err.text, why))
		fail_msg("%s: '%s' does not say '%s'", uri, err.text, why);
	assert_null(r);
}

static void accepted(const char *uri)
{
	struct mirror_register *r;
	struct error err;

	if (register_open(uri, "orders", 100, &r, &err))
		fail_msg("%s: %s", uri, err.text);
	register_close(r);
}

static void errors_name_what_is_wrong(void **state)
{
	char many[256] = "etcd://", longest[REGISTER_URI_MAX + 32];

	refused("", "s", "is no register");
	refused("http://h:1", "s", "is no register");
	refused("file:relative", "s", "must begin with '/'");
	refused("etcd://", "s", "names no host");
	refused("etcd://?user=u", "s", "names no host");
	refused("etcd://host", "s", "HOST:PORT");
	refused("etcd://u@h:1", "s", "HOST:PORT");
	refused("etcd://h:1/path", "s", "HOST:PORT");
	refused("etcd://h:1?color=red", "s", "color=red");
	refused("etcd://h:1?ca=", "s", "ca=");
	refused("etcd://h:1?user=u", "s", "password-file");
	refused("etcd://h:1?cert=/c", "s", "key=");
	refused("etcd://h:1?user=u&password-file=/nowhere/p", "s", "/nowhere/p");
	for (int i = 0; i < 10; i++)
		strcat(many, "h:1,");
	refused(many, "s", "at most 9");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	refused(longest, "s", "too long");
	refused("file:/f", "a/b", "set's name");
	refused("file:/f", "", "set's name");
	refused("file:/f", "..", "set's name");
}

static void what_is_right_is_accepted(void **state)
{
	char password[] = "/tmp/register-password-XXXXXX", uri[256];
	int fd = mkstemp(password);

	assert_true(fd >= 0);
	snprintf(uri, sizeof(uri), "etcd://h:1?user=u&password-file=%s", password);
	refused(uri, "s", "is empty");
	assert_int_equal(write(fd, "secret\n", 7), 7);
	accepted(uri);
	close(fd);
	unlink(password);
	accepted("file:/tmp/anywhere");
}

static void addresses(const char *uri, const char *wanted)
{
	const char *at = uri, *address;
	char found[64] = "";
	size_t len;

	while ((address = register_next_address(uri, &at, &len)))
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%.*s ", (int)len,
			 address);
	assert_string_equal(found, wanted);
}

static void a_uri_has_the_addresses_of_its_members(void **state)
{
	addresses("etcd://h:1", "h:1 ");
	addresses("etcd://h1:2379,,[::1]:2379,?ca=a,b", "h1:2379 [::1]:2379 ");
	addresses("etcd://?user=u", "");
	addresses("file:/a,b", "");
}

/* The files for TLS are checked when the register is opened. */
static void files_of_tls_must_be_there(void **state)
{
	char pem[] = "/tmp/register-pem-XXXXXX", uri[256];
	int fd = mkstemp(pem);

	assert_true(fd >= 0);
	refused("etcd://h:1?ca=/nowhere/ca", "s", "cannot open /nowhere/ca");
	snprintf(uri, sizeof(uri), "etcd://h:1?ca=%s", pem);
	refused(uri, "s", "has no CERTIFICATE in PEM");
	assert_int_equal(write(fd, "a text\n-----BEGIN CERTIFICATE-----\n", 35), 35);
	accepted(uri);
	snprintf(uri, sizeof(uri), "etcd://h:1?cert=%s&key=%s", pem, pem);
	refused(uri, "s", "has no PRIVATE KEY in PEM");
	assert_int_equal(write(fd, "-----BEGIN EC PRIVATE KEY-----\n", 31), 31);
	snprintf(uri, sizeof(uri), "etcd://h1:2379,[::1]:2379,h3:2379?ca=%s&cert=%s&key=%s", pem,
		 pem, pem);
	accepted(uri);
	close(fd);
	unlink(pem);
}

/* Random bytes as a uri cause no crash, and an error gives no handle. */
static void any_text_is_survived(void **state)
{
	static const char parts[] = "etcd://file:/?&=,@:user=ca=password-file=h:1";
	uint64_t seed = 0x5eed;
	char text[64];

	for (int round = 0; round < 20000; round++) {
		size_t len = test_random(&seed) % (sizeof(text) - 1);
		struct mirror_register *r = NULL;

		for (size_t i = 0; i < len; i++)
			text[i] = parts[test_random(&seed) % (sizeof(parts) - 1)];
		text[len] = '\0';
		memcpy(text, "etcd://", len < 7 ? len : 7);
		if (!register_open(text, "s", 100, &r, NULL))
			register_close(r);
		else
			assert_null(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_name_what_is_wrong),
		cmocka_unit_test(what_is_right_is_accepted),
		cmocka_unit_test(a_uri_has_the_addresses_of_its_members),
		cmocka_unit_test(files_of_tls_must_be_there),
		cmocka_unit_test(any_text_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
