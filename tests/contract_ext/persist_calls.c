/* SPDX-License-Identifier: BSD-3-Clause */
/* persist_calls.c -- post COUNT writes to a file or to memory, and a persistent flush after each
 * write. persist_calls.sh counts the system calls with strace. */
#include <stdlib.h>
#include <string.h>

#include "ends_ext.h"

enum { SIZE = 65536, LEN = 64 };

static struct {
	bool file;
	unsigned count;
} asked;

static void flushes(void **state)
{
	struct ends_file file;
	struct rpma_mr_remote *at;
	struct ends d;

	ends_open(&d, NULL);
	ends_permit_persistent(d.cli);
	ends_file_open(&file, &d, SIZE);
	at = asked.file ? file.remote : d.at_srv;
	for (unsigned i = 0; i < asked.count; i++) {
		size_t offset = i % 4 * LEN;

		OK(rpma_write(d.cli, at, offset, d.cli_mr, 0, LEN, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		OK(rpma_flush(d.cli, at, offset, LEN, RPMA_FLUSH_TYPE_PERSISTENT,
			      RPMA_F_COMPLETION_ALWAYS, &d));
		ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	}
	ends_file_close(&file);
	ends_close(&d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(flushes)};

	if (argc != 3)
		return 1;
	asked.file = !strcmp(argv[1], "file");
	asked.count = (unsigned)strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
