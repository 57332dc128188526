/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads from etcd. A read has no effect, so several members may be asked at the same time. A member
 * may be silent because its host has died or because it waits for a leader: after ETCD_ASK_MS the
 * next member is asked as well. A member that fails is asked again later. The first answer counts,
 * and from then on its member is asked first.
 */
#include <errno.h>
#include <stdlib.h>

#include "mirror/register/etcd.h"

#define ETCD_ASK_MS   100
#define ETCD_PAUSE_MS 20 /* pause after all members have failed */

struct etcd_asked {
	CURL *curl; /* NULL: this member has no request now */
	struct etcd_answer answer;
};

struct etcd_asking {
	struct etcd_register *e;
	struct etcd_request request;
	const char *path;
	uint64_t deadline, next; /* end of the request, and time at which another member is asked */
	unsigned begun, waiting;
	struct etcd_asked of[ETCD_ENDPOINTS];
	unsigned first;
	struct etcd_reply *reply;
	enum etcd_outcome outcome;
};

static unsigned etcd_ask_left_ms(uint64_t until)
{
	uint64_t now = clock_now_ns();

	return now < until ? (unsigned)((until - now + NSEC_PER_MS - 1) / NSEC_PER_MS) : 0;
}

static void etcd_ask_next_in(struct etcd_asking *a, unsigned ms)
{
	a->next = clock_now_ns() + ms * NSEC_PER_MS;
}

static void etcd_ask_one(struct etcd_asking *a, unsigned endpoint)
{
	struct etcd_asked *asked = &a->of[endpoint];

	asked->curl = curl_easy_init();
	if (!asked->curl)
		return;
	etcd_http_url(a->e, endpoint, a->path, a->request.url);
	etcd_http_fill(a->e, asked->curl, &a->request, etcd_ask_left_ms(a->deadline) + 1,
		       &asked->answer);
	curl_multi_add_handle(a->e->asks, asked->curl);
	a->waiting++;
}

/* Ask the next member that has no request now. */
static void etcd_ask_another(struct etcd_asking *a)
{
	for (unsigned i = 0; i < a->e->endpoints; i++) {
		unsigned endpoint = (a->first + a->begun++) % a->e->endpoints;

		if (a->of[endpoint].curl)
			continue;
		etcd_ask_one(a, endpoint);
		break;
	}
	etcd_ask_next_in(a, ETCD_ASK_MS);
}

static void etcd_ask_forget(struct etcd_asking *a, unsigned endpoint)
{
	struct etcd_asked *asked = &a->of[endpoint];

	if (!asked->curl)
		return;
	curl_multi_remove_handle(a->e->asks, asked->curl);
	curl_easy_cleanup(asked->curl);
	free(asked->answer.text);
	*asked = (struct etcd_asked){0};
	a->waiting--;
}

/* Returns true if no other member can change the outcome. If the outcome at one member is
 * uncertain, the outcome of the whole request is uncertain. */
static bool etcd_ask_judge(struct etcd_asking *a, unsigned endpoint, CURLcode code)
{
	struct etcd_asked *asked = &a->of[endpoint];
	enum etcd_outcome outcome = etcd_http_judge(asked->curl, code, a->e->endpoint[endpoint],
						    &asked->answer, a->reply);
	bool is_failure = outcome == ETCD_UNCERTAIN || outcome == ETCD_NOT_SENT;

	etcd_ask_forget(a, endpoint);
	if (!is_failure || a->outcome == ETCD_NOT_SENT)
		a->outcome = outcome;
	if (outcome == ETCD_ANSWERED)
		a->e->preferred = endpoint;
	if (a->begun < a->e->endpoints)
		a->next = 0;
	else if (!a->waiting)
		etcd_ask_next_in(a, ETCD_PAUSE_MS);
	return !is_failure;
}

static unsigned etcd_ask_whose(const struct etcd_asking *a, const CURL *curl)
{
	unsigned endpoint = 0;

	while (a->of[endpoint].curl != curl)
		endpoint++;
	return endpoint;
}

/* Handle the requests that have ended. Returns true if the whole request has its outcome. */
static bool etcd_ask_take(struct etcd_asking *a)
{
	const CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(a->e->asks, &left)))
		if (etcd_ask_judge(a, etcd_ask_whose(a, msg->easy_handle), msg->data.result))
			return true;
	return !etcd_ask_left_ms(a->deadline);
}

static void etcd_ask_run(struct etcd_asking *a)
{
	int running;

	for (;;) {
		unsigned ms;

		if (a->waiting < a->e->endpoints && !etcd_ask_left_ms(a->next))
			etcd_ask_another(a);
		curl_multi_perform(a->e->asks, &running);
		if (etcd_ask_take(a))
			return;
		ms = etcd_ask_left_ms(a->deadline);
		if (a->waiting < a->e->endpoints && etcd_ask_left_ms(a->next) < ms)
			ms = etcd_ask_left_ms(a->next);
		curl_multi_poll(a->e->asks, NULL, 0, (int)ms, NULL);
	}
}

static void etcd_ask_end(struct etcd_asking *a)
{
	bool is_over = a->outcome != ETCD_UNCERTAIN && a->outcome != ETCD_NOT_SENT;

	for (unsigned i = 0; i < a->e->endpoints; i++) {
		/* another member has answered before this one */
		if (a->of[i].curl && !is_over)
			etcd_ask_judge(a, i, CURLE_OPERATION_TIMEDOUT);
		etcd_ask_forget(a, i);
	}
	curl_slist_free_all(a->request.headers);
	free(a->request.text);
}

static enum etcd_outcome etcd_ask_all(struct etcd_register *e, const char *path, const json_t *body,
				      uint64_t deadline, struct etcd_reply *reply)
{
	struct etcd_asking a = {.e = e,
				.request = {.headers = etcd_http_headers(e),
					    .text = json_dumps(body, JSON_COMPACT)},
				.path = path,
				.deadline = deadline,
				.first = e->preferred,
				.reply = reply};

	reply->json = NULL;
	a.outcome = etcd_http_fail(reply, ETCD_NOT_SENT, ENOTCONN, e->endpoint[e->preferred],
				   "it was not asked");
	if (a.request.headers && a.request.text)
		etcd_ask_run(&a);
	else
		a.outcome = etcd_http_fail(reply, ETCD_REFUSED, ENOMEM, e->endpoint[e->preferred],
					   "out of memory for a request");
	etcd_ask_end(&a);
	return a.outcome;
}

enum etcd_outcome etcd_ask(struct etcd_register *e, const char *path, const json_t *body,
			   uint64_t deadline, struct etcd_reply *reply)
{
	enum etcd_outcome outcome = ETCD_TOKEN_ENDED;

	if (!e->asks)
		e->asks = curl_multi_init();
	if (e->asks && (!e->user[0] || e->token[0]))
		outcome = etcd_ask_all(e, path, body, deadline, reply);
	/* If the token has expired, ask one member after the other instead, with a new token. */
	return outcome == ETCD_TOKEN_ENDED ? etcd_call(e, path, body, deadline, reply) : outcome;
}
