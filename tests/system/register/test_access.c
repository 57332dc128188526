/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to the register: users with a role for each set, and TLS. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "lib/unit.h"
#include "unit/mirror_register/records.h"
#include "unit/mirror_register/semantics.h"

static void write_line(const struct cluster *c, const char *name, const char *line)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", c->folder, name);
	f = fopen(path, "w");
	fprintf(f, "%s\n", line);
	fclose(f);
}

static void grant(struct mirror_register *r, const char *key, const char *end)
{
	char key64[2 * ETCD_KEY], end64[2 * ETCD_KEY];

	etcd_base64(key, strlen(key), key64, sizeof(key64));
	etcd_base64(end, strlen(end), end64, sizeof(end64));
	common_post(r, "/v3/auth/role/grant",
		    json_pack("{s:s, s:{s:s, s:s, s:s}}", "name", "orders", "perm", "permType",
			      "READWRITE", "key", key64, "range_end", end64));
}

/* Make the users root and orders; the user orders has access only to the keys of the set
 * "orders". */
static void enable_users(const struct cluster *c)
{
	struct mirror_register *r = common_open(c, "", LONG_MS);

	common_post(r, "/v3/auth/user/add",
		    json_pack("{s:s, s:s}", "name", "root", "password", "rootpass"));
	common_post(r, "/v3/auth/user/add",
		    json_pack("{s:s, s:s}", "name", "orders", "password", "secret"));
	common_post(r, "/v3/auth/role/add", json_pack("{s:s}", "name", "root"));
	common_post(r, "/v3/auth/role/add", json_pack("{s:s}", "name", "orders"));
	common_post(r, "/v3/auth/user/grant",
		    json_pack("{s:s, s:s}", "user", "root", "role", "root"));
	common_post(r, "/v3/auth/user/grant",
		    json_pack("{s:s, s:s}", "user", "orders", "role", "orders"));
	grant(r, "/rpmirror/orders", "");
	grant(r, "/rpmirror/orders/", "/rpmirror/orders0");
	common_post(r, "/v3/auth/enable", json_object());
	register_close(r);
	write_line(c, "password", "secret");
	write_line(c, "wrong", "guess");
}

static void denied(const struct cluster *c, const char *options, const char *set)
{
	struct register_entry now;
	struct mirror_record first;
	struct mirror_register *r;
	struct error err = {0};
	char uri[1000];

	snprintf(uri, sizeof(uri), "%s%s", c->uri, options);
	assert_int_equal(register_open(uri, set, LONG_MS, &r, &err), 0);
	assert_int_equal(register_get(r, &now, &err), -EACCES);
	assert_non_null(strstr(err.text, "etcd at 127."));
	record_init(&first, set);
	assert_int_equal(register_create(r, &first, &now, &err), REGISTER_FAILED);
	register_close(r);
}

static void a_user_has_its_set_alone(void **state)
{
	struct mirror_register *r, *other;
	struct register_health health;
	struct register_entry now;
	char options[400];
	struct cluster c;

	assert_int_equal(cluster_start(&c, 1, false), 0);
	enable_users(&c);
	snprintf(options, sizeof(options), "?user=orders&password-file=%s/password", c.folder);
	r = common_open(&c, options, LONG_MS);
	other = common_open(&c, options, LONG_MS);
	semantics_check(r, other);
	register_health(r, &health);
	assert_int_equal(health.healthy, 1);
	denied(&c, options, "others");
	denied(&c, "", "orders");
	snprintf(options, sizeof(options), "?user=orders&password-file=%s/wrong", c.folder);
	denied(&c, options, "orders");

	/* A member keeps tokens only in memory, so the client must request a new one, even for a
	 * watch. */
	semantics_create(r, &now);
	cluster_member_kill(&c, 0);
	assert_int_equal(cluster_member_start(&c, 0), 0);
	common_step(r, &now);
	common_step(r, &now);
	assert_true(register_watch(other, now.revision - 1, LONG_MS, -1));
	register_close(r);
	register_close(other);
	cluster_stop(&c);
}

static void a_token_survives_a_change_of_roles(void **state)
{
	struct mirror_register *r, *root;
	struct register_entry now;
	char options[400];
	struct cluster c;

	assert_int_equal(cluster_start(&c, 1, false), 0);
	enable_users(&c);
	snprintf(options, sizeof(options), "?user=orders&password-file=%s/password", c.folder);
	r = common_open(&c, options, LONG_MS);
	semantics_create(r, &now);
	write_line(&c, "root", "rootpass");
	snprintf(options, sizeof(options), "?user=root&password-file=%s/root", c.folder);
	root = common_open(&c, options, LONG_MS);
	grant(root, "/elsewhere", "");
	common_step(r, &now);
	assert_int_equal(now.record.view.seq, 1);
	register_close(r);
	register_close(root);
	cluster_stop(&c);
}

static void a_password_may_change_while_the_register_is_open(void **state)
{
	struct mirror_register *r, *root;
	struct register_entry now;
	char options[400], path[300];
	struct cluster c;
	struct error err;

	assert_int_equal(cluster_start(&c, 1, false), 0);
	enable_users(&c);
	snprintf(options, sizeof(options), "?user=orders&password-file=%s/password", c.folder);
	r = common_open(&c, options, LONG_MS);
	semantics_create(r, &now);
	write_line(&c, "root", "rootpass");
	snprintf(options, sizeof(options), "?user=root&password-file=%s/root", c.folder);
	root = common_open(&c, options, LONG_MS);
	common_post(root, "/v3/auth/user/changepw",
		    json_pack("{s:s, s:s}", "name", "orders", "password", "another"));
	/* the token is no longer valid, either */
	assert_int_equal(register_get(r, &now, &err), -EACCES);
	write_line(&c, "password", "another");
	common_step(r, &now);
	assert_int_equal(now.record.view.seq, 1);
	/* Without the file the client uses the password that it read before. */
	snprintf(path, sizeof(path), "%s/password", c.folder);
	assert_int_equal(remove(path), 0);
	grant(root, "/elsewhere", "");
	common_step(r, &now);
	assert_int_equal(now.record.view.seq, 2);
	register_close(r);
	register_close(root);
	cluster_stop(&c);
}

static void tls_is_spoken_with_whom_the_authority_vouches_for(void **state)
{
	struct mirror_register *r, *other;
	struct register_entry now;
	char options[400], uri[800];
	struct cluster c;
	struct error err;

	assert_int_equal(cluster_start(&c, 1, true), 0);
	snprintf(options, sizeof(options), "?ca=%s/ca.pem", c.folder);
	r = common_open(&c, options, LONG_MS);
	other = common_open(&c, options, LONG_MS);
	semantics_check(r, other);
	semantics_create(r, &now);
	assert_true(register_watch(other, now.revision - 1, LONG_MS, -1));
	register_close(other);
	register_close(r);

	/* First try with another authority, and then without TLS. */
	snprintf(uri, sizeof(uri), "%s?ca=/etc/ssl/certs/ca-certificates.crt", c.uri);
	assert_int_equal(register_open(uri, "orders", SHORT_MS, &r, &err), 0);
	assert_int_equal(register_get(r, &now, &err), -ENOTCONN);
	register_close(r);
	assert_int_equal(register_open(c.uri, "orders", SHORT_MS, &r, &err), 0);
	assert_true(register_get(r, &now, &err) < 0);
	register_close(r);
	cluster_stop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_its_set_alone),
		cmocka_unit_test(a_token_survives_a_change_of_roles),
		cmocka_unit_test(a_password_may_change_while_the_register_is_open),
		cmocka_unit_test(tls_is_spoken_with_whom_the_authority_vouches_for),
	};

	common_need_etcd();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
