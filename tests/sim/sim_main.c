/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim: two software RNICs on a virtual link, thousands of times, each from a seed.
 *
 *   sim [-m honest|early-ack|blind] [-t seconds] [first seed [count]]
 *
 * The broken modes succeed when a violation is found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"
#include "coverage.h"
#include "sim.h"

#define COVERED_RUNS 2000 /* after so many everything must have happened */

static struct sim sim;
static struct coverage coverage;

/* STags and whatever else must be unpredictable is predictable here: --wrap=rand_bytes. */
void __wrap_rand_bytes(void *buf, size_t len);
void __wrap_rand_bytes(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len-- > 0)
		*p++ = (uint8_t)prng_next(&sim.rng);
}

static void usage(void)
{
	fprintf(stderr,
		"usage: sim [-m honest|early-ack|blind] [-t seconds] [first seed [count]]\n");
	exit(2);
}

static enum sim_mode mode_of(const char *name)
{
	if (strcmp(name, "honest") == 0)
		return SIM_HONEST;
	if (strcmp(name, "early-ack") == 0)
		return SIM_EARLY_ACK;
	if (strcmp(name, "blind") == 0)
		return SIM_BLIND;
	usage();
	return SIM_HONEST;
}

static void report(void)
{
	printf("seed %llu: %s\n", (unsigned long long)sim.seed, sim.violation);
	printf("at %llu ns, after %llu events\n", (unsigned long long)sim.now,
	       (unsigned long long)sim.events);
	scenario_print(&sim.sc, stdout);
}

/* Until the first violation, or until time is up. */
static void run(uint64_t first, uint64_t count, enum sim_mode mode, uint64_t until)
{
	for (uint64_t i = 0; i < count; i++) {
		if (!sim_run(&sim, first + i, mode, &coverage))
			return;
		if (until && clock_now_ns() > until)
			return;
	}
}

/* The broken modes must be noticed; the honest one must be clean, and must have seen it all. */
static int verdict(enum sim_mode mode)
{
	if (mode != SIM_HONEST)
		return !sim.violated;
	if (sim.violated)
		return 1;
	return coverage.runs >= COVERED_RUNS && !coverage_is_complete(&coverage, stdout);
}

int main(int argc, char **argv)
{
	enum sim_mode mode = SIM_HONEST;
	uint64_t first = 1, count = 1000, until = 0, began = clock_now_ns();
	int opt;

	while ((opt = getopt(argc, argv, "m:t:")) != -1) {
		if (opt == 'm')
			mode = mode_of(optarg);
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
	run(first, count, mode, until);
	if (sim.violated)
		report();
	coverage_print(&coverage, stdout);
	printf("%.1f s\n", (double)(clock_now_ns() - began) / NSEC_PER_SEC);
	sim_fini(&sim);
	return verdict(mode);
}
