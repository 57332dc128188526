/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for changes in etcd by two streams: changes of the record, and deletions of the alive key
 * (renewals, several a second, are left out). After an error the watch only waits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/poll.h"
#include "mirror/register/etcd.h"

#define ETCD_LINE_MAX (256u << 10)
#define ETCD_RETRY_MS 100 /* pause after a stream has broken */

struct etcd_stream {
	CURL *curl;
	struct curl_slist *headers;
	char *body;
	char line[ETCD_LINE_MAX];
	size_t len;
	uint64_t seen; /* revision of the newest event */
	bool begun;    /* an answer has come on the stream */
	bool broken;
};

struct etcd_streams {
	CURLM *multi;
	struct etcd_stream of[BACKEND_KEYS];
};

/* Parse one object of a stream. A stream is cancelled for one of two reasons: etcd has compacted
 * the revisions from which the stream starts, so there are changes, or the user lacks the right. */
static void etcd_watch_parse(struct etcd_stream *s, const char *line, size_t len)
{
	json_t *json = json_loadb(line, len, 0, NULL);
	const json_t *result = json_object_get(json, "result");
	const json_t *events = json_object_get(result, "events");

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *kv = json_object_get(json_array_get(events, i), "kv");
		uint64_t revision = etcd_number(kv, "mod_revision");

		s->seen = revision > s->seen ? revision : s->seen;
	}
	if (etcd_number(result, "compact_revision"))
		s->seen = etcd_number(result, "compact_revision") - 1;
	else if (!result || json_is_true(json_object_get(result, "canceled")))
		s->broken = true;
	json_decref(json);
}

static size_t etcd_watch_collect(char *bytes, size_t size, size_t count, void *arg)
{
	struct etcd_stream *s = arg;
	char *end;

	size *= count;
	s->begun = true;
	if (s->len + size > sizeof(s->line))
		return 0;
	memcpy(s->line + s->len, bytes, size);
	s->len += size;
	while ((end = memchr(s->line, '\n', s->len))) {
		size_t len = (size_t)(end - s->line);

		etcd_watch_parse(s, s->line, len);
		s->len -= len + 1;
		memmove(s->line, end + 1, s->len);
	}
	return size;
}

static char *etcd_watch_body(const struct etcd_register *e, enum backend_key key, uint64_t from)
{
	json_t *json;
	char *text;

	if (key == BACKEND_ALIVE)
		json = json_pack("{s:{s:s, s:I, s:[s]}}", "create_request", "key", e->key64[key],
				 "start_revision", (json_int_t)from, "filters", "NOPUT");
	else
		json = json_pack("{s:{s:s, s:I}}", "create_request", "key", e->key64[key],
				 "start_revision", (json_int_t)from);
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	return text;
}

static bool etcd_watch_start(struct etcd_register *e, struct etcd_streams *streams,
			     enum backend_key key, uint64_t from)
{
	struct etcd_stream *s = &streams->of[key];
	char url[2 * ETCD_TEXT];

	s->curl = curl_easy_init();
	s->headers = etcd_http_headers(e);
	s->body = etcd_watch_body(e, key, from);
	if (!s->curl || !s->headers || !s->body)
		return false;
	etcd_http_url(e, e->preferred, "/v3/watch", url);
	etcd_http_prepare(e, s->curl);
	curl_easy_setopt(s->curl, CURLOPT_URL, url);
	curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->headers);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, s->body);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, etcd_watch_collect);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
	return curl_multi_add_handle(streams->multi, s->curl) == CURLM_OK;
}

static void etcd_watch_stop(struct etcd_streams *streams)
{
	for (unsigned key = 0; key < BACKEND_KEYS; key++) {
		struct etcd_stream *s = &streams->of[key];

		if (s->curl && streams->multi)
			curl_multi_remove_handle(streams->multi, s->curl);
		curl_easy_cleanup(s->curl);
		curl_slist_free_all(s->headers);
		free(s->body);
	}
	curl_multi_cleanup(streams->multi);
	free(streams);
}

enum etcd_wait { ETCD_WAIT_NEWS, ETCD_WAIT_ENDED, ETCD_WAIT_BROKEN };

/* Run until an event, the deadline, or the end of a stream. */
static enum etcd_wait etcd_watch_run(struct etcd_streams *streams, uint64_t deadline, int wake_fd)
{
	struct curl_waitfd wake = {.fd = wake_fd, .events = CURL_WAIT_POLLIN};
	const struct etcd_stream *s = streams->of;
	int running;

	for (;;) {
		if (curl_multi_perform(streams->multi, &running) != CURLM_OK)
			return ETCD_WAIT_BROKEN;
		if (s[BACKEND_RECORD].seen || s[BACKEND_ALIVE].seen)
			return ETCD_WAIT_NEWS;
		if (running < BACKEND_KEYS || s[BACKEND_RECORD].broken || s[BACKEND_ALIVE].broken)
			return ETCD_WAIT_BROKEN;
		if (wake.revents || !poll_ms_left(deadline))
			return ETCD_WAIT_ENDED;
		curl_multi_wait(streams->multi, &wake, wake_fd >= 0, poll_ms_left(deadline), NULL);
	}
}

static enum etcd_wait etcd_watch_once(struct etcd_register *e, uint64_t revision, uint64_t deadline,
				      int wake_fd)
{
	uint64_t from = (revision > e->watched ? revision : e->watched) + 1;
	struct etcd_streams *streams = calloc(1, sizeof(*streams));
	enum etcd_wait wait = ETCD_WAIT_BROKEN;

	if (!streams)
		return wait;
	streams->multi = curl_multi_init();
	if (streams->multi && etcd_watch_start(e, streams, BACKEND_RECORD, from) &&
	    etcd_watch_start(e, streams, BACKEND_ALIVE, from))
		wait = etcd_watch_run(streams, deadline, wake_fd);
	/* If a member was silent all the time, ask it last next time. */
	if (wait == ETCD_WAIT_ENDED && !streams->of[BACKEND_RECORD].begun)
		e->preferred = (e->preferred + 1) % e->endpoints;
	for (unsigned key = 0; key < BACKEND_KEYS; key++)
		if (streams->of[key].seen > e->watched)
			e->watched = streams->of[key].seen;
	etcd_watch_stop(streams);
	return wait;
}

bool etcd_watch(struct mirror_register *r, uint64_t revision, unsigned timeout_ms, int wake_fd)
{
	uint64_t deadline = clock_now_ns() + timeout_ms * NSEC_PER_MS;
	struct etcd_register *e = etcd_of(r);
	struct etcd_reply reply = {0};

	while (poll_ms_left(deadline)) {
		enum etcd_wait wait = ETCD_WAIT_BROKEN;
		struct pollfd wake = {.fd = wake_fd, .events = POLLIN};
		int left = poll_ms_left(deadline);

		if (etcd_authenticate(e, e->preferred, (unsigned)left, &reply) == ETCD_ANSWERED)
			wait = etcd_watch_once(e, revision, deadline, wake_fd);
		if (wait != ETCD_WAIT_BROKEN)
			return wait == ETCD_WAIT_NEWS;
		e->preferred = (e->preferred + 1) % e->endpoints;
		e->token[0] = '\0';
		left = poll_ms_left(deadline);
		if (poll(&wake, 1, left < ETCD_RETRY_MS ? left : ETCD_RETRY_MS) > 0)
			return false;
	}
	return false;
}
