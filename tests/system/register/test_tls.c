/* SPDX-License-Identifier: BSD-3-Clause */
/* The error of a register names the reason why TLS fails. `openssl s_server` replaces etcd, because
 * no request of this test gets an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "mirror/register/register.h"

#define LIMIT_MS 300
#define TRIES    60 /* the server can be slow to start */

static char folder[] = "tls-XXXXXX";
static unsigned port;
static pid_t server;

static int make_certificates(void **state)
{
	static const char command[] =
		"exec >openssl.log 2>&1 && "
		"new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
		"-subj /CN=$1 -keyout $1.key -out $1.csr; } && "
		"sign() { openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
		"-days $2 -extfile san -out $3; } && "
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		"-subj /CN=authority -keyout ca.key -out ca.pem && "
		"new server && new client && "
		"echo subjectAltName=DNS:elsewhere >san && sign server 2 named.pem && "
		"echo subjectAltName=IP:127.0.0.1 >san && sign server 2 good.pem && "
		"sign server -1 ended.pem && sign client -1 client.pem";

	(void)state;
	return !mkdtemp(folder) || chdir(folder) || system(command) ? -1 : 0;
}

static int remove_certificates(void **state)
{
	(void)state;
	return system("rm -rf \"$PWD\"");
}

static void choose_port(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	port = ntohs(addr.sin_port);
	close(fd);
}

static void serve(const char *certificate)
{
	pid_t parent = getpid();
	char address[30];

	choose_port();
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	server = fork();
	if (server)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !freopen("server.log", "w", stdout))
		_exit(1);
	dup2(STDOUT_FILENO, STDERR_FILENO);
	execlp("openssl", "openssl", "s_server", "-accept", address, "-cert", certificate, "-key",
	       "server.key", "-CAfile", "ca.pem", "-Verify", "1", "-verify_return_error", "-www",
	       (char *)NULL);
	_exit(127);
}

/*
 * With this certificate of the server and these files of the client, expect an error with `reason`.
 */
static void refused_because(const char *certificate, const char *files, const char *reason)
{
	struct register_entry now;
	struct mirror_register *r;
	struct error err = {0};
	char uri[200];
	int rc = 0;

	serve(certificate);
	snprintf(uri, sizeof(uri), "etcd://127.0.0.1:%u?%s", port, files);
	assert_int_equal(register_open(uri, "orders", LIMIT_MS, &r, &err), 0);
	for (unsigned i = 0; i < TRIES && !strstr(err.text, reason); i++)
		rc = register_get(r, &now, &err);
	register_close(r);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	assert_true(rc < 0);
	if (!strstr(err.text, reason))
		fail_msg("'%s' does not name '%s'", err.text, reason);
	/* an error that an operator must correct, not a register without an answer */
	assert_int_equal(err.kind, ERROR_REFUSED);
}

static void the_reason_of_the_own_side_is_named(void **state)
{
	(void)state;
	refused_because("ended.pem", "ca=ca.pem", "certificate has expired");
	refused_because("named.pem", "ca=ca.pem", "name matches target host name '127.0.0.1'");
	refused_because("good.pem", "ca=/etc/ssl/certs/ca-certificates.crt",
			"self-signed certificate in certificate chain");
}

static void the_reason_of_the_other_side_is_named(void **state)
{
	(void)state;
	refused_because("good.pem", "ca=ca.pem", "certificate required");
	refused_because("good.pem", "ca=ca.pem&cert=client.pem&key=client.key",
			"certificate expired");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reason_of_the_own_side_is_named),
		cmocka_unit_test(the_reason_of_the_other_side_is_named),
	};

	return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
