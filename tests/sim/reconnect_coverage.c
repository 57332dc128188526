/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconnect_coverage.c -- count the cases that runs of connections in a row reach, and report on
 * one run.
 */
#include "reconnect.h"
#include "softrnic/rnic/qp_impl.h"
#include "stall.h"

struct reconnect_coverage reconnect_seen;

static bool former_has_atomics(const struct node *t)
{
	const struct irq *irq = &t->qp->irq;

	for (uint32_t i = 0; i < irq->count; i++) {
		const struct irq_entry *e = &irq->ring[(irq->head + i) % irq->size];

		if (rdmap_ctrl_opcode(e->ddp.ulp) == RDMAP_EXT_REQ &&
		    e->msg.word.kind == EXT_ATOMIC_WRITE)
			return true;
	}
	return false;
}

/* Count where a former connection has bytes that could still be placed. */
static void former_look(const struct sim *sim)
{
	struct reconnect_coverage *seen = &reconnect_seen;
	const struct node *t = &sim->node[1];
	const struct link *l = &sim->link;

	if (!l->up || l->closed[1] || !t->qp || qp_is_failed(t->qp))
		return;
	seen->in_network += l->pipe[0].written > l->pipe[0].arrived && !l->error[1];
	seen->in_queue += !l->reads_ring[1] && link_readable(l, 1) > 0;
	seen->in_ring += l->reads_ring[1] && link_readable(l, 1) > 0;
	seen->in_buffer += qp_rx_buffered(&t->qp->rx) > 0;
	seen->in_placement += stall_is_stuck(t);
	seen->atomics_waiting += former_has_atomics(t);
}

void reconnect_seen_begin(struct sim *sim)
{
	reconnect_seen.connections++;
	reconnect_seen.later += sim->index > 0;
	for (unsigned c = 0; c < sim->index; c++)
		former_look(&sim->world->conn[c]);
}

void reconnect_seen_run(const struct world *w)
{
	reconnect_seen.runs++;
	reconnect_seen.events += w->events;
	for (unsigned c = 0; c < w->conns; c++)
		reconnect_seen.rings += w->conn[c].link.reads_ring[1];
	reconnect_seen.finished += w->reconnect->done_at > 0;
}

static const char *end_str(enum reconnect_end end)
{
	static const char *const names[] = {
#define X(name) #name,
		RECONNECT_ENDS(X)
#undef X
	};

	return names[end];
}

void reconnect_print(FILE *to)
{
	const struct reconnect_coverage *c = &reconnect_seen;

	fprintf(to, "%llu runs, %llu events\nends:", c->runs, c->events);
	for (int i = 0; i < END_COUNT; i++)
		fprintf(to, " %s %llu", end_str((enum reconnect_end)i), c->ends[i]);
	fprintf(to, "\nseen:");
#define X(name) fprintf(to, " " #name " %llu", c->name);
	RECONNECT_COVERAGE(X)
#undef X
	fprintf(to, "\n");
}

void reconnect_report(const struct world *w, FILE *to)
{
	const struct reconnect *r = w->reconnect;

	fprintf(to, "connections in a row, %s barrier:\n", r->barrier ? "with a" : "without a");
	for (unsigned i = 0; i < w->conns; i++) {
		const struct reconnect_conn *c = &r->conn[i];
		const struct node *n = w->conn[i].node;

		fprintf(to,
			"%u: %s after %u operations and %llu ns; %u posted, %u complete; rings %d; target "
			"%s, paused until %llu, stuck until %llu\n",
			i, end_str(c->end), c->ends_after, (unsigned long long)c->delete_ns,
			c->posted, c->completed, w->conn[i].link.reads_ring[1],
			stream_state_str(stream_state(n[1].stream)),
			(unsigned long long)n[1].paused_until,
			(unsigned long long)n[1].stuck_until);
	}
	scenario_print(&w->conn[0].sc, to);
}

bool reconnect_is_complete(FILE *to)
{
	const struct reconnect_coverage *c = &reconnect_seen;
	bool complete = true;

	for (int i = 0; i < END_COUNT; i++) {
		if (c->ends[i] > 0)
			continue;
		fprintf(to, "no connection ended by %s\n", end_str((enum reconnect_end)i));
		complete = false;
	}
#define X(name)                                                                                    \
	if (c->name == 0) {                                                                        \
		fprintf(to, "never seen: " #name "\n");                                            \
		complete = false;                                                                  \
	}
	RECONNECT_COVERAGE(X)
#undef X
	return complete;
}
