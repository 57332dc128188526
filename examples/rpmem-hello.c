/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem-hello -- a piece of memory and its copy on another machine: create or open, persist, close.
 *
 * The first page of a pool is its header, which the target writes; the text follows it. When
 * rpmem_persist() has returned, the text is on the target's medium.
 */
#include <err.h>
#include <librpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POOL_SIZE (32UL << 20)
#define TEXT_AT   4096
#define TEXT_SIZE 4096
#define LANE      0 /* one thread needs one lane */

/* librpmem.h marks every function as deprecated, like PMDK's header. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void must(int failed, const char *what)
{
	if (failed)
		err(EXIT_FAILURE, "%s: %s", what, rpmem_errormsg());
}

static RPMEMpool *connect_pool(char **args, char *pool)
{
	const struct rpmem_pool_attr attr = {.signature = "HELLO"};
	unsigned lanes = 1;
	RPMEMpool *rpp;

	if (strcmp(args[1], "create") == 0)
		rpp = rpmem_create(args[2], args[3], pool, POOL_SIZE, &lanes, &attr);
	else
		rpp = rpmem_open(args[2], args[3], pool, POOL_SIZE, &lanes, NULL);
	must(!rpp, args[1]);
	return rpp;
}

int main(int argc, char **argv)
{
	char *pool;
	RPMEMpool *rpp;

	if (argc < 4 || argc > 5)
		errx(EXIT_FAILURE, "usage: create|open TARGET POOL_SET [TEXT]");
	/*
	 * Any memory of whole pages will do. A program that must find its data again maps a file.
	 */
	pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool == MAP_FAILED)
		err(EXIT_FAILURE, "memory");
	rpp = connect_pool(argv, pool);
	if (argc == 5) {
		if (snprintf(pool + TEXT_AT, TEXT_SIZE, "%s", argv[4]) >= TEXT_SIZE)
			errx(EXIT_FAILURE, "the text is longer than %d bytes", TEXT_SIZE - 1);
		must(rpmem_persist(rpp, TEXT_AT, TEXT_SIZE, LANE, 0), "persist");
		puts("the text is on the target's medium");
	} else {
		must(rpmem_read(rpp, pool + TEXT_AT, TEXT_AT, TEXT_SIZE, LANE), "read");
		printf("the target has: %.*s\n", TEXT_SIZE, pool + TEXT_AT);
	}
	must(rpmem_close(rpp), "close");
	return EXIT_SUCCESS;
}
