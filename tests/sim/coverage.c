/* SPDX-License-Identifier: BSD-3-Clause */
#include "coverage.h"

static void add_node(struct coverage *c, const struct node *n)
{
	const struct qp_counters *q = qp_counters(n->qp);
	const struct model *m = &n->model;

	for (unsigned i = 0; i < m->posted; i++) {
		const struct op *op = &m->op[i];

		c->operations++;
		c->restless += op->restless;
		c->reads += op->done && op->kind == OP_READ;
		c->flushes += op->done && op->kind == OP_FLUSH;
		c->reads_as_flush += op->done && op->kind == OP_READ && op->reads_flush;
	}
	c->sends += q->sends_in;
	c->parked_sends += q->parked_sends;
	c->stalls += q->stalls;
	c->direct_bytes += q->rx_direct_bytes;
	c->crc_errors += q->crc_errors;
	c->terminates += q->terminates_in;
	c->writebacks += q->writebacks;
	c->writeback_failures += q->writeback_failures;
	c->bytes += q->rx_bytes;
	c->errors += m->failed;
}

void coverage_add(struct coverage *c, const struct sim *sim)
{
	const struct scenario *sc = &sim->sc;
	const struct qp_stream *agreed = cm_stream_agreed(sim->node[0].stream);
	bool up = sim->node[0].established;

	c->runs++;
	c->events += sim->events;
	c->fault_hit[sc->fault] += sim->fault_hit || sim->dark;
	c->established += up;
	c->rejected += sc->fault == FAULT_REJECT && !up;
	c->redialled += sim->redials > 0 && up;
	c->crc += up && agreed->crc;
	c->no_crc += up && !agreed->crc;
	c->consent += up && agreed->consent;
	c->no_consent += up && !agreed->consent;
	c->peer_to_peer += up && agreed->rtr_out != QP_RTR_NONE;
	c->revision_1 += up && sc->revision == 1;
	add_node(c, &sim->node[0]);
	add_node(c, &sim->node[1]);
}

void coverage_print(const struct coverage *c, FILE *to)
{
	fprintf(to, "%llu runs, %llu events\nfaults:", c->runs, c->events);
	for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++)
		fprintf(to, " %s %llu", scenario_fault_str((enum sim_fault)i), c->fault_hit[i]);
	fprintf(to, "\nseen:");
#define X(name) fprintf(to, " " #name " %llu", c->name);
	COVERAGE(X)
#undef X
	fprintf(to, "\n");
}

bool coverage_is_complete(const struct coverage *c, FILE *to)
{
	bool complete = true;

	for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++) {
		if (c->fault_hit[i] == 0) {
			fprintf(to, "fault %s never happened\n",
				scenario_fault_str((enum sim_fault)i));
			complete = false;
		}
	}
#define X(name)                                                                                    \
	if (c->name == 0) {                                                                        \
		fprintf(to, "never seen: " #name "\n");                                            \
		complete = false;                                                                  \
	}
	COVERAGE(X)
#undef X
	return complete;
}
