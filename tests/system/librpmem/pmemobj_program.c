/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmemobj_program create|fill|check SET ...: a program of libpmemobj, without any code for
 * librpmem.
 *
 *   create SET          make the pool, with a root object
 *   fill SET THREADS N  N transactions in each thread, each of which adds one to a row of counters
 *   check SET TOTAL     the counters of each row are equal, and their sum is TOTAL
 *   offset SET          the offset and the size of the root object in the pool
 */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS    8
#define COLUMNS 16

struct root {
	uint64_t counters[ROWS][COLUMNS];
};

static PMEMobjpool *pool;
static unsigned transactions;

static struct root *root_of(PMEMoid *oid)
{
	*oid = pmemobj_root(pool, sizeof(struct root));
	return pmemobj_direct(*oid);
}

static void *fill(void *arg)
{
	PMEMoid oid;
	struct root *root = root_of(&oid);
	uint64_t *row = root->counters[(size_t)arg % ROWS];

	for (unsigned i = 0; i < transactions; i++) {
		TX_BEGIN(pool)
		{
			pmemobj_tx_add_range_direct(row, sizeof(root->counters[0]));
			for (int c = 0; c < COLUMNS; c++)
				row[c]++;
		}
		TX_ONABORT
		{
			fprintf(stderr, "aborted: %s\n", pmemobj_errormsg());
			exit(1);
		}
		TX_END
	}
	return NULL;
}

static int check(uint64_t total)
{
	PMEMoid oid;
	struct root *root = root_of(&oid);
	uint64_t sum = 0;

	for (int r = 0; r < ROWS; r++) {
		for (int c = 1; c < COLUMNS; c++)
			if (root->counters[r][c] != root->counters[r][0])
				return 1;
		sum += root->counters[r][0];
	}
	if (sum != total)
		fprintf(stderr, "%llu transactions, not %llu\n", (unsigned long long)sum,
			(unsigned long long)total);
	return sum != total;
}

static int fill_all(size_t threads)
{
	pthread_t ids[ROWS];

	for (size_t i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, fill, (void *)i))
			return 1;
	for (size_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

static int show_offset(void)
{
	PMEMoid oid;

	root_of(&oid);
	printf("%llu %zu\n", (unsigned long long)oid.off, sizeof(struct root));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	PMEMoid oid;
	int rc = 2;

	if (!strcmp(what, "create"))
		pool = pmemobj_create(argv[2], "counters", 0, 0600);
	else if (*what)
		pool = pmemobj_open(argv[2], "counters");
	if (!pool) {
		fprintf(stderr, "%s: %s\n", what, pmemobj_errormsg());
		return 1;
	}
	transactions = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	if (!strcmp(what, "create"))
		rc = !root_of(&oid);
	else if (!strcmp(what, "fill") && argc > 4)
		rc = fill_all((size_t)atoi(argv[3]) % (ROWS + 1));
	else if (!strcmp(what, "check") && argc > 3)
		rc = check((uint64_t)atoll(argv[3]));
	else if (!strcmp(what, "offset"))
		rc = show_offset();
	pmemobj_close(pool);
	return rc;
}
