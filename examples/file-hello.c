/* SPDX-License-Identifier: BSD-3-Clause */
/* file-hello -- make nineteen bytes durable on another machine: file-hello HOST[:PORT][:REGION] */
#include <err.h>
#include <librpmafile.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct rpma_file *file;

	if (argc != 2 || rpma_file_open(argv[1], NULL, &file) ||
	    rpma_file_pwrite(file, "durable over there\n", 19, 0) || rpma_file_sync(file, NULL, 0))
		errx(EXIT_FAILURE, "%s", rpma_file_errormsg());
	return rpma_file_close(&file) ? EXIT_FAILURE : EXIT_SUCCESS;
}
