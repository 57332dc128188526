/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconnects_main.c -- `mirror_reconnects [TIMES]`: cut connections of the primary's process TIMES
 * times: in turn the connection to its daemon, the connections to the other members' daemons, and
 * all connections. Each connection must be made again. Then all copies must be in-sync, and flushes
 * must be durable on all copies. The daemons and the process must have as many descriptors and
 * threads, and as much memory, as before.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apps.h"
#include "base/clock.h"
#include "clients.h"
#include "system/lib/check.h"
#include "uses.h"

#define HOSTS      3
#define ALL        7
#define OFFSET     8192
#define WAIT_MS    60000
#define WARM_UP(n) ((n) / 10 + 30)
#define GROWTH_KIB 4096 /* permitted growth of a process: memory that allocators keep */
/* permitted growth for each connection, in bytes: far less than the memory of a connection */
#define GROWTH_EACH 256
#define CONNS_MAX   64

enum conn_kind { CONN_DAEMON, CONN_MEMBER, CONN_KINDS };

static const unsigned cuts[] = {1u << CONN_DAEMON, 1u << CONN_MEMBER,
				1u << CONN_DAEMON | 1u << CONN_MEMBER};

/* Connections of the process, identified by the inode numbers of their sockets. */
struct conns {
	unsigned count;
	ino_t inodes[CONNS_MAX];
};

static struct proc app;
static struct uses uses = {.hosts = &hosts};
static unsigned times = 100, number;
static unsigned cut_count[CONN_KINDS];

/* Returns a duplicate of the process's descriptor, or -1 if the process has closed it. */
static int take_fd(int pidfd, int fd)
{
	int ours = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	if (ours < 0 && (errno == EPERM || errno == ENOSYS)) {
		printf("skipped: descriptors of other processes cannot be taken here\n");
		proc_kill(&app);
		hosts_stop(&hosts);
		exit(SKIPPED);
	}
	return ours;
}

/* Returns CONN_KINDS if the socket is not one of these connections. An example is the socket over
 * which two ends on one machine set up rings. */
static enum conn_kind conn_kind_of(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer), type_len = sizeof(int);
	int type = 0;

	if (fd < 0 || getpeername(fd, (struct sockaddr *)&peer, &len) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len))
		return CONN_KINDS;
	if (peer.ss_family == AF_UNIX && type == SOCK_SEQPACKET)
		return CONN_DAEMON;
	return peer.ss_family == AF_INET ? CONN_MEMBER : CONN_KINDS;
}

static void add_conn(struct conns *conns, int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(conns->count, 0, CONNS_MAX - 1);
	conns->inodes[conns->count++] = st.st_ino;
}

/* Find the connections of these kinds. With `cut`, also shut them down in both directions. */
static struct conns find_conns(unsigned kinds, bool cut)
{
	int pidfd = pidfd_open(app.pid, 0);
	struct conns conns = {0};
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)app.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		int fd = entry->d_name[0] == '.' ? -1 : take_fd(pidfd, atoi(entry->d_name));
		enum conn_kind kind = conn_kind_of(fd);

		if (kind < CONN_KINDS && kinds & 1u << kind) {
			add_conn(&conns, fd);
			if (cut && !shutdown(fd, SHUT_RDWR))
				cut_count[kind]++;
		}
		if (fd >= 0)
			close(fd);
	}
	closedir(dir);
	close(pidfd);
	return conns;
}

static bool has_any(const struct conns *now, const struct conns *former)
{
	for (unsigned i = 0; i < now->count; i++)
		for (unsigned k = 0; k < former->count; k++)
			if (now->inodes[i] == former->inodes[k])
				return true;
	return false;
}

/* Wait until the process has closed the cut connections, and is connected to its daemon. */
static void wait_noticed(const struct conns *cut)
{
	uint64_t end = clock_now_ns() + WAIT_MS * NSEC_PER_MS;
	struct conns all, daemon;

	for (;;) {
		all = find_conns(~0u, false);
		daemon = find_conns(1u << CONN_DAEMON, false);
		if (daemon.count && !has_any(&all, cut))
			return;
		if (clock_now_ns() > end)
			fail_msg("connections that were cut stay open for %u s", WAIT_MS / 1000);
		usleep(2000);
	}
}

/* Wait until a flush is durable on all copies again. */
static void wait_durable(void)
{
	uint64_t end = clock_now_ns() + WAIT_MS * NSEC_PER_MS;
	const char *line;

	do {
		hosts_wait_insync(&hosts, ALL);
		line = proc_ask(&app, "put %u %u", OFFSET, ++number);
		if (!line || strncmp(line, "durable", 7))
			fail_msg("a flush returns %s", line ? line : "nothing");
		if (clock_now_ns() > end)
			fail_msg("flushes are not durable on all for %u s", WAIT_MS / 1000);
	} while (strcmp(line, "durable 7 flags 0"));
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(host_read_word(&hosts, i, OFFSET), number);
}

static unsigned cut_and_return(unsigned kinds)
{
	struct conns cut = find_conns(kinds, true);

	assert_true(cut.count);
	wait_noticed(&cut);
	wait_durable();
	return cut.count;
}

static void cut_until(unsigned wanted)
{
	for (unsigned cut = 0, turn = 0; cut < wanted; turn++)
		cut += cut_and_return(cuts[turn % ARRAY_LEN(cuts)]);
}

static void nothing_leaks(void **state)
{
	uint64_t begin;

	cut_until(WARM_UP(times));
	for (unsigned i = 0; i < HOSTS; i++)
		uses_add(&uses, "daemon", i, hosts.hosts[i].daemon.pid);
	uses_add(&uses, "program", 0, app.pid);
	uses_remember(&uses);
	memset(cut_count, 0, sizeof(cut_count));
	begin = clock_now_ns();
	cut_until(times);
	printf("%u connections to the daemon and %u to other members were cut and made again in "
	       "%.1f s\n",
	       cut_count[CONN_DAEMON], cut_count[CONN_MEMBER], (clock_now_ns() - begin) / 1e9);
	uses_compare(&uses, GROWTH_KIB + (long)times * GROWTH_EACH / 1024);
}

static int setup(void **state)
{
	/* No member must be excluded, because its hold-off would grow each time. */
	const struct hosts_opts opts = {
		.count = HOSTS, .min_copies = HOSTS, .lease_ms = 5000, .automatic = true};

	hosts_start(&hosts, &opts);
	app_start(&app, &hosts, 0, NULL);
	app_expect(&app, "ok", "map-wait");
	wait_durable();
	return 0;
}

static int teardown(void **state)
{
	if (app.pid)
		proc_kill(&app);
	hosts_stop(&hosts);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_leaks, setup, teardown)};

	if (argc > 1)
		times = (unsigned)atoi(argv[1]);
	uses_prepare();
	setlinebuf(stdout);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
