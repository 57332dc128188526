/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim: run two software RNICs on a virtual link, thousands of times, each time with another seed.
 *
 *   sim [-m mode] [-d | -p | -r | -w] [-t seconds] [first seed [count]]
 *
 *   -m   honest, or a mode that is broken on purpose: see scenario.h
 *   -d   datagrams, without connections
 *   -p   the power may fail at every boundary of every write-back
 *   -r   connections in a row, which write to the same place
 *   -w   memory windows, over reliable and unreliable queue pairs
 *
 * With a broken mode the program succeeds if it finds a violation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"
#include "coverage.h"
#include "datagram.h"
#include "reconnect.h"
#include "sim.h"
#include "windows.h"

#define COVERED_RUNS      2000 /* after this number of runs every case must have happened */
#define COVERED_DATAGRAMS 300
#define COVERED_WINDOWS   300
#define COVERED_IN_ROWS   600 /* for connections in a row */

static struct world world;
static struct coverage coverage;

/* Take random numbers, such as STags, from the seed (--wrap=rand_bytes). */
void __wrap_rand_bytes(void *buf, size_t len);
void __wrap_rand_bytes(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len-- > 0)
		*p++ = (uint8_t)prng_next(&world.rng);
}

static const char *const modes[] = {
	[SIM_HONEST] = "honest",
	[SIM_EARLY_ACK] = "early-ack",
	[SIM_NO_WRITEBACK] = "no-writeback",
	[SIM_PLAIN_READS] = "plain-reads",
	[SIM_JOINS] = "joins",
	[SIM_EAGER_ATOMIC] = "eager-atomic",
	[SIM_IGNORED_SWITCH] = "ignored-switch",
	[SIM_OLD_LINK] = "old-link",
	[SIM_READ_TWICE] = "read-twice",
	[SIM_HASTY_ACK] = "hasty-ack",
	[SIM_GRACEFUL_CLOSE] = "graceful-close",
	[SIM_NO_MARK] = "no-mark",
	[SIM_NO_LOOK] = "no-look",
	[SIM_NO_BARRIER] = "no-barrier",
	[SIM_BARRIER_EARLY] = "barrier-early",
	[SIM_LATE_ORIGIN] = "late-origin",
	[SIM_NO_LEAVE] = "no-leave",
	[SIM_NAMES_ALL] = "names-all",
	[SIM_NO_OWNER] = "no-owner",
	[SIM_UNPROTECTED] = "unprotected",
	[SIM_BARRIER_ALONE] = "barrier-alone",
	[SIM_ANY_KEY] = "any-key",
	[SIM_TORN] = "torn",
	[SIM_NO_WINDOW] = "no-window",
	[SIM_EARLY_SENT] = "early-sent",
	[SIM_LOOSE_WINDOW] = "loose-window",
	[SIM_ANY_QP] = "any-queue-pair",
	[SIM_KEPT_WINDOW] = "kept-window",
	[SIM_HALF] = "half",
	[SIM_BLIND] = "blind",
};
#define N_MODES (sizeof(modes) / sizeof(modes[0]))

static void usage(void)
{
	fprintf(stderr,
		"usage: sim [-m mode] [-d | -p | -r | -w] [-t seconds] [first seed [count]]\nmodes:");
	for (size_t i = 0; i < N_MODES; i++)
		fprintf(stderr, " %s", modes[i]);
	fprintf(stderr, "\n");
	exit(2);
}

static enum sim_mode mode_of(const char *name)
{
	for (size_t i = 0; i < N_MODES; i++) {
		if (strcmp(name, modes[i]) == 0)
			return (enum sim_mode)i;
	}
	usage();
	return SIM_HONEST;
}

static void report(const struct sim_options *opt)
{
	printf("seed %llu: %s\n", (unsigned long long)world.seed, world.violation);
	printf("at %llu ns, after %llu events\n", (unsigned long long)world.now,
	       (unsigned long long)world.events);
	if (opt->datagrams)
		datagram_report(stdout);
	for (unsigned i = 0; i < world.conns && !world.reconnect; i++) {
		printf("connection %u of %u:\n", i, world.conns);
		scenario_print(&world.conn[i].sc, stdout);
	}
}

static bool run_one(uint64_t seed, const struct sim_options *opt)
{
	if (opt->datagrams)
		return datagram_run(&world, seed, opt);
	if (opt->windows)
		return windows_run(&world, seed, opt);
	return opt->reconnects ? reconnect_run(&world, seed, opt)
			       : world_run(&world, seed, opt, &coverage);
}

/* Run until the first violation, or until the time is up. */
static void run_seeds(uint64_t first, uint64_t count, const struct sim_options *opt, uint64_t until)
{
	for (uint64_t i = 0; i < count; i++) {
		if (!run_one(first + i, opt))
			return;
		if (until && clock_now_ns() > until)
			return;
	}
}

/* With a broken mode a run must violate a rule. With the honest mode no run is allowed to violate
 * one, and all cases must be covered. */
static int exit_code(const struct sim_options *opt)
{
	if (opt->mode != SIM_HONEST && opt->mode != SIM_BARRIER_ALONE)
		return !world.violated;
	if (world.violated)
		return 1;
	if (opt->datagrams)
		return datagram_seen.runs >= COVERED_DATAGRAMS && !datagram_is_complete(stdout);
	if (opt->windows)
		return windows_seen.runs >= COVERED_WINDOWS && !windows_is_complete(stdout);
	if (opt->reconnects)
		return opt->mode == SIM_HONEST && reconnect_seen.runs >= COVERED_IN_ROWS &&
		       !reconnect_is_complete(stdout);
	return coverage.runs >= COVERED_RUNS && !coverage_is_complete(&coverage, opt, stdout);
}

int main(int argc, char **argv)
{
	struct sim_options options = {.mode = SIM_HONEST};
	uint64_t first = 1, count = 1000, until = 0, began = clock_now_ns();
	int opt;

	while ((opt = getopt(argc, argv, "dm:prt:w")) != -1) {
		if (opt == 'm')
			options.mode = mode_of(optarg);
		else if (opt == 'd')
			options.datagrams = true;
		else if (opt == 'p')
			options.cut_often = true;
		else if (opt == 'r')
			options.reconnects = true;
		else if (opt == 'w')
			options.windows = true;
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
	run_seeds(first, count, &options, until);
	if (world.violated)
		report(&options);
	if (options.datagrams)
		datagram_print(stdout);
	else if (options.windows)
		windows_print(stdout);
	else if (options.reconnects)
		reconnect_print(stdout);
	else
		coverage_print(&coverage, stdout);
	printf("%.1f s\n", (double)(clock_now_ns() - began) / NSEC_PER_SEC);
	world_fini(&world);
	reconnect_fini();
	datagram_fini();
	windows_fini();
	return exit_code(&options);
}
