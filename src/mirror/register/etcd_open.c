/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the uri of a register in etcd. */
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/register/etcd.h"

static int etcd_open_endpoint(struct etcd_register *e, const char *host, size_t len,
			      struct error *err)
{
	char *endpoint = e->endpoint[e->endpoints];

	if (e->endpoints == ETCD_ENDPOINTS)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "a register has at most %d addresses",
				 ETCD_ENDPOINTS);
	snprintf(endpoint, ETCD_TEXT, "%.*s", (int)len, host);
	if (!strchr(endpoint, ':') || strpbrk(endpoint, "/@ #"))
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "'%.200s' is no address of etcd: HOST:PORT", endpoint);
	e->endpoints++;
	return 0;
}

static int etcd_open_endpoints(struct etcd_register *e, const char *uri, struct error *err)
{
	const char *at = uri, *host;
	size_t len;
	int rc = 0;

	while (!rc && (host = register_next_address(uri, &at, &len)))
		rc = etcd_open_endpoint(e, host, len, err);
	if (!rc && !e->endpoints)
		rc = error_set(err, ERROR_ARGUMENT, EINVAL,
			       "the register's uri names no host: etcd://HOST:PORT,...");
	return rc;
}

int etcd_read_password(struct etcd_register *e, struct error *err)
{
	FILE *file = fopen(e->password_file, "re");
	char line[ETCD_SECRET];
	bool is_line;

	if (!file)
		return error_set(err, ERROR_LOCAL, errno, "cannot open the password file %s: %s",
				 e->password_file, strerror(errno));
	is_line = fgets(line, sizeof(line), file) != NULL;
	fclose(file);
	line[is_line ? strcspn(line, "\r\n") : 0] = '\0';
	if (!line[0])
		return error_set(err, ERROR_LOCAL, EINVAL, "the password file %s is empty",
				 e->password_file);
	memcpy(e->password, line, sizeof(line));
	sodium_memzero(line, sizeof(line));
	return 0;
}

static int etcd_open_option(struct etcd_register *e, const char *key, const char *value,
			    struct error *err)
{
	const struct {
		const char *key;
		char *to;
		size_t size;
		bool tls;
	} options[] = {
		{"ca", e->ca, sizeof(e->ca), true},
		{"cert", e->cert, sizeof(e->cert), true},
		{"key", e->key, sizeof(e->key), true},
		{"user", e->user, sizeof(e->user), false},
	};

	if (!strcmp(key, "password-file")) {
		snprintf(e->password_file, sizeof(e->password_file), "%s", value);
		return etcd_read_password(e, err);
	}
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (strcmp(key, options[i].key) != 0)
			continue;
		if (!value[0] || strlen(value) >= options[i].size)
			break;
		strcpy(options[i].to, value);
		e->tls |= options[i].tls;
		return 0;
	}
	return error_set(
		err, ERROR_ARGUMENT, EINVAL,
		"the register's uri has '%.40s=%.80s'; its options are ca, cert, key, user and "
		"password-file",
		key, value);
}

static int etcd_open_options(struct etcd_register *e, char *query, struct error *err)
{
	char *save, *option;
	int rc = 0;

	for (option = strtok_r(query, "&", &save); option && !rc;
	     option = strtok_r(NULL, "&", &save)) {
		char *value = strchr(option, '=');

		if (value)
			*value++ = '\0';
		rc = etcd_open_option(e, option, value ? value : "", err);
	}
	if (!rc && (e->user[0] != '\0') != (e->password[0] != '\0'))
		rc = error_set(err, ERROR_ARGUMENT, EINVAL,
			       "a register with a user needs user= and password-file=");
	if (!rc && (e->cert[0] != '\0') != (e->key[0] != '\0'))
		rc = error_set(err, ERROR_ARGUMENT, EINVAL,
			       "a client certificate needs cert= and key=");
	return rc;
}

/* Check the file now: a later connect would report a wrong file less clearly. When credentials are
 * read again, a report at the next connect would also be too late. */
static int etcd_check_pem(const char *path, const char *words, struct error *err)
{
	char line[ETCD_TEXT];
	bool is_found = false;
	FILE *file;

	if (!path[0])
		return 0;
	file = fopen(path, "re");
	if (!file)
		return error_set(err, ERROR_LOCAL, errno, "cannot open %s: %s", path,
				 strerror(errno));
	while (!is_found && fgets(line, sizeof(line), file))
		is_found = !strncmp(line, "-----BEGIN ", 11) && strstr(line, words);
	fclose(file);
	return is_found ? 0
			: error_set(err, ERROR_LOCAL, EINVAL, "%s has no %s in PEM", path, words);
}

static int etcd_check_files(const struct etcd_register *e, struct error *err)
{
	int rc = etcd_check_pem(e->ca, "CERTIFICATE", err);

	if (!rc)
		rc = etcd_check_pem(e->cert, "CERTIFICATE", err);
	return rc ? rc : etcd_check_pem(e->key, "PRIVATE KEY", err);
}

static void etcd_open_keys(struct etcd_register *e, const char *set)
{
	char key[ETCD_KEY];

	snprintf(key, sizeof(key), "/rpmirror/%s", set);
	etcd_base64(key, strlen(key), e->key64[BACKEND_RECORD], sizeof(e->key64[0]));
	strcat(key, "/alive");
	etcd_base64(key, strlen(key), e->key64[BACKEND_ALIVE], sizeof(e->key64[0]));
}

static void etcd_open_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int etcd_open_parts(struct etcd_register *e, const char *uri, const char *set,
			   struct error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[ETCD_TEXT], *query;
	int rc;

	snprintf(text, sizeof(text), "%s", uri);
	query = strchr(text, '?');
	rc = etcd_open_endpoints(e, uri, err);
	if (!rc && query)
		rc = etcd_open_options(e, query + 1, err);
	if (!rc)
		rc = etcd_check_files(e, err);
	if (rc)
		return rc;
	etcd_open_keys(e, set);
	pthread_once(&once, etcd_open_library);
	e->curl = curl_easy_init();
	if (!e->curl)
		return error_set(err, ERROR_LOCAL, ENOMEM, "libcurl cannot be started");
	return 0;
}

int etcd_register_open(const char *uri, const char *set, struct mirror_register **r,
		       struct error *err)
{
	struct etcd_register *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for a register");
	e->base.ops = &etcd_ops;
	rc = etcd_open_parts(e, uri, set, err);
	if (rc)
		e->base.ops->close(&e->base);
	else
		*r = &e->base;
	return rc;
}
