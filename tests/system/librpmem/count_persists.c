/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count_persists SIZE N [read]: makes N persists, or N reads, of SIZE bytes, for counts.sh and for
 * measurements.
 */
#include "system/librpmem/place.h"

#include "base/clock.h"

int main(int argc, char **argv)
{
	static unsigned char buff[PLACE_POOL];
	size_t size = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0, lanes = 1;
	bool reads = argc > 3;
	uint64_t begin;
	RPMEMpool *rpp;
	int rc = 0;

	place_main(argv);
	if (place_setup(NULL))
		return 1;
	rpp = rpmem_create("localhost", "pool.set", place_local, PLACE_POOL, &lanes, &place_attr);
	if (!rpp) {
		fprintf(stderr, "%s\n", rpmem_errormsg());
		return 1;
	}
	begin = clock_now_ns();
	for (unsigned i = 0; i < n && !rc; i++)
		rc = reads ? rpmem_read(rpp, buff, 8192, size, 0)
			   : rpmem_persist(rpp, 8192, size, 0, 0);
	printf("%.2f us each\n", (double)(clock_now_ns() - begin) / 1e3 / (n ? n : 1));
	if (rc)
		fprintf(stderr, "%s\n", rpmem_errormsg());
	return rpmem_close(rpp) || rc;
}
