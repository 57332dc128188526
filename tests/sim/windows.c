/* SPDX-License-Identifier: BSD-3-Clause */
/* windows.c -- a run with memory windows: its events, its end, and coverage. */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "workload.h"

static struct windows windows;
static struct world *running;
struct windows_coverage windows_seen;

/* --- the applications ----------------------------------------------------------------------- */

static bool win_is_flushed_at_end(const struct node *n, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_WR_FLUSH_ERR && (n->disconnecting || n->disconnected);
}

static void win_on_completion(struct node *n, const struct ibv_wc *wc)
{
	if (wc->wr_id >= RECV_ID)
		inbox_on_completion(n->box, n, wc);
	else if (n->index == 0)
		win_writer_on_completion(n, wc);
	else
		win_owner_on_completion(n, wc);
	if (n->sim->sc.unreliable && n->disconnected && n->index == 0)
		windows_seen.given_away += wc->status == IBV_WC_SUCCESS;
	if (wc->status == IBV_WC_SUCCESS || win_is_flushed_at_end(n, wc))
		return;
	windows_seen.errors += !win_of(n)->failed;
	win_of(n)->failed = true;
	if (!win_of(n)->may_fail)
		sim_violate(n->sim, "node %d: request %u, status %d, and no request was wrong",
			    n->index, (unsigned)wc->wr_id, wc->status);
}

/* Poll completions after each event, because they change which contents of the memory are
 * permitted. */
static void win_poll(struct node *n)
{
	struct ibv_wc wc[8];

	for (int q = 0; q < 2; q++) {
		struct cq *cq = q ? &n->recv_cq : &n->send_cq;
		int got;

		while ((got = cq_poll(cq, 8, wc)) > 0) {
			for (int i = 0; i < got; i++)
				win_on_completion(n, &wc[i]);
		}
	}
}

/* If the peer of an unreliable queue pair has left, posted operations are lost. */
static void win_give_away(struct node *n)
{
	struct stream_update u;

	if (!n->sim->sc.unreliable || !n->disconnected || !n->qp)
		return;
	stream_give_away(n->stream, &u);
}

/* A writer over UC does not notice that its peer has left, so it continues. */
static bool win_goes_on(const struct node *n)
{
	const struct win_conn *c = win_of(n);

	return n->index == 0 && n->sim->sc.unreliable && c->posted < c->planned && !c->failed;
}

static void win_tick(struct node *n)
{
	struct prng *rng = &n->sim->world->rng;

	if (n->index == 0)
		win_writer_tick(n);
	else
		win_owner_tick(n);
	win_give_away(n);
	if (n->disconnected && !n->disconnecting && !win_goes_on(n))
		workload_disconnect(n);
	node_pump(n);
	if (!n->ended)
		sim_at(n->sim, n->sim->world->now + 1 + prng_below(rng, n->sim->sc.tick_ns), EV_APP,
		       n->index, 0);
}

void windows_on_event(struct sim *sim, const struct event *e)
{
	if (e->kind == EV_APP)
		win_tick(&sim->node[e->node % 2]);
	else if (e->kind == EV_GIVE_UP)
		sim_violate(sim, "hang: %u of %u operations complete",
			    win_of(&sim->node[0])->completed, win_of(&sim->node[0])->planned);
	else
		sim_do_event(sim, e);
	win_check_cache(sim);
	win_poll(&sim->node[0]);
	win_poll(&sim->node[1]);
}

void windows_on_stream_event(struct node *n, enum stream_event event)
{
	switch (event) {
	case STREAM_EV_CONNECT_REQUEST:
		n->requested = true;
		break;
	case STREAM_EV_REPLIED: /* this event occurs only if queue pairs connect without rdma_cm */
		break;
	case STREAM_EV_ESTABLISHED:
		n->established = true;
		break;
	case STREAM_EV_DISCONNECTED:
	case STREAM_EV_LOST:
		n->disconnected = true;
		break;
	case STREAM_EV_REJECTED:
	case STREAM_EV_UNREACHABLE:
	case STREAM_EV_CONNECT_ERROR:
	case STREAM_EV_DEAD:
		sim_violate(n->sim, "node %d: no connection", n->index);
		break;
	}
}

/* --- a run ---------------------------------------------------------------------------------- */

static void run_prepare(struct world *w, uint64_t seed, const struct sim_options *opt)
{
	w->seed = seed;
	w->rng = (struct prng){.state = seed * 0x2545f4914f6cdd1dull + 1};
	w->now = w->events = w->cuts = 0;
	w->cut_often = w->powered_off = w->violated = false;
	w->reconnect = NULL;
	w->windows = &windows;
	running = w;
	sched_clear(&w->sched);
	world_start_hosts(w);
	win_plan(w, opt);
}

static bool run_is_over(struct world *w)
{
	bool over = true;

	for (unsigned c = 0; c < w->conns; c++)
		over &= w->conn[c].node[0].ended && w->conn[c].node[1].ended &&
			!w->conn[c].node[1].job.running;
	return over;
}

static void run_verdict(struct world *w)
{
	for (unsigned c = 0; c < w->conns; c++) {
		win_give_away(&w->conn[c].node[0]);
		win_give_away(&w->conn[c].node[1]);
		win_poll(&w->conn[c].node[0]);
		win_poll(&w->conn[c].node[1]);
		win_verdict(&w->conn[c]);
	}
}

static void run_stop(struct world *w)
{
	for (unsigned c = 0; c < w->conns; c++)
		win_give_back(&w->conn[c].node[1]);
	world_stop(w);
	w->windows = NULL;
	running = NULL;
}

bool windows_run(struct world *w, uint64_t seed, const struct sim_options *opt)
{
	struct event e;

	run_prepare(w, seed, opt);
	while (!w->violated && !run_is_over(w) && sched_pop(&w->sched, &e)) {
		w->now = e.at;
		w->events++;
		sim_on_event(&w->conn[e.node / 2], &e);
	}
	if (!w->violated)
		run_verdict(w);
	windows_seen.runs++;
	windows_seen.events += w->events;
	run_stop(w);
	return !w->violated;
}

bool windows_tears(void)
{
	return running && running->conn[0].sc.mode == SIM_HALF && prng_chance(&running->rng, 20);
}

void windows_fini(void)
{
	for (int i = 0; i < WIN_CONNS; i++) {
		free(windows.conn[i].shadow);
		free(windows.conn[i].floor);
	}
	memset(&windows, 0, sizeof(windows));
}

void windows_print(FILE *to)
{
	fprintf(to, "%llu runs, %llu events\n", windows_seen.runs, windows_seen.events);
#define X(name) fprintf(to, "  %-18s %llu\n", #name, windows_seen.name);
	WINDOWS_COVERAGE(X)
#undef X
}

bool windows_is_complete(FILE *to)
{
	bool complete = true;

#define X(name)                                                                                    \
	if (windows_seen.name == 0) {                                                              \
		complete = false;                                                                  \
		fprintf(to, "never happened: %s\n", #name);                                        \
	}
	WINDOWS_COVERAGE(X)
#undef X
	return complete;
}
