/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fill TARGET SET BYTE [over]: create the pool, and fill it repeatedly until this program is
 * killed. With "over": open the pool as soon as possible, fill it once, print "done", and close it.
 */
#include <errno.h>
#include <librpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL  (8u << 20)
#define PIECE (256u << 10)
#define LANES 4

static RPMEMpool *fill_open(char **argv, void *local)
{
	unsigned lanes = LANES;

	return argv[4] ? rpmem_open(argv[1], argv[2], local, POOL, &lanes, NULL)
		       : rpmem_create(argv[1], argv[2], local, POOL, &lanes, NULL);
}

/* Repeat the call as long as another session uses the pool. */
static RPMEMpool *fill_open_patiently(char **argv, void *local)
{
	RPMEMpool *pool = fill_open(argv, local);

	for (int i = 0; !pool && errno == EBUSY && i < 400; i++) {
		usleep(100000);
		pool = fill_open(argv, local);
	}
	return pool;
}

static int fill(RPMEMpool *pool)
{
	int rc = 0;

	for (unsigned at = 0, n = 0; at < POOL && !rc; at += PIECE, n++)
		rc = rpmem_flush(pool, at, PIECE, n % LANES, 0);
	for (unsigned lane = 0; lane < LANES && !rc; lane++)
		rc = rpmem_drain(pool, lane, 0);
	return rc;
}

int main(int argc, char **argv)
{
	void *local = aligned_alloc(4096, POOL);
	RPMEMpool *pool;

	if (argc < 4 || !local)
		return 2;
	memset(local, argv[3][0], POOL);
	pool = fill_open_patiently(argv, local);
	while (pool && !fill(pool)) {
		if (!argv[4])
			continue;
		puts("done");
		return rpmem_close(pool) ? 1 : 0;
	}
	fprintf(stderr, "fill: %s\n", rpmem_errormsg());
	return 1;
}
