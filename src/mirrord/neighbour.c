/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirrord/neighbour.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "mirror/peer/link.h"
#include "service/peer.h"

#define NEIGHBOUR_PERIOD_MS  1000
#define NEIGHBOUR_RESERVE_MS 100  /* period of questions while the set grows */
#define NEIGHBOUR_ANSWER_MS  1000 /* time limit for each of an answer, a connect and a grant */

/* The connection to one member's daemon. Only the separate thread uses it. */
struct neighbour_link {
	struct rpma_peer *peer; /* NULL: no connection */
	struct link_place place;
	const uint8_t *key; /* belongs to the plan; NULL: the set has no secret */
	struct link link;
	uint32_t id; /* number of the last question */
};

struct neighbours {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool ends, has_plan, is_woken;
	uint64_t reserve; /* size that the set will get; 0: the set does not grow */
	struct neighbour_plan plan;
	struct neighbour_answer answers[MIRROR_MEMBERS_MAX];
	struct neighbour_link links[MIRROR_MEMBERS_MAX]; /* used only by the separate thread */
};

static void neighbour_close(struct neighbour_link *n)
{
	if (n->peer)
		link_close(&n->link);
	rpma_peer_delete(&n->peer);
	memset(n, 0, sizeof(*n));
}

static int neighbour_open(struct neighbour_link *n, const struct neighbour_plan *plan, uint8_t slot)
{
	const struct mirror_member *member = &plan->config.members[slot];
	struct greeting greeting = {.uuid = plan->config.uuid,
				    .copy_id = member->id,
				    .from = plan->self,
				    .to = slot,
				    .kind = GREETING_OBSERVE};
	struct ibv_context *context;
	int rc = peer_open_to(member->host, &context, &n->peer);

	if (rc)
		return rc;
	n->key = plan->has_secret ? plan->key : NULL;
	n->place = (struct link_place){.peer = n->peer,
				       .timeout_ms = NEIGHBOUR_ANSWER_MS,
				       .key = &n->key,
				       .self = "this one"};
	link_open(&n->link, &n->place, member->host, member->port, &greeting, clock_boot_ms());
	return 0;
}

/*
 * Wait for the next message, or for the grant if answer is NULL. Returns false if the connection is
 * closed, or nothing came before the time limit.
 */
static bool neighbour_wait(struct link *l, struct message *answer)
{
	uint64_t deadline = clock_boot_ms() + NEIGHBOUR_ANSWER_MS, now;
	struct pollfd pfds[2];
	int fds[2];

	while ((now = clock_boot_ms()) < deadline) {
		link_step(l, now);
		if (l->state == LINK_ENDED || (answer && link_receive(l, answer)))
			break;
		if (!answer && l->state == LINK_READY)
			break;
		for (unsigned i = 0; i < link_fds(l, fds); i++)
			pfds[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
		poll(pfds, link_fds(l, fds), (int)(deadline - now));
	}
	return l->state == LINK_READY && now < deadline;
}

static bool neighbour_ask(struct neighbour_link *n, struct message *m, struct message *answer)
{
	m->id = ++n->id;
	m->uuid = n->link.exchange.greeting.uuid;
	return link_send(&n->link, m) && neighbour_wait(&n->link, answer) && answer->id == m->id;
}

static bool neighbour_connect(struct neighbour_link *n, const struct neighbour_plan *plan,
			      uint8_t slot, struct neighbour_answer *answer)
{
	const struct link *l = &n->link;

	if (neighbour_open(n, plan, slot)) {
		text_cut(answer->why_not, sizeof(answer->why_not), rpma_err_last());
		return false;
	}
	if (neighbour_wait(&n->link, NULL))
		return true;
	answer->lacks_copy = l->status == GREETING_NO_SET || l->status == GREETING_NOT_MEMBER ||
			     l->status == GREETING_WRONG_COPY;
	if (l->lacks_secret || l->status == GREETING_SECRET_WRONG)
		answer->refusal = "secret";
	else if (l->status == GREETING_BAD_VERSION)
		answer->refusal = "version";
	text_cut(answer->why_not, sizeof(answer->why_not),
		 l->state == LINK_ENDED ? l->why : "it does not answer");
	return false;
}

/* Ask the member's daemon about its files. Returns zeros if the daemon does not answer. */
static struct message_reserve neighbour_ask_reserve(struct neighbour_link *n, uint64_t size)
{
	struct message m = {.type = MESSAGE_RESERVE, .reserve = {.size = size}}, got;

	if (!size || !neighbour_ask(n, &m, &got) || got.type != MESSAGE_RESERVED)
		return (struct message_reserve){0};
	return got.reserve;
}

static bool neighbour_ask_status(struct neighbour_link *n, struct neighbour_answer *answer)
{
	struct message m = {.type = MESSAGE_GET_STATUS}, got;

	if (!neighbour_ask(n, &m, &got) || got.type != MESSAGE_STATUS) {
		snprintf(answer->why_not, sizeof(answer->why_not), "it does not answer");
		return false;
	}
	answer->status = got.status;
	answer->copy_id = n->link.exchange.greeting.copy_id;
	return true;
}

static void neighbour_visit(struct neighbours *n, const struct neighbour_plan *plan, uint8_t slot,
			    uint64_t reserve)
{
	struct neighbour_link *link = &n->links[slot];
	struct neighbour_answer answer = {.answers = false};

	/* Make the link notice a disconnect: the member's daemon may have been restarted since the
	 * last question. */
	if (link->peer)
		link_step(&link->link, clock_boot_ms());
	if (link->link.state == LINK_ENDED)
		neighbour_close(link);
	if (link->peer || neighbour_connect(link, plan, slot, &answer))
		answer.answers = neighbour_ask_status(link, &answer);
	if (answer.answers)
		answer.reserved = neighbour_ask_reserve(link, reserve);
	else
		neighbour_close(link);
	pthread_mutex_lock(&n->lock);
	/* Drop the result if another member has this slot now. */
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

		if (link->peer && (!is_member || link->link.exchange.greeting.copy_id !=
							 plan->config.members[slot].id))
			neighbour_close(link);
		if (is_member && !__atomic_load_n(&n->ends, __ATOMIC_RELAXED))
			neighbour_visit(n, plan, slot, reserve);
	}
}

/* Wait for the next round, or for the end. The caller holds the lock. */
static void neighbours_pause(struct neighbours *n)
{
	uint64_t pause_ms = n->reserve ? NEIGHBOUR_RESERVE_MS : NEIGHBOUR_PERIOD_MS;
	struct timespec until = clock_timespec(clock_now_ns() + pause_ms * NSEC_PER_MS);

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
	int rc;

	if (!n)
		return NULL;
	pthread_mutex_init(&n->lock, NULL);
	thread_cond_init(&n->changed);
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
