/* SPDX-License-Identifier: BSD-3-Clause */
#include "stall.h"

#include <assert.h>
#include <stdlib.h>
#include <ucontext.h>

#include "sim.h"

#define STALL_STACK (256u << 10)

/* One stack for each connection, for a stuck thread of the target. */
static struct stall {
	ucontext_t outside, inside;
	char *stack;
	struct node *n;
	stall_fn *fn;
	struct event event;
	bool busy; /* a node's run is in progress, stuck or not */
} stalls[WORLD_CONNS];

static struct stall *stall_running;

static struct stall *stall_of(const struct node *n)
{
	return &stalls[n->sim->index];
}

static void stall_main(void)
{
	struct stall *st = stall_running;

	st->fn(st->n, &st->event);
	st->busy = false;
}

/* Enter the stack. Returns when the node's run has ended or is stuck. */
static bool stall_enter(struct stall *st)
{
	assert(!stall_running);
	stall_running = st;
	if (swapcontext(&st->outside, &st->inside))
		abort();
	stall_running = NULL;
	return !st->busy;
}

bool stall_visit(struct node *n, stall_fn *fn, const struct event *e)
{
	struct stall *st = stall_of(n);

	assert(!st->busy);
	if (!st->stack)
		st->stack = malloc(STALL_STACK);
	if (!st->stack || getcontext(&st->inside))
		abort();
	st->n = n;
	st->fn = fn;
	st->event = *e;
	st->busy = true;
	st->inside.uc_stack.ss_sp = st->stack;
	st->inside.uc_stack.ss_size = STALL_STACK;
	st->inside.uc_link = &st->outside;
	makecontext(&st->inside, stall_main, 0);
	return stall_enter(st);
}

bool stall_go_on(struct node *n)
{
	assert(stall_of(n)->busy);
	return stall_enter(stall_of(n));
}

void stall_here(struct node *n)
{
	struct stall *st = stall_of(n);

	assert(st == stall_running);
	if (swapcontext(&st->inside, &st->outside))
		abort();
}

struct node *stall_visitor(void)
{
	return stall_running ? stall_running->n : NULL;
}

bool stall_is_stuck(const struct node *n)
{
	const struct stall *st = stall_of(n);

	return n->index == 1 && st->busy && st != stall_running;
}

void stall_fini(void)
{
	for (unsigned i = 0; i < WORLD_CONNS; i++) {
		free(stalls[i].stack);
		stalls[i].stack = NULL;
	}
}
