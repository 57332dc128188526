/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting_sim: run two meetings on a virtual network thousands of times, each time with another
 * seed.
 *
 *   meeting_sim [-v] [-m mode] [first seed [count]]
 *
 * A mode breaks a rule on purpose. The program then succeeds if a run detects the breach.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

uint64_t sim_dials, sim_accepts, sim_parked, sim_rejects, sim_yields, sim_fails, sim_losses,
	sim_unused, sim_selves, sim_unacknowledged;

static const char *const mode_names[] = {
#define X(name, text) text,
	SIM_MODES(X)
#undef X
};
#define N_MODES (sizeof(mode_names) / sizeof(*mode_names))

void sim_note(const struct sim *sim, const char *fmt, ...)
{
	va_list args;

	if (!sim->verbose)
		return;
	va_start(args, fmt);
	printf("%14.6f ms  ", (double)sim->now / 1e6);
	vprintf(fmt, args);
	putchar('\n');
	va_end(args);
}

void sim_violates(struct sim *sim, const char *what)
{
	if (!sim->violation)
		sim->violation = what;
	sim_note(sim, "violation: %s", what);
}

uint64_t sim_delay(struct sim *sim)
{
	return prng_below(&sim->prng,
			  prng_chance(&sim->prng, 80) ? sim->delay_ns / 4 + 1 : sim->delay_ns);
}

/* --- events, kept in a heap --------------------------------------------------------------- */

static bool event_is_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_add(struct sim *sim, uint64_t delay, enum event_kind kind, int end, struct conn *conn,
	     uint32_t arg)
{
	struct sim_event ev = {.at = sim->now + delay,
			       .order = sim->order++,
			       .kind = kind,
			       .end = end,
			       .conn = conn,
			       .arg = arg};
	int i = sim->n_events;

	if (i == EVENTS_MAX) {
		sim_violates(sim, "too much is on its way");
		return;
	}
	sim->n_events++;
	while (i > 0 && event_is_before(&ev, &sim->heap[(i - 1) / 2])) {
		sim->heap[i] = sim->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	sim->heap[i] = ev;
}

static struct sim_event sim_next(struct sim *sim)
{
	struct sim_event first = sim->heap[0], last = sim->heap[--sim->n_events];
	int i = 0, child;

	while ((child = 2 * i + 1) < sim->n_events) {
		if (child + 1 < sim->n_events &&
		    event_is_before(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!event_is_before(&sim->heap[child], &last))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = last;
	return first;
}

static void sim_happen(struct sim *sim, const struct sim_event *ev)
{
	struct end *e = &sim->end[ev->end];

	if (ev->kind == EV_TIMER)
		end_on_timer(e, ev->arg);
	else if (ev->kind == EV_LATE)
		end_on_late(e, ev->arg, prng_below(&sim->prng, 6));
	else if (ev->kind == EV_TROUBLE)
		user_trouble(e);
	else if (ev->kind == EV_STRANGER)
		user_stranger(sim, e);
	else if (ev->kind == EV_PEACE)
		user_makes_peace(sim);
	else if (ev->kind == EV_COME_AGAIN && !e->up)
		end_come_up(e);
	else if (ev->kind < EV_LATE)
		conn_on(sim, ev);
}

bool sim_run(struct sim *sim, uint64_t seed, enum sim_mode mode, bool verbose)
{
	struct conn *conns = sim->conns;
	struct sim_event *heap = sim->heap;

	*sim = (struct sim){.seed = seed,
			    .prng.state = seed,
			    .mode = mode,
			    .conns = conns,
			    .heap = heap,
			    .verbose = verbose,
			    .now = NSEC_PER_SEC};
	user_plan(sim);
	while (!sim->violation) {
		struct sim_event ev;

		if (!sim->n_events) {
			sim_violates(sim, "nothing is on its way, and no timer runs");
			break;
		}
		ev = sim_next(sim);
		sim->now = ev.at;
		sim_happen(sim, &ev);
		oracle_check(sim);
		if (sim->peace && oracle_is_done(sim))
			break;
	}
	return !sim->violation;
}

/* --- the program -------------------------------------------------------------------------------- */

static int usage(void)
{
	fprintf(stderr, "usage: meeting_sim [-v] [-m mode] [first seed [count]]\nmodes:");
	for (size_t i = 0; i < N_MODES; i++)
		fprintf(stderr, " %s", mode_names[i]);
	fputc('\n', stderr);
	return 2;
}

static enum sim_mode mode_of(const char *name)
{
	for (size_t i = 0; i < N_MODES; i++)
		if (!strcmp(name, mode_names[i]))
			return (enum sim_mode)i;
	exit(usage());
}

/* Returns true if the runs covered every case. Runs prove nothing if no two ends met, or if no dial
 * was parked, or if no end failed. */
static bool covers(void)
{
	const uint64_t counts[] = {sim_dials,  sim_accepts,       sim_parked, sim_rejects,
				   sim_yields, sim_fails,         sim_losses, sim_unused,
				   sim_selves, sim_unacknowledged};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (!counts[i])
			return false;
	return true;
}

static int judge(enum sim_mode mode, const char *violation, uint64_t seed, uint64_t count)
{
	printf("dials %" PRIu64 ", accepted %" PRIu64 ", parked %" PRIu64 ", rejected %" PRIu64
	       ", gave way %" PRIu64 ", failed %" PRIu64 ", lost %" PRIu64 ", unused %" PRIu64
	       ", own peer %" PRIu64 ", lost with messages %" PRIu64 "\n",
	       sim_dials, sim_accepts, sim_parked, sim_rejects, sim_yields, sim_fails, sim_losses,
	       sim_unused, sim_selves, sim_unacknowledged);
	if (violation)
		printf("seed %" PRIu64 ": %s\n", seed, violation);
	if (mode != SIM_HONEST) {
		if (!violation)
			printf("the changed rule was not noticed\n");
		return !violation;
	}
	if (!violation && count >= 1000 && !covers()) {
		printf("something never happened\n");
		return 1;
	}
	return violation != NULL;
}

int main(int argc, char *argv[])
{
	enum sim_mode mode = SIM_HONEST;
	bool verbose = false;
	uint64_t seed, count, end;
	struct sim *sim = calloc(1, sizeof(*sim));
	int c;

	while ((c = getopt(argc, argv, "vm:")) != -1) {
		if (c == 'v')
			verbose = true;
		else if (c == 'm')
			mode = mode_of(optarg);
		else
			return usage();
	}
	seed = optind < argc ? strtoull(argv[optind], NULL, 10) : 1;
	count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10) : 1000;
	sim->conns = calloc(CONNS_MAX, sizeof(*sim->conns));
	sim->heap = calloc(EVENTS_MAX, sizeof(*sim->heap));
	for (end = seed + count; seed < end && sim_run(sim, seed, mode, verbose);)
		seed++;
	c = judge(mode, sim->violation, seed, count);
	free(sim->heap);
	free(sim->conns);
	free(sim);
	return c;
}
