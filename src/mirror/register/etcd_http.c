/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends requests to etcd's JSON gateway: makes one POST, finds the meaning of its failure, and
 * fails over to other members. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "mirror/register/etcd.h"

#define ETCD_ANSWER_MAX (1u << 20)
#define ETCD_PAUSE_MS   20 /* pause if no member could be reached */
#define ETCD_ATTEMPT_MS 20 /* an attempt is made only if at least this time is left */

/* gRPC's codes, which the gateway passes on. */
enum {
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_UNAUTHENTICATED = 16
};

bool etcd_base64(const void *bytes, size_t len, char *text, size_t size)
{
	if (size < sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL))
		return false;
	sodium_bin2base64(text, size, bytes, len, sodium_base64_VARIANT_ORIGINAL);
	return true;
}

uint64_t etcd_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_string(value))
		return strtoull(json_string_value(value), NULL, 10);
	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
}

void etcd_http_prepare(const struct etcd_register *e, CURL *curl)
{
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, e->tls ? "https" : "http");
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	if (e->ca[0])
		curl_easy_setopt(curl, CURLOPT_CAINFO, e->ca);
	if (e->cert[0]) {
		curl_easy_setopt(curl, CURLOPT_SSLCERT, e->cert);
		curl_easy_setopt(curl, CURLOPT_SSLKEY, e->key);
	}
}

struct curl_slist *etcd_http_headers(const struct etcd_register *e)
{
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
	char line[ETCD_SECRET + 32];

	if (list && e->token[0]) {
		struct curl_slist *longer;

		snprintf(line, sizeof(line), "Authorization: %s", e->token);
		longer = curl_slist_append(list, line);
		if (!longer)
			curl_slist_free_all(list);
		list = longer;
	}
	return list;
}

void etcd_http_url(const struct etcd_register *e, unsigned endpoint, const char *path,
		   char url[2 * ETCD_TEXT])
{
	snprintf(url, 2 * ETCD_TEXT, "%s://%s%s", e->tls ? "https" : "http", e->endpoint[endpoint],
		 path);
}

static size_t etcd_http_collect(char *bytes, size_t size, size_t count, void *arg)
{
	struct etcd_answer *answer = arg;
	char *longer;

	size *= count;
	if (answer->len + size > ETCD_ANSWER_MAX)
		return 0;
	longer = realloc(answer->text, answer->len + size + 1);
	if (!longer)
		return 0;
	memcpy(longer + answer->len, bytes, size);
	answer->text = longer;
	answer->len += size;
	return size;
}

enum etcd_outcome etcd_http_fail(struct etcd_reply *reply, enum etcd_outcome outcome, int cause,
				 const char *endpoint, const char *text)
{
	reply->cause = cause;
	reply->is_distrust = false;
	snprintf(reply->text, sizeof(reply->text), "etcd at %.100s: %.130s", endpoint, text);
	return outcome;
}

/* Without an HTTP answer, decide whether the request can have arrived. */
static enum etcd_outcome etcd_http_judge_transport(CURL *curl, CURLcode code)
{
	curl_off_t sent = 0;

	curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &sent);
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_URL_MALFORMAT:
		return ETCD_NOT_SENT;
	default:
		return sent ? ETCD_UNCERTAIN : ETCD_NOT_SENT;
	}
}

/* Returns true if one end does not accept the other's certificate. The other end refuses by an
 * alert of TLS; with TLS 1.3 the alert comes after the connection was made. */
static bool etcd_http_is_distrust(CURLcode code, const char *text)
{
	return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
	       code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_ISSUER_ERROR ||
	       (code != CURLE_OPERATION_TIMEDOUT && strstr(text, " alert "));
}

/* Keep an earlier reason that only an operator can remove: the failure to reach another member must
 * not replace that reason. */
static enum etcd_outcome etcd_http_fail_transport(CURL *curl, CURLcode code, const char *endpoint,
						  const struct etcd_answer *answer,
						  struct etcd_reply *reply)
{
	const char *text = answer->error[0] ? answer->error : curl_easy_strerror(code);
	enum etcd_outcome outcome = etcd_http_judge_transport(curl, code);
	bool is_distrust = etcd_http_is_distrust(code, text);

	if (reply->is_distrust && !is_distrust)
		return outcome;
	etcd_http_fail(reply, outcome, code == CURLE_OPERATION_TIMEDOUT ? ETIMEDOUT : ENOTCONN,
		       endpoint, text);
	reply->is_distrust = is_distrust;
	return outcome;
}

/* Decide about an error that etcd itself reports. The request may still have been carried out if
 * only this member could not carry it out, or stopped waiting for it. */
static enum etcd_outcome etcd_http_judge_error(const json_t *json, const char *endpoint,
					       struct etcd_reply *reply)
{
	const char *text = json_string_value(json_object_get(json, "error"));
	unsigned code = (unsigned)etcd_number(json, "code");

	text = text ? text : "an error without text";
	switch (code) {
	case GRPC_UNAUTHENTICATED:
		return etcd_http_fail(reply, ETCD_TOKEN_ENDED, EACCES, endpoint, text);
	case GRPC_PERMISSION_DENIED:
		return etcd_http_fail(reply, ETCD_REFUSED, EACCES, endpoint, text);
	case GRPC_RESOURCE_EXHAUSTED:
		return etcd_http_fail(reply, ETCD_REFUSED, ENOSPC, endpoint, text);
	case GRPC_INVALID_ARGUMENT:
	case GRPC_FAILED_PRECONDITION:
	case GRPC_UNIMPLEMENTED:
		/* Users or roles were changed after the token was issued. */
		if (strstr(text, "auth") && strstr(text, "old"))
			return etcd_http_fail(reply, ETCD_TOKEN_ENDED, EACCES, endpoint, text);
		return etcd_http_fail(reply, ETCD_REFUSED, strstr(text, "user") ? EACCES : EINVAL,
				      endpoint, text);
	default:
		return etcd_http_fail(reply, ETCD_UNCERTAIN, ETIMEDOUT, endpoint, text);
	}
}

static enum etcd_outcome etcd_http_judge_answer(CURL *curl, const char *endpoint,
						const struct etcd_answer *answer,
						struct etcd_reply *reply)
{
	enum etcd_outcome outcome;
	long status = 0;
	json_t *json;

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	json = json_loadb(answer->text ? answer->text : "", answer->len, 0, NULL);
	if (status == 404)
		outcome = etcd_http_fail(reply, ETCD_REFUSED, EPROTO, endpoint,
					 "this is not the v3 gateway of etcd 3.4 or newer");
	else if (!json_is_object(json))
		outcome = etcd_http_fail(reply, ETCD_UNCERTAIN, EPROTO, endpoint,
					 "the answer is not JSON");
	else if (status != 200 || json_object_get(json, "error"))
		outcome = etcd_http_judge_error(json, endpoint, reply);
	else
		outcome = ETCD_ANSWERED;
	if (outcome == ETCD_ANSWERED)
		reply->json = json;
	else
		json_decref(json);
	return outcome;
}

enum etcd_outcome etcd_http_judge(CURL *curl, CURLcode code, const char *endpoint,
				  const struct etcd_answer *answer, struct etcd_reply *reply)
{
	return code == CURLE_OK ? etcd_http_judge_answer(curl, endpoint, answer, reply)
				: etcd_http_fail_transport(curl, code, endpoint, answer, reply);
}

void etcd_http_fill(const struct etcd_register *e, CURL *curl, const struct etcd_request *request,
		    unsigned limit_ms, struct etcd_answer *answer)
{
	etcd_http_prepare(e, curl);
	curl_easy_setopt(curl, CURLOPT_URL, request->url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, request->headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->text);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)limit_ms);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, etcd_http_collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, answer->error);
}

/* Let the socket be closed by a reset when a request is given up. Otherwise a broken link, when it
 * works again, would deliver the unsent bytes, which could carry out a swap that was already
 * reported as failed. */
static int etcd_http_on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	const struct linger reset = {.l_onoff = 1};

	(void)arg;
	(void)purpose;
	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) ? CURL_SOCKOPT_ERROR
									    : CURL_SOCKOPT_OK;
}

static enum etcd_outcome etcd_http_send(struct etcd_register *e, const char *endpoint,
					const struct etcd_request *request, unsigned limit_ms,
					struct etcd_reply *reply)
{
	struct etcd_answer answer = {0};
	enum etcd_outcome outcome;

	etcd_http_fill(e, e->curl, request, limit_ms, &answer);
	curl_easy_setopt(e->curl, CURLOPT_SOCKOPTFUNCTION, etcd_http_on_socket);
	outcome = etcd_http_judge(e->curl, curl_easy_perform(e->curl), endpoint, &answer, reply);
	curl_easy_setopt(e->curl, CURLOPT_ERRORBUFFER, NULL);
	free(answer.text);
	return outcome;
}

enum etcd_outcome etcd_http_post(struct etcd_register *e, unsigned endpoint, const char *path,
				 const json_t *body, unsigned limit_ms, struct etcd_reply *reply)
{
	struct etcd_request request = {.headers = etcd_http_headers(e),
				       .text = json_dumps(body, JSON_COMPACT)};
	enum etcd_outcome outcome;

	reply->json = NULL;
	if (request.headers && request.text) {
		etcd_http_url(e, endpoint, path, request.url);
		outcome = etcd_http_send(e, e->endpoint[endpoint], &request, limit_ms, reply);
	} else {
		outcome = etcd_http_fail(reply, ETCD_REFUSED, ENOMEM, e->endpoint[endpoint],
					 "out of memory for a request");
	}
	curl_easy_setopt(e->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(request.headers);
	free(request.text);
	return outcome;
}

enum etcd_outcome etcd_authenticate(struct etcd_register *e, unsigned endpoint, unsigned limit_ms,
				    struct etcd_reply *reply)
{
	enum etcd_outcome outcome;
	const char *token;
	struct error err;
	json_t *body;

	if (!e->user[0] || e->token[0])
		return ETCD_ANSWERED;
	/* the password may have been changed in the file and in etcd */
	if (etcd_read_password(e, &err))
		LOG_WARNING_LIMITED("%s; the former token is used", err.text);
	body = json_pack("{s:s, s:s}", "name", e->user, "password", e->password);
	outcome = etcd_http_post(e, endpoint, "/v3/auth/authenticate", body, limit_ms, reply);
	json_decref(body);
	if (outcome != ETCD_ANSWERED)
		return outcome == ETCD_UNCERTAIN ? ETCD_NOT_SENT
						 : outcome; /* the outcome of the real request */
	token = json_string_value(json_object_get(reply->json, "token"));
	snprintf(e->token, sizeof(e->token), "%s", token ? token : "");
	json_decref(reply->json);
	reply->json = NULL;
	if (!e->token[0])
		return etcd_http_fail(reply, ETCD_REFUSED, EACCES, e->endpoint[endpoint],
				      "etcd returned no token");
	return ETCD_ANSWERED;
}

/* Send a request with a token; if the token has expired, send it once more with a new token. */
static enum etcd_outcome etcd_call_one(struct etcd_register *e, const char *path,
				       const json_t *body, unsigned limit_ms,
				       struct etcd_reply *reply)
{
	enum etcd_outcome outcome = ETCD_TOKEN_ENDED;

	for (int attempt = 0; attempt < 2 && outcome == ETCD_TOKEN_ENDED; attempt++) {
		outcome = etcd_authenticate(e, e->preferred, limit_ms, reply);
		if (outcome != ETCD_ANSWERED)
			return outcome == ETCD_TOKEN_ENDED ? ETCD_REFUSED : outcome;
		outcome = etcd_http_post(e, e->preferred, path, body, limit_ms, reply);
		if (outcome == ETCD_TOKEN_ENDED)
			e->token[0] = '\0';
	}
	return outcome == ETCD_TOKEN_ENDED ? ETCD_REFUSED : outcome;
}

static void etcd_call_pause(uint64_t deadline)
{
	uint64_t now = clock_now_ns();
	uint64_t ns = ETCD_PAUSE_MS * NSEC_PER_MS;
	struct timespec pause;

	if (now >= deadline)
		return;
	ns = deadline - now < ns ? deadline - now : ns;
	pause = (struct timespec){.tv_nsec = (long)ns};
	nanosleep(&pause, NULL);
}

enum etcd_outcome etcd_call(struct etcd_register *e, const char *path, const json_t *body,
			    uint64_t deadline, struct etcd_reply *reply)
{
	bool uncertain = false;

	for (unsigned tried = 0;; tried++) {
		unsigned in_round = e->endpoints - tried % e->endpoints;
		uint64_t now = clock_now_ns();
		uint64_t left_ms = now < deadline ? (deadline - now) / NSEC_PER_MS : 0;
		enum etcd_outcome outcome;

		/* Limit the time of this attempt, so that time is left for the other members if
		 * this member is silent. */
		if (tried && left_ms / in_round < ETCD_ATTEMPT_MS)
			return uncertain ? ETCD_UNCERTAIN : ETCD_NOT_SENT;
		outcome = etcd_call_one(e, path, body, (unsigned)(left_ms / in_round) + 1, reply);
		if (outcome == ETCD_ANSWERED)
			return outcome;
		if (outcome == ETCD_REFUSED)
			return uncertain ? ETCD_UNCERTAIN : ETCD_REFUSED;
		uncertain |= outcome == ETCD_UNCERTAIN;
		e->preferred = (e->preferred + 1) % e->endpoints;
		if (in_round == 1)
			etcd_call_pause(deadline);
	}
}
