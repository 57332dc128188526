/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * etcd_main.c -- etcd for tests in shell: `system_etcd MEMBERS` starts this many members below the
 * working directory, prints "URI PID..." when they have a leader, and ends them when its input
 * ends. The script stops, continues and kills members by their process ids.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "etcd.h"

int main(int argc, char *argv[])
{
	struct cluster c;
	char byte;

	if (argc != 2 || atoi(argv[1]) < 1 || atoi(argv[1]) > CLUSTER_MAX) {
		fprintf(stderr, "usage: system_etcd MEMBERS\n");
		return 1;
	}
	if (!cluster_is_possible())
		return 77;
	if (cluster_start(&c, (unsigned)atoi(argv[1]), false))
		return 1;
	printf("%s", c.uri);
	for (unsigned i = 0; i < c.members; i++)
		printf(" %d", (int)c.member[i].pid);
	printf("\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	cluster_stop(&c);
	return 0;
}
