/* SPDX-License-Identifier: BSD-3-Clause */
#include "coverage.h"

static void add_op(struct coverage *c, const struct op *op)
{
	c->operations++;
	c->changing += op->changing;
	if (!op->done)
		return;
	c->reads += op->kind == OP_READ;
	c->reads_as_flush += op->kind == OP_READ && op->reads_flush;
	c->flushes += op->kind == OP_FLUSH;
	c->strict_flushes += op->kind == OP_FLUSH && op->strict;
	c->flushes_of_all += op->kind == OP_FLUSH_ALL;
	c->verifies += op->kind == OP_VERIFY;
	c->queries += op->kind == OP_QUERY;
	c->write_imms += op->kind == OP_WRITE_IMM;
	c->send_imms += op->kind == OP_SEND_IMM;
	c->fetch_adds += op->kind == OP_FETCH_ADD;
	c->cmp_swaps += op->kind == OP_CMP_SWAP;
	c->atomic_writes += op->kind == OP_ATOMIC_WRITE;
}

static void add_queue(struct coverage *c, const struct qp_counters *q)
{
	c->sends += q->sends_in;
	c->parked_sends += q->parked_sends;
	c->acks += q->acks_in;
	c->stalls += q->stalls;
	c->direct_bytes += q->rx_direct_bytes;
	c->crc_errors += q->crc_errors;
	c->terminates += q->terminates_in;
	c->writebacks += q->writebacks;
	c->writeback_failures += q->writeback_failures;
	c->bytes += q->rx_bytes;
}

static void add_node(struct coverage *c, const struct node *n)
{
	for (unsigned i = 0; i < n->model.posted; i++)
		add_op(c, &n->model.op[i]);
	if (n->qp)
		add_queue(c, qp_counters(n->qp));
	c->errors += n->model.failed;
	c->atomics_seen_early += n->model.observed;
	c->invalidates += n->lease_ended;
	c->lists += n->lists;
	c->refused_lists += n->refused_lists;
	c->waiting_writes += n->waiting_writes;
	c->solicited_events += n->events;
	c->evictions += n->evictions;
	c->shared_writebacks += n->shared;
	c->in_place_bytes += n->in_place_bytes;
	c->put_bytes += n->put_bytes;
	c->dax += n->sim->sc.dax[n->index];
	c->shared_srqs += n->own_box.shared;
}

static unsigned count_read_flushes(const struct model *m)
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->posted; i++)
		count += m->op[i].done && op_is_read_flush(&m->op[i]);
	return count;
}

static void add_conn(struct coverage *c, const struct sim *sim)
{
	const struct scenario *sc = &sim->sc;
	const struct qp_stream *agreed = stream_agreed(sim->node[0].stream);
	bool up = sim->node[0].established;

	c->connections++;
	c->fault_hit[sc->fault] += sim->fault_hit || sim->world->powered_off ||
				   sim->node[sc->fault_node].paused_until > 0;
	c->established += up;
	c->rejected += sc->fault == FAULT_REJECT && !up;
	c->redialled += sim->redials > 0 && up;
	c->crc += up && agreed->crc;
	c->no_crc += up && !agreed->crc;
	c->consent += up && agreed->consent;
	c->no_consent += up && !agreed->consent;
	for (int i = 0; i < 2 && agreed->consent; i++)
		c->consented_read_flushes += count_read_flushes(&sim->node[i].model);
	c->peer_to_peer += up && agreed->rtr_out != QP_RTR_NONE;
	c->revision_1 += up && sc->revision == 1;
	c->rings += sim->link.reads_ring[0] || sim->link.reads_ring[1];
	c->rings_both_ways += sim->link.reads_ring[0] && sim->link.reads_ring[1];
	c->scrambled_headers += sim->node[0].scrambled + sim->node[1].scrambled;
	c->rings_refused +=
		sim->node[1].meets && sim->node[1].established && !sim->link.sends_ring[0];
	add_node(c, &sim->node[0]);
	add_node(c, &sim->node[1]);
}

void coverage_add(struct coverage *c, const struct world *w)
{
	c->runs++;
	c->events += w->events;
	c->power_cuts += w->cuts;
	for (unsigned i = 0; i < w->conns; i++)
		add_conn(c, &w->conn[i]);
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

/* Returns true if each kind of fault has happened. Prints the kinds that have not. */
static bool faults_happened(const struct coverage *c, FILE *to)
{
	bool all = true;

	for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++) {
		if (c->fault_hit[i] > 0)
			continue;
		fprintf(to, "fault %s never happened\n", scenario_fault_str((enum sim_fault)i));
		all = false;
	}
	return all;
}

bool coverage_is_complete(const struct coverage *c, const struct sim_options *opt, FILE *to)
{
	bool complete;

	if (opt->cut_often)
		return c->power_cuts > c->runs && c->atomics_seen_early > 0;
	complete = faults_happened(c, to);
#define X(name)                                                                                    \
	if (c->name == 0) {                                                                        \
		fprintf(to, "never seen: " #name "\n");                                            \
		complete = false;                                                                  \
	}
	COVERAGE(X)
#undef X
	return complete;
}
