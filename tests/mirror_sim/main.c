/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror_sim: run a mirror set with faults thousands of times, each time with another seed.
 *
 *   mirror_sim [-m mode] [-d] [-k] [-r] [-v] [-t seconds] [first seed [count]]
 *
 *   -m breaks a rule on purpose; the program succeeds when it finds a violation
 *   -d   a direct mapping: stores are in the file before they are flushed
 *   -k continue after a violation, and count the violations
 *   -r   the register is restored from an old snapshot at a random time
 *   -v   trace, for one seed
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "sim.h"

static const char *const modes[SIM_MODES] = {
#define SIM_MODE(name, text) [SIM_##name] = text,
	SIM_MODES_LIST(SIM_MODE)
#undef SIM_MODE
};

static struct world world;

static void usage(void)
{
	fprintf(stderr, "usage: mirror_sim [-m mode] [-d] [-k] [-r] [-v] [-t seconds] "
			"[first seed [count]]\n"
			"modes:");
	for (unsigned i = 0; i < SIM_MODES; i++)
		fprintf(stderr, " %s", modes[i]);
	fprintf(stderr, "\n");
	exit(2);
}

static enum sim_mode mode_of(const char *name)
{
	for (unsigned i = 0; i < SIM_MODES; i++)
		if (strcmp(name, modes[i]) == 0)
			return (enum sim_mode)i;
	usage();
	return SIM_HONEST;
}

static void report_violation(void)
{
	printf("seed %llu, at %llu us: %s\n", (unsigned long long)world.seed,
	       (unsigned long long)world.now, world.violation);
	fflush(stdout);
}

static void report(void)
{
	const struct counters *c = &world.count;

#define SHOW(x) printf("%s %llu ", #x, (unsigned long long)c->x)
	SHOW(runs), SHOW(events), SHOW(flushes), SHOW(acks), SHOW(serves), SHOW(shrinks);
	SHOW(expands), SHOW(fills), SHOW(joins), SHOW(wholes), SHOW(repairs), SHOW(crashes),
		SHOW(powercuts);
	SHOW(stops), SHOW(demotes), SHOW(fenced), SHOW(late), SHOW(configs), SHOW(splits);
	SHOW(restores), SHOW(unhealed), SHOW(step_checks), SHOW(rots), SHOW(replaced);
	SHOW(forces), SHOW(discards), SHOW(grows), SHOW(refused), SHOW(taken);
	SHOW(media), SHOW(local_failures), SHOW(lost), SHOW(orders);
	printf("\n");
}

/* Returns the number of violations. */
static uint64_t run_all(uint64_t first, uint64_t count, enum sim_mode mode, bool restore,
			bool goes_on, uint64_t until)
{
	uint64_t found = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (!world_run(&world, first + i, mode, restore)) {
			report_violation();
			found++;
			if (!goes_on)
				break;
		}
		if (until && clock_now_ns() > until)
			break;
	}
	return found;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, count = 1000, until = 0, began = clock_now_ns(), found;
	enum sim_mode mode = SIM_HONEST;
	bool restore = false, goes_on = false;
	int opt;

	while ((opt = getopt(argc, argv, "dm:krvt:")) != -1) {
		if (opt == 'm')
			mode = mode_of(optarg);
		else if (opt == 'd')
			world.direct = true;
		else if (opt == 'k')
			goes_on = true;
		else if (opt == 'r')
			restore = true;
		else if (opt == 'v')
			world.trace = true;
		else if (opt == 't')
			until = began + strtoull(optarg, NULL, 0) * NSEC_PER_SEC;
		else
			usage();
	}
	if (optind < argc)
		first = strtoull(argv[optind], NULL, 0);
	if (optind + 1 < argc)
		count = strtoull(argv[optind + 1], NULL, 0);
	log_set_from_env("SIM_LOG");
	found = run_all(first, count, mode, restore, goes_on, until);
	report();
	printf("violations %llu, %.1f s\n", (unsigned long long)found,
	       (double)(clock_now_ns() - began) / NSEC_PER_SEC);
	world_fini(&world);
	return mode == SIM_HONEST ? found != 0 : found == 0;
}
