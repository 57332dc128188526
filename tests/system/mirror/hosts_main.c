/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts_main.c -- the hosts of hosts.h for scripts.
 *
 * `mirror_hosts COUNT [SIZE [LEASE_MS [yes|no [REGISTER]]]]` prints a line "NAME SOCKET DATA PID"
 * for each host, and then "ready REGISTER". Each line of the standard input is a command. The
 * program answers "kill I", "stop I" and "start I" with "done", and "record" with the epoch, the
 * phase, the slot of the primary and the in-sync mask. When the program exits, even by a signal, it
 * stops the daemons. The variable MIRROR_HOSTS_MORE is added to the set's section in each daemon's
 * configuration. With MIRROR_HOSTS_SECRET the set has a secret.
 */
#include "hosts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/lib/check.h"

static struct hosts hosts_main;

static void hosts_main_record(void)
{
	static struct register_entry now;

	hosts_read(&hosts_main, &now);
	printf("%llu %d %u %u\n", (unsigned long long)now.record.view.epoch.number,
	       (int)now.record.view.phase, now.record.view.primary, now.record.view.insync);
}

static void hosts_main_command(const char *line)
{
	unsigned i;

	if (!strcmp(line, "record\n")) {
		hosts_main_record();
	} else if (sscanf(line, "kill %u", &i) == 1 && i < hosts_main.opts.count) {
		host_kill(&hosts_main, i);
		puts("done");
	} else if (sscanf(line, "stop %u", &i) == 1 && i < hosts_main.opts.count) {
		host_stop(&hosts_main, i);
		puts("done");
	} else if (sscanf(line, "start %u", &i) == 1 && i < hosts_main.opts.count) {
		host_start(&hosts_main, i, NULL);
		puts("done");
	} else {
		puts("unknown");
	}
	fflush(stdout);
}

static void serve(void **state)
{
	char line[256];

	for (unsigned i = 0; i < hosts_main.opts.count; i++)
		printf("%c %s %s %d\n", 'a' + (char)i, hosts_main.hosts[i].socket,
		       hosts_main.hosts[i].data, (int)hosts_main.hosts[i].daemon.pid);
	printf("ready %s\n", hosts_main.register_uri);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		hosts_main_command(line);
	hosts_stop(&hosts_main);
}

static struct hosts_opts hosts_main_opts;

static int set_up(void **state)
{
	hosts_start(&hosts_main, &hosts_main_opts);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(serve, set_up)};

	if (argc < 2)
		return 1;
	hosts_main_opts.count = (unsigned)atoi(argv[1]);
	hosts_main_opts.size = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	hosts_main_opts.lease_ms = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	hosts_main_opts.automatic = argc > 4 && !strcmp(argv[4], "yes");
	hosts_main_opts.register_uri = argc > 5 ? argv[5] : NULL;
	hosts_main_opts.more = getenv("MIRROR_HOSTS_MORE");
	hosts_main_opts.has_secret = getenv("MIRROR_HOSTS_SECRET") != NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
