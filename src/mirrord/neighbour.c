/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirrord/neighbour.h"

#include <errno.h>
#include <librpma.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "mirror/wire/proof.h"

#define NEIGHBOUR_PERIOD_MS  1000
#define NEIGHBOUR_RESERVE_MS 100 /* instead, while the set is to grow */
#define NEIGHBOUR_CONNECT_MS 1000
#define NEIGHBOUR_ANSWER_MS  1000

/* One connection; used by the thread alone. */
struct neighbour_link {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_mr_local *mr;
	struct greeting greeting;
	unsigned version; /* of the messages */
	uint32_t id;
	uint8_t in[MESSAGE_SIZE], out[MESSAGE_SIZE];
};

struct neighbours {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool ends, has_plan, is_woken;
	uint64_t reserve; /* the size that the set is to have, or 0 */
	struct neighbour_plan plan;
	struct neighbour_answer answers[MIRROR_MEMBERS_MAX];
	struct neighbour_link links[MIRROR_MEMBERS_MAX]; /* of the thread */
};

static void neighbour_close(struct neighbour_link *link)
{
	if (link->conn)
		rpma_conn_disconnect(link->conn);
	rpma_conn_delete(&link->conn);
	rpma_mr_dereg(&link->mr);
	rpma_peer_delete(&link->peer);
	memset(link, 0, sizeof(*link));
}

static int neighbour_prepare(struct rpma_conn_req *req, void *arg)
{
	struct neighbour_link *link = arg;

	return rpma_conn_req_recv(req, link->mr, 0, MESSAGE_SIZE, NULL);
}

static int neighbour_register(struct neighbour_link *link, const char *host)
{
	struct ibv_context *context;
	int rc = rpma_utils_get_ibv_context(host, RPMA_UTIL_IBV_CONTEXT_REMOTE, &context);

	if (!rc)
		rc = rpma_peer_new(context, &link->peer);
	/* Both buffers are one registration. */
	if (!rc)
		rc = rpma_mr_reg(link->peer, link->in, sizeof(link->in) + sizeof(link->out),
				 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &link->mr);
	return rc;
}

static int neighbour_dial(struct neighbour_link *link, const struct mirror_member *member,
			  struct greeting_reply *reply)
{
	struct rpma_conn_private_data pdata = {.ptr = link->out};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_open_attr attr = {.size = sizeof(attr),
					   .addr = member->host,
					   .pdata = &pdata,
					   .timeout_ms = NEIGHBOUR_CONNECT_MS,
					   .prepare = neighbour_prepare,
					   .arg = link};
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", member->port);
	attr.port = port;
	pdata.len = (uint8_t)greeting_encode(&link->greeting, version_newest(), link->out);
	rc = rpma_conn_open(link->peer, &attr, &event, &link->conn);
	if (rc || event != RPMA_CONN_ESTABLISHED)
		return rc ? rc : RPMA_E_PROVIDER;
	rc = rpma_conn_get_private_data(link->conn, &pdata);
	if (rc || !pdata.ptr)
		return RPMA_E_PROVIDER;
	rc = greeting_reply_decode(pdata.ptr, pdata.len, reply);
	if (rc == -EPROTONOSUPPORT)
		reply->status = GREETING_BAD_VERSION;
	else if (rc)
		return RPMA_E_PROVIDER;
	link->version = version_agree(reply->versions, version_ours());
	return reply->status == GREETING_OK ? 0 : RPMA_E_INVAL;
}

static int neighbour_wait(struct neighbour_link *link, struct message *m)
{
	uint64_t deadline = clock_now_ns() + NEIGHBOUR_ANSWER_MS * NSEC_PER_MS;
	struct rpma_cq *cq;
	struct ibv_wc wc;
	int rc = rpma_conn_get_cq(link->conn, &cq);

	for (;;) {
		while (!rc && !(rc = rpma_cq_get_wc(cq, 1, &wc, NULL))) {
			if (wc.status != IBV_WC_SUCCESS)
				return RPMA_E_PROVIDER;
			if (wc.opcode & IBV_WC_RECV)
				return message_decode(link->in, wc.byte_len, link->version, m)
					       ? RPMA_E_PROVIDER
					       : 0;
		}
		if (rc != RPMA_E_NO_COMPLETION || clock_now_ns() >= deadline)
			return rc;
		rc = rpma_cq_wait_timeout(cq, NEIGHBOUR_ANSWER_MS / 4);
		rc = rc == RPMA_E_NO_COMPLETION ? 0 : rc;
	}
}

static int neighbour_ask(struct neighbour_link *link, struct message *m, struct message *answer)
{
	int rc;

	m->id = ++link->id;
	m->uuid = link->greeting.uuid;
	message_encode(m, link->version, link->out);
	rc = rpma_send(link->conn, link->mr, MESSAGE_SIZE, MESSAGE_SIZE, RPMA_F_COMPLETION_ON_ERROR,
		       NULL);
	if (!rc)
		rc = neighbour_wait(link, answer);
	/* Room for the next answer before the next question. */
	if (!rc)
		rc = rpma_recv(link->conn, link->mr, 0, MESSAGE_SIZE, NULL);
	return !rc && answer->id != m->id ? RPMA_E_PROVIDER : rc;
}

static bool neighbour_is_proved(const struct neighbour_plan *plan,
				const struct proof_exchange *exchange,
				const struct message_grant *grant)
{
	uint8_t expected[MESSAGE_MAC];

	if (!plan->has_secret)
		return true;
	proof_make_grant(plan->key, exchange, grant, expected);
	return mac_is_equal(expected, grant->mac);
}

static int neighbour_prove(struct neighbour_link *link, const struct neighbour_plan *plan,
			   const struct greeting_reply *reply)
{
	struct proof_exchange exchange = {
		.version = link->version, .greeting = link->greeting, .reply = *reply};
	struct message m = {.type = MESSAGE_PROVE}, answer;
	int rc;

	proof_nonce(m.prove.nonce);
	memcpy(exchange.nonce, m.prove.nonce, sizeof(exchange.nonce));
	if (plan->has_secret)
		proof_make(plan->key, &exchange, m.prove.mac);
	rc = neighbour_ask(link, &m, &answer);
	if (rc)
		return rc;
	if (answer.type != MESSAGE_GRANT || answer.grant.status != GREETING_OK ||
	    !neighbour_is_proved(plan, &exchange, &answer.grant))
		return RPMA_E_INVAL;
	return 0;
}

static bool neighbour_means_no_copy(unsigned status)
{
	return status == GREETING_NO_SET || status == GREETING_NOT_MEMBER ||
	       status == GREETING_WRONG_COPY;
}

static int neighbour_connect(struct neighbour_link *link, const struct neighbour_plan *plan,
			     uint8_t slot, struct neighbour_answer *answer)
{
	char *why = answer->why_not;
	const size_t size = sizeof(answer->why_not);
	const struct mirror_member *member = &plan->config.members[slot];
	struct greeting_reply reply = {0};
	int rc;

	link->greeting = (struct greeting){.uuid = plan->config.uuid,
					   .copy_id = member->id,
					   .from = plan->self,
					   .to = slot,
					   .kind = GREETING_OBSERVE};
	rc = neighbour_register(link, member->host);
	if (!rc)
		rc = neighbour_dial(link, member, &reply);
	if (!rc)
		rc = neighbour_prove(link, plan, &reply);
	answer->lacks_copy = rc && neighbour_means_no_copy(reply.status);
	if (rc && reply.status == GREETING_BAD_VERSION)
		version_explain(reply.versions, "its rpmirrord", "this one", why, size);
	else if (rc && reply.status != GREETING_OK)
		snprintf(why, size, "%s", greeting_status_2str(reply.status));
	else if (rc)
		text_cut(why, size, rpma_err_last());
	return rc;
}

/* What its daemon says of its files; zero where it says nothing. */
static struct message_reserve neighbour_ask_reserve(struct neighbour_link *link, uint64_t size)
{
	struct message m = {.type = MESSAGE_RESERVE, .reserve = {.size = size}}, got;

	if (!size || neighbour_ask(link, &m, &got) || got.type != MESSAGE_RESERVED)
		return (struct message_reserve){0};
	return got.reserve;
}

static void neighbour_visit(struct neighbours *n, const struct neighbour_plan *plan, uint8_t slot,
			    uint64_t reserve)
{
	struct neighbour_link *link = &n->links[slot];
	struct neighbour_answer answer = {.answers = false};
	struct message m = {.type = MESSAGE_GET_STATUS}, got;
	int rc = 0;

	if (!link->conn)
		rc = neighbour_connect(link, plan, slot, &answer);
	if (!rc) {
		rc = neighbour_ask(link, &m, &got);
		if (rc || got.type != MESSAGE_STATUS)
			snprintf(answer.why_not, sizeof(answer.why_not), "it does not answer");
		answer.answers = !rc && got.type == MESSAGE_STATUS;
	}
	if (answer.answers) {
		answer.copy_id = link->greeting.copy_id;
		answer.status = got.status;
		answer.reserved = neighbour_ask_reserve(link, reserve);
	} else {
		neighbour_close(link);
	}
	pthread_mutex_lock(&n->lock);
	/* Unless the slot is another member's meanwhile. */
	if (n->plan.config.members[slot].id == plan->config.members[slot].id)
		n->answers[slot] = answer;
	pthread_mutex_unlock(&n->lock);
}

static void neighbours_visit_all(struct neighbours *n, const struct neighbour_plan *plan,
				 uint64_t reserve)
{
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct neighbour_link *link = &n->links[slot];
		bool is_member = plan->config.members[slot].id && slot != plan->self;

		if (link->conn &&
		    (!is_member || link->greeting.copy_id != plan->config.members[slot].id))
			neighbour_close(link);
		if (is_member && !__atomic_load_n(&n->ends, __ATOMIC_RELAXED))
			neighbour_visit(n, plan, slot, reserve);
	}
}

/* Until the next round, or the end. The lock is held. */
static void neighbours_pause(struct neighbours *n)
{
	uint64_t pause_ms = n->reserve ? NEIGHBOUR_RESERVE_MS : NEIGHBOUR_PERIOD_MS, until_ns;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until_ns = (uint64_t)until.tv_nsec + pause_ms * NSEC_PER_MS;
	until.tv_sec += (time_t)(until_ns / NSEC_PER_SEC);
	until.tv_nsec = (long)(until_ns % NSEC_PER_SEC);
	while (!n->ends && !n->is_woken && !pthread_cond_timedwait(&n->changed, &n->lock, &until))
		;
	n->is_woken = false;
}

static void *neighbours_loop(void *arg)
{
	struct neighbours *n = arg;
	struct neighbour_plan *plan = malloc(sizeof(*plan));

	pthread_mutex_lock(&n->lock);
	while (plan && !n->ends) {
		if (n->has_plan) {
			uint64_t reserve = n->reserve;

			*plan = n->plan;
			pthread_mutex_unlock(&n->lock);
			neighbours_visit_all(n, plan, reserve);
			pthread_mutex_lock(&n->lock);
		}
		neighbours_pause(n);
	}
	pthread_mutex_unlock(&n->lock);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		neighbour_close(&n->links[i]);
	if (plan)
		explicit_bzero(plan, sizeof(*plan));
	free(plan);
	return NULL;
}

struct neighbours *neighbours_new(void)
{
	struct neighbours *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;
	int rc;

	if (!n)
		return NULL;
	pthread_mutex_init(&n->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = thread_start(&n->thread, 0, neighbours_loop, n);
	if (!rc)
		return n;
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
	errno = -rc;
	return NULL;
}

void neighbours_delete(struct neighbours *n)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	__atomic_store_n(&n->ends, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->lock);
	pthread_join(n->thread, NULL);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	explicit_bzero(n, sizeof(*n));
	free(n);
}

void neighbours_set_plan(struct neighbours *n, const struct neighbour_plan *plan)
{
	pthread_mutex_lock(&n->lock);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (n->plan.config.members[slot].id != plan->config.members[slot].id)
			n->answers[slot] = (struct neighbour_answer){0};
	n->plan = *plan;
	n->has_plan = true;
	n->is_woken = true;
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->lock);
}

void neighbours_reserve(struct neighbours *n, uint64_t size)
{
	pthread_mutex_lock(&n->lock);
	n->reserve = size;
	n->is_woken = size != 0;
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->lock);
}

void neighbours_get(struct neighbours *n, uint8_t slot, struct neighbour_answer *answer)
{
	pthread_mutex_lock(&n->lock);
	*answer = n->answers[slot];
	pthread_mutex_unlock(&n->lock);
}
