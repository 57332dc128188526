/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder_main.c -- the recorder as a program, with arguments PORT FIRST [calls|batch|read]. After
 * every acknowledgement it writes the number of acknowledged records, as 8 bytes, to its standard
 * output before it continues.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"
#include "system/lib/proc.h"

static enum record_how how_of(const char *name)
{
	if (!strcmp(name, "batch"))
		return RECORD_BATCH;
	return !strcmp(name, "read") ? RECORD_READ : RECORD_CALLS;
}

int main(int argc, char *argv[])
{
	static struct recorder r;
	int ret;

	proc_die_with_parent();
	if (argc < 3)
		return 2;
	ret = recorder_open(&r, strtoull(argv[2], NULL, 10));
	if (!ret)
		ret = client_connect(&r.client, argv[1], NULL);
	if (!ret)
		ret = recorder_prepare(&r, how_of(argc > 3 ? argv[3] : "calls"));
	while (!ret) {
		ret = recorder_step(&r);
		if (!ret && write(STDOUT_FILENO, &r.acked, sizeof(r.acked)) != sizeof(r.acked))
			break;
	}
	fprintf(stderr, "recorder: %d (%s) after %llu records\n", ret, rpma_err_2str(ret),
		(unsigned long long)r.acked);
	return 1;
}
