/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections over two links that exist only in this test: one lets the receiver parse bytes in
 * place, the other lets the sender write to memory without a call.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ends.h"
#include "link_lacks.h"
#include "link_pair.h"
#include "softrnic/io/link_shm.h"
#include "softrnic/io/link_sockaddr.h"

enum { CONNECTIONS = 2, REGION = 200000 };

struct target {
	struct ends e;
	char *bytes; /* memory of the server that the client may access */
	struct ibv_mr *mr;
	char *source; /* source of the client's Writes */
	struct ibv_mr *source_mr;
};

static struct target targets[CONNECTIONS];

static struct ibv_mr *region_new(struct end *e, char **bytes, unsigned seed)
{
	struct ibv_mr *mr;

	*bytes = malloc(REGION);
	assert_non_null(*bytes);
	for (unsigned i = 0; i < REGION; i++)
		(*bytes)[i] = (char)(seed * (i + 1) >> 3);
	mr = softrnic_reg_mr(e->pd, *bytes, REGION,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	return mr;
}

static void target_open(struct target *t, unsigned seed)
{
	ends_open(&t->e);
	assert_int_equal(softrnic_listen(t->e.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(t->e.client.id, NULL), 0);
	ends_establish(&t->e);
	t->mr = region_new(&t->e.server, &t->bytes, 0);
	t->source_mr = region_new(&t->e.client, &t->source, seed);
}

static void target_close(struct target *t)
{
	if (t->mr)
		assert_int_equal(softrnic_dereg_mr(t->mr), 0);
	assert_int_equal(softrnic_dereg_mr(t->source_mr), 0);
	free(t->bytes);
	free(t->source);
	ends_close(&t->e);
}

static void target_post_to(struct target *t, struct vext_wr *wr, uint32_t rkey)
{
	int posted;

	wr->wr.send_flags = IBV_SEND_SIGNALED;
	wr->wr.wr.rdma.remote_addr = (uintptr_t)t->bytes;
	wr->wr.wr.rdma.rkey = rkey;
	assert_int_equal(softrnic_post(t->e.client.id->qp, wr, 1, &posted), 0);
}

static void target_post(struct target *t, struct vext_wr *wr)
{
	target_post_to(t, wr, t->mr->rkey);
}

static void target_write(struct target *t)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)t->source, .length = REGION, .lkey = t->source_mr->lkey};
	struct vext_wr wr = {.wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1}};

	target_post(t, &wr);
}

static void target_flush(struct target *t)
{
	struct vext_wr wr = {.op = VEXT_OP_FLUSH, .len = REGION, .type = VEXT_FLUSH_VISIBLE};

	target_post(t, &wr);
}

static int on(uint32_t host)
{
	end_host = host;
	pair_allow(SIZE_MAX);
	return 0;
}

static int in_place(void **state)
{
	return on(PAIR_IN_PLACE);
}

static int plain(void **state)
{
	return on(PAIR_PLAIN);
}

/* Every link must be closed in the end, perhaps a moment later by the engine's thread. */
static int all_closed(void **state)
{
	for (int ms = 0; pair_links() && ms < 10000; ms++)
		usleep(1000);
	return (int)pair_links();
}

static void writes_and_flushes_of_two_connections_arrive(void **state)
{
	size_t before = pair_carried();

	for (unsigned i = 0; i < CONNECTIONS; i++)
		target_open(&targets[i], i + 1);
	for (int i = 0; i < CONNECTIONS; i++) {
		target_write(&targets[i]);
		target_flush(&targets[i]);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		assert_int_equal(end_wait_wc(&targets[i].e.client).status, IBV_WC_SUCCESS);
		assert_int_equal(end_wait_wc(&targets[i].e.client).status, IBV_WC_SUCCESS);
		assert_memory_equal(targets[i].bytes, targets[i].source, REGION);
	}
	assert_true(pair_carried() - before > CONNECTIONS * REGION);
	for (int i = 0; i < CONNECTIONS; i++)
		target_close(&targets[i]);
}

static void sends_go_both_ways(void **state)
{
	struct ends e;

	ends_open(&e);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	ends_establish(&e);
	assert_int_equal(end_post_recv(&e.server, 1), 0);
	assert_int_equal(end_post_recv(&e.client, 2), 0);
	strcpy(e.client.buf, "there");
	assert_int_equal(end_post_send(&e.client, 3, 6), 0);
	assert_int_equal(end_wait_wc(&e.server).wr_id, 1);
	assert_string_equal(e.server.buf, "there");
	ends_close(&e);
}

static void a_dial_without_a_listener_is_refused(void **state)
{
	struct ends e;

	ends_open(&e);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	end_expect(&e.client, RDMA_CM_EVENT_REJECTED);
	ends_close(&e);
}

static void the_end_of_a_peer_is_an_event(void **state)
{
	struct ends e;

	ends_open(&e);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	ends_establish(&e);
	assert_int_equal(softrnic_disconnect(e.client.id), 0);
	end_expect(&e.server, RDMA_CM_EVENT_DISCONNECTED);
	end_expect(&e.client, RDMA_CM_EVENT_DISCONNECTED);
	ends_close(&e);
}

/* The engine checks for the peer's end before it reports a silent peer as lost. */
static void an_end_that_was_not_reported_is_no_loss(void **state)
{
	struct ends e;

	ends_open(&e);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_int_equal(softrnic_set_limits(e.client.id, 0, 300), 0);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	ends_establish(&e);
	pair_hide_ends(true);
	assert_int_equal(softrnic_disconnect(e.server.id), 0);
	end_expect(&e.client, RDMA_CM_EVENT_DISCONNECTED);
	pair_hide_ends(false);
	end_expect(&e.server, RDMA_CM_EVENT_DISCONNECTED);
	ends_close(&e);
}

/* Wait until the first half of a Write has arrived. */
static void wait_for_half_a_write(struct target *t)
{
	size_t half = pair_carried() + REGION / 2;

	pair_allow(REGION / 2);
	target_write(t);
	for (int ms = 0; pair_carried() < half && ms < 10000; ms++)
		usleep(1000);
	assert_int_equal(pair_carried(), half);
}

/* The Write may still succeed, if the client sent its last bytes before the Terminate arrived. */
static void deregistration_ends_a_write_into_the_region(void **state)
{
	struct vext_wr flush = {.op = VEXT_OP_FLUSH, .len = REGION, .type = VEXT_FLUSH_VISIBLE};
	struct target *t = &targets[0];
	uint32_t rkey;
	uint64_t begun;
	char *before;

	target_open(t, 1);
	rkey = t->mr->rkey;
	wait_for_half_a_write(t);
	begun = clock_now_ns();
	assert_int_equal(softrnic_dereg_mr(t->mr), 0);
	assert_true(clock_now_ns() - begun < 5 * NSEC_PER_SEC);
	t->mr = NULL;
	before = malloc(REGION);
	assert_non_null(before);
	memcpy(before, t->bytes, REGION);
	pair_allow(SIZE_MAX);
	target_post_to(t, &flush, rkey);
	end_wait_wc(&t->e.client);
	assert_int_not_equal(end_wait_wc(&t->e.client).status, IBV_WC_SUCCESS);
	assert_memory_equal(t->bytes, before, REGION);
	free(before);
	target_close(t);
}

/* The parent continues the work that was under way at the fork. The child must be able to release
 * its copy. */
static void a_forked_child_releases_an_id_amid_a_message(void **state)
{
	struct target *t = &targets[0];
	int status = 0;
	pid_t child;

	target_open(t, 1);
	wait_for_half_a_write(t);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(softrnic_destroy_id(t->e.server.id) || softrnic_destroy_id(t->e.client.id));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pair_allow(SIZE_MAX);
	target_flush(t);
	assert_int_equal(end_wait_wc(&t->e.client).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wait_wc(&t->e.client).status, IBV_WC_SUCCESS);
	assert_memory_equal(t->bytes, t->source, REGION);
	target_close(t);
}

/* --- the tables of operations --------------------------------------------------------------- */

static const struct link_ops *link_at(const char *ip)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(1)};
	struct link_addr addr;

	assert_int_equal(inet_pton(AF_INET, ip, &sin.sin_addr), 1);
	addr = link_addr_from((const struct sockaddr *)&sin);
	return link_of(&addr);
}

static void the_table_of_each_link_is_complete(void **state)
{
	static const char *const ips[] = {"127.0.0.1", "203.0.113.1", "203.0.113.2"};
	struct link *shm = link_shm_alloc();

	for (size_t i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
		assert_non_null(link_at(ips[i])->connecting);
		assert_null(link_lacks(link_at(ips[i])));
	}
	assert_non_null(shm);
	assert_null(link_lacks(shm->ops));
	link_shm_free(shm);
}

static void a_missing_operation_is_named(void **state)
{
	struct link_ops ops = *link_at("203.0.113.1");
	struct link_connecting connecting = *ops.connecting;
	struct link_polling polling = *ops.polling;
	struct link_in_place in_place = *ops.in_place;

	in_place.commit = NULL;
	ops.in_place = &in_place;
	assert_string_equal(link_lacks(&ops), "commit");
	polling.wait_end = NULL;
	ops.polling = &polling;
	assert_string_equal(link_lacks(&ops), "wait_end");
	connecting.serves = NULL;
	ops.connecting = &connecting;
	assert_string_equal(link_lacks(&ops), "serves");
	ops.has_left = NULL;
	assert_string_equal(link_lacks(&ops), "has_left");
}

static void a_link_may_lack_a_whole_group(void **state)
{
	struct link_ops ops = *link_at("203.0.113.1");

	ops.connecting = NULL;
	ops.polling = NULL;
	ops.in_place = NULL;
	assert_null(link_lacks(&ops));
}

#define ON(link, test)                                                                             \
	{                                                                                          \
#link ": " #test, test, link, all_closed, NULL                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(in_place, writes_and_flushes_of_two_connections_arrive),
		ON(in_place, sends_go_both_ways),
		ON(in_place, a_dial_without_a_listener_is_refused),
		ON(in_place, the_end_of_a_peer_is_an_event),
		ON(in_place, an_end_that_was_not_reported_is_no_loss),
		ON(plain, writes_and_flushes_of_two_connections_arrive),
		ON(plain, sends_go_both_ways),
		ON(plain, a_dial_without_a_listener_is_refused),
		ON(plain, the_end_of_a_peer_is_an_event),
		ON(plain, deregistration_ends_a_write_into_the_region),
		ON(plain, a_forked_child_releases_an_id_amid_a_message),
		cmocka_unit_test(the_table_of_each_link_is_complete),
		cmocka_unit_test(a_missing_operation_is_named),
		cmocka_unit_test(a_link_may_lack_a_whole_group),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
