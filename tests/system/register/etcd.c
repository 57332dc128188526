/* SPDX-License-Identifier: BSD-3-Clause */
#include "etcd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "mirror/register/etcd.h"
#include "system/lib/proc.h"

#define AWAIT_NS (60 * NSEC_PER_SEC)
#define ASK_MS   2000

bool cluster_is_possible(void)
{
	return system("command -v etcd >/dev/null 2>&1") == 0;
}

/*
 * Choose a loopback address that other programs rarely use, so that its ports are still free when
 * they are needed.
 */
static void cluster_choose_address(struct cluster *c)
{
	uint32_t r = rand_u32();

	snprintf(c->address, sizeof(c->address), "127.%u.%u.%u", 16 + r % 200, r >> 8 & 0xff,
		 1 + (r >> 16) % 250);
}

static unsigned cluster_choose_port(const struct cluster *c)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, c->address, &sin.sin_addr);
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) ||
	    getsockname(fd, (struct sockaddr *)&sin, &len))
		sin.sin_port = 0;
	close(fd);
	return ntohs(sin.sin_port);
}

static int cluster_shell(const char *command)
{
	int status = system(command);

	if (status)
		fprintf(stderr, "etcd fixture: '%s' ended with %d\n", command, status);
	return status ? -1 : 0;
}

/* Make a certificate authority, and one certificate for all members. */
static int cluster_make_certificates(const struct cluster *c)
{
	char command[2048];

	snprintf(
		command, sizeof(command),
		"cd '%s' && exec >openssl.log 2>&1 && "
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
		"-subj /CN=test-authority -keyout ca.key -out ca.pem && "
		"openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
		"-subj /CN=etcd -keyout server.key -out server.csr && "
		"echo 'subjectAltName=IP:%s' >san && "
		"openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
		"-extfile san -out server.pem",
		c->folder, c->address);
	return cluster_shell(command);
}

static void cluster_run_member(const struct cluster *c, unsigned i, pid_t parent)
{
	const struct cluster_member *m = &c->member[i];
	char name[16], data[300], log[300], client[64], peer[64], all[256] = "", cert[300],
								  key[300];
	char *argv[40], **arg = argv;
	const char *scheme = c->tls ? "https" : "http";
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	snprintf(name, sizeof(name), "m%u", i);
	snprintf(data, sizeof(data), "%s/%s", c->folder, name);
	snprintf(log, sizeof(log), "%s/etcd%u.log", c->folder, i);
	snprintf(client, sizeof(client), "%s://%s:%u", scheme, c->address, m->client_port);
	snprintf(peer, sizeof(peer), "http://%s:%u", c->address, m->peer_port);
	snprintf(cert, sizeof(cert), "%s/server.pem", c->folder);
	snprintf(key, sizeof(key), "%s/server.key", c->folder);
	for (unsigned other = 0; other < c->members; other++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%sm%u=http://%s:%u",
			 other ? "," : "", other, c->address, c->member[other].peer_port);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
#define ARG(text) (*arg++ = (char *)(uintptr_t)(text))
	ARG("etcd"), ARG("--name"), ARG(name), ARG("--data-dir"), ARG(data);
	ARG("--listen-client-urls"), ARG(client), ARG("--advertise-client-urls"), ARG(client);
	ARG("--listen-peer-urls"), ARG(peer), ARG("--initial-advertise-peer-urls"), ARG(peer);
	ARG("--initial-cluster"), ARG(all), ARG("--initial-cluster-token"), ARG(c->folder);
	ARG("--logger"), ARG("zap"), ARG("--log-outputs"), ARG("stderr"), ARG("--log-level"),
		ARG("warn");
	if (c->tls)
		ARG("--cert-file"), ARG(cert), ARG("--key-file"), ARG(key);
	*arg = NULL;
	/* Start etcd without the user's environment, which can configure another etcd. */
	execvpe("etcd", argv, (char *[]){NULL});
	_exit(127);
}

int cluster_member_start(struct cluster *c, unsigned i)
{
	pid_t parent = getpid();

	c->member[i].pid = fork();
	if (!c->member[i].pid)
		cluster_run_member(c, i, parent);
	return c->member[i].pid < 0 ? -1 : 0;
}

void cluster_member_signal(struct cluster *c, unsigned i, int sig)
{
	proc_signal_child(c->member[i].pid, sig);
}

void cluster_member_kill(struct cluster *c, unsigned i)
{
	if (c->member[i].pid > 0) {
		kill(c->member[i].pid, SIGKILL);
		waitpid(c->member[i].pid, NULL, 0);
	}
	c->member[i].pid = 0;
}

/* Returns a member's report of its state, or NULL. */
static json_t *cluster_ask(const struct cluster *c, unsigned i)
{
	struct etcd_reply reply = {0};
	struct mirror_register *r;
	char uri[512], ca[300] = "";
	struct error err;
	json_t *body;

	if (c->tls)
		snprintf(ca, sizeof(ca), "?ca=%s/ca.pem", c->folder);
	snprintf(uri, sizeof(uri), "etcd://%s:%u%s", c->address, c->member[i].client_port, ca);
	if (register_open(uri, "fixture", ASK_MS, &r, &err))
		return NULL;
	body = json_object();
	etcd_http_post(etcd_of(r), 0, "/v3/maintenance/status", body, ASK_MS, &reply);
	json_decref(body);
	register_close(r);
	return reply.json;
}

bool cluster_await(const struct cluster *c, unsigned healthy)
{
	uint64_t end = clock_now_ns() + AWAIT_NS;

	for (;;) {
		struct timespec pause = {.tv_nsec = 50 * NSEC_PER_MS};
		unsigned count = 0;

		for (unsigned i = 0; i < c->members; i++) {
			json_t *status = c->member[i].pid > 0 ? cluster_ask(c, i) : NULL;

			count += etcd_number(status, "leader") != 0;
			json_decref(status);
		}
		if (count >= healthy)
			return true;
		if (clock_now_ns() > end)
			return false;
		nanosleep(&pause, NULL);
	}
}

unsigned cluster_leader(const struct cluster *c)
{
	for (unsigned i = 0; i < c->members; i++) {
		json_t *status = c->member[i].pid > 0 ? cluster_ask(c, i) : NULL;
		uint64_t leader = etcd_number(status, "leader");
		bool is_it = leader &&
			     etcd_number(json_object_get(status, "header"), "member_id") == leader;

		json_decref(status);
		if (is_it)
			return i;
	}
	return c->members;
}

static int cluster_start_members(struct cluster *c)
{
	snprintf(c->uri, sizeof(c->uri), "etcd://");
	cluster_choose_address(c);
	for (unsigned i = 0; i < c->members; i++) {
		c->member[i].client_port = cluster_choose_port(c);
		c->member[i].peer_port = cluster_choose_port(c);
		snprintf(c->uri + strlen(c->uri), sizeof(c->uri) - strlen(c->uri), "%s%s:%u",
			 i ? "," : "", c->address, c->member[i].client_port);
	}
	if (c->tls && cluster_make_certificates(c))
		return -1;
	for (unsigned i = 0; i < c->members; i++)
		if (cluster_member_start(c, i))
			return -1;
	return cluster_await(c, c->members) ? 0 : -1;
}

int cluster_change_authority(struct cluster *c)
{
	if (cluster_make_certificates(c))
		return -1;
	for (unsigned i = 0; i < c->members; i++) {
		cluster_member_kill(c, i);
		if (cluster_member_start(c, i))
			return -1;
	}
	return cluster_await(c, c->members) ? 0 : -1;
}

int cluster_start(struct cluster *c, unsigned members, bool tls)
{
	char command[PATH_MAX], template[] = "etcd-XXXXXX";

	memset(c, 0, sizeof(*c));
	c->members = members;
	c->tls = tls;
	if (!mkdtemp(template) || !realpath(template, command))
		return -1;
	snprintf(c->folder, sizeof(c->folder), "%.255s", command);
	if (!cluster_start_members(c))
		return 0;
	snprintf(command, sizeof(command), "tail -n 20 '%.200s'/*.log >&2", c->folder);
	cluster_shell(command);
	cluster_stop(c);
	return -1;
}

void cluster_stop(struct cluster *c)
{
	char command[300];

	for (unsigned i = 0; i < c->members; i++)
		cluster_member_kill(c, i);
	if (!c->folder[0])
		return;
	snprintf(command, sizeof(command), "rm -rf '%.250s'", c->folder);
	cluster_shell(command);
	c->folder[0] = '\0';
}

int cluster_member_save(const struct cluster *c, unsigned i)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd '%s' && rm -rf saved%u && cp -a m%u saved%u",
		 c->folder, i, i, i);
	return cluster_shell(command);
}

int cluster_member_restore(const struct cluster *c, unsigned i)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd '%s' && rm -rf m%u && cp -a saved%u m%u", c->folder,
		 i, i, i);
	return cluster_shell(command);
}
