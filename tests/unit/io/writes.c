/* SPDX-License-Identifier: BSD-3-Clause */
#include "writes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* --- a clock that can stand still --------------------------------------------------------- */

static atomic_bool stopped;
static _Atomic uint64_t stopped_at;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC || !atomic_load(&stopped))
		return __real_clock_gettime(clock, ts);
	*ts = (struct timespec){.tv_sec = (time_t)(stopped_at / NSEC_PER_SEC),
				.tv_nsec = (long)(stopped_at % NSEC_PER_SEC)};
	return 0;
}

void stop_clock(void)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	stopped_at = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
	atomic_store(&stopped, true);
}

void advance_clock(uint64_t ns)
{
	atomic_fetch_add(&stopped_at, ns);
}

void start_clock(void)
{
	atomic_store(&stopped, false);
}

/* --- two ends; one writes to the other's memory ------------------------------------------- */

void pair_register(struct pair *p)
{
	p->target = softrnic_reg_mr(p->ends.server.pd, (void *)p->words, sizeof(p->words),
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_REMOTE_READ);
	assert_non_null(p->target);
	p->addr = (uintptr_t)p->words;
	p->rkey = p->target->rkey;
}

void pair_open(struct pair *p)
{
	struct rdma_conn_param param = {.initiator_depth = 16, .responder_resources = 16};

	memset(p, 0, sizeof(*p));
	end_signals_all = 0;
	ends_open(&p->ends);
	assert_int_equal(softrnic_listen(p->ends.listener.id, 4), 0);
	assert_int_equal(softrnic_connect(p->ends.client.id, &param), 0);
	end_take(&p->ends.listener, &p->ends.server);
	assert_int_equal(softrnic_accept(p->ends.server.id, &param), 0);
	end_expect(&p->ends.client, RDMA_CM_EVENT_ESTABLISHED);
	end_expect(&p->ends.server, RDMA_CM_EVENT_ESTABLISHED);
	pair_register(p);
}

void pair_close(struct pair *p)
{
	start_clock();
	assert_int_equal(softrnic_dereg_mr(p->target), 0);
	ends_close(&p->ends);
}

uint64_t counter_of(struct end *e, const char *name)
{
	const char *const *names;
	uint64_t values[64];
	int n = softrnic_qp_counters(e->id->qp, &names, values, 64);

	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return values[i];
	fail_msg("no such counter");
	return 0;
}

uint64_t sends_of(struct end *e)
{
	return counter_of(e, "tx_gathers");
}

uint64_t sends(struct pair *p)
{
	return sends_of(&p->ends.client);
}

int post_write(struct pair *p, uint32_t len, unsigned flags)
{
	struct end *e = &p->ends.client;
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = len, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = flags},
			   *bad;

	wr.wr.rdma.remote_addr = p->addr;
	wr.wr.rdma.rkey = p->rkey;
	if (len == sizeof(p->next)) {
		p->next++;
		memcpy(e->buf, &p->next, sizeof(p->next));
		/* wait until the Write is placed, so that the next Write may change the word */
		if (!(flags & IBV_SEND_SIGNALED))
			wr.send_flags |= IBV_SEND_INLINE;
	}
	return ibv_post_send(e->id->qp, &wr, &bad);
}

void write_quietly(struct pair *p)
{
	assert_int_equal(post_write(p, sizeof(p->next), 0), 0);
}

static void post_flush(struct pair *p)
{
	struct vext_wr wr = {.op = VEXT_OP_FLUSH,
			     .wr = {.send_flags = IBV_SEND_SIGNALED},
			     .len = sizeof(p->words),
			     .type = VEXT_FLUSH_VISIBLE};
	int posted = 0;

	wr.wr.wr.rdma.remote_addr = p->addr;
	wr.wr.wr.rdma.rkey = p->rkey;
	assert_int_equal(softrnic_post(p->ends.client.id->qp, &wr, 1, &posted), 0);
}

void flush(struct pair *p)
{
	post_flush(p);
	assert_int_equal(end_wait_wc(&p->ends.client).status, IBV_WC_SUCCESS);
}

void teach(struct pair *p)
{
	stop_clock();
	for (int i = 0; i < TEACH; i++) {
		write_quietly(p);
		flush(p);
	}
}

void pair_open_waiting(struct pair *p)
{
	uint64_t before;

	pair_open(p);
	teach(p);
	for (int i = 0; i < TRIES; i++) {
		before = sends(p);
		write_quietly(p);
		if (sends(p) == before)
			return;
		flush(p);
	}
	fail_msg("no Write waits");
}

bool arrives(struct pair *p)
{
	for (int ms = 0; ms < 20000 && p->words[0] != p->next; ms++)
		usleep(1000);
	return p->words[0] == p->next;
}
