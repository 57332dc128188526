/* SPDX-License-Identifier: BSD-3-Clause */
/* The register in etcd: makes requests for keys and transactions, and parses their answers, in the
 * form of the v3 JSON gateway. */
#include "mirror/register/etcd.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a value in base64, for json_pack() with the format "o"; NULL: out of memory. */
static json_t *etcd_text64(const char *text, size_t len)
{
	size_t size = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
	char *text64 = malloc(size);
	json_t *string;

	if (!text64)
		return NULL;
	etcd_base64(text, len, text64, size);
	string = json_string(text64);
	free(text64);
	return string;
}

static int etcd_add_compare(json_t *list, const char *key64, const struct backend_value *expect)
{
	char revision[24];

	snprintf(revision, sizeof(revision), "%llu", (unsigned long long)expect->revision);
	if (!expect->revision)
		return json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "key", key64,
							     "target", "CREATE", "result", "EQUAL",
							     "create_revision", "0"));
	if (json_array_append_new(list,
				  json_pack("{s:s, s:s, s:s, s:s}", "key", key64, "target", "MOD",
					    "result", "EQUAL", "mod_revision", revision)))
		return -1;
	return json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "key", key64, "target",
						     "VALUE", "result", "EQUAL", "value",
						     etcd_text64(expect->text, expect->len)));
}

static int etcd_add_change(json_t *list, const char *key64, enum backend_change change,
			   const char *put)
{
	if (change == BACKEND_KEEP)
		return 0;
	if (change == BACKEND_DELETE)
		return json_array_append_new(
			list, json_pack("{s:{s:s}}", "request_delete_range", "key", key64));
	return json_array_append_new(list, json_pack("{s:{s:s, s:o}}", "request_put", "key", key64,
						     "value", etcd_text64(put, strlen(put))));
}

/* Add a read of each key, in the order of enum backend_key. */
static int etcd_add_reads(json_t *list, const struct etcd_register *e, enum backend_word word)
{
	for (unsigned key = 0; key < BACKEND_KEYS; key++)
		if (json_array_append_new(list, json_pack("{s:{s:s, s:b}}", "request_range", "key",
							  e->key64[key], "serializable",
							  word == BACKEND_OF_ONE)))
			return -1;
	return 0;
}

/* Returns NULL if memory is missing. */
static json_t *etcd_build_txn(const struct etcd_register *e, const struct backend_txn *txn)
{
	json_t *compare = json_array(), *success = json_array(), *failure = json_array();
	int rc = 0;

	for (unsigned key = 0; key < BACKEND_KEYS; key++) {
		if (txn->expect[key])
			rc |= etcd_add_compare(compare, e->key64[key], txn->expect[key]);
		rc |= etcd_add_change(success, e->key64[key], txn->change[key], txn->put[key]);
	}
	rc |= etcd_add_reads(failure, e, BACKEND_OF_ALL);
	if (!rc)
		return json_pack("{s:o, s:o, s:o}", "compare", compare, "success", success,
				 "failure", failure);
	json_decref(compare);
	json_decref(success);
	json_decref(failure);
	return NULL;
}

/* Parse one key of an answer. kvs: the list of results of a range. */
static int etcd_parse_value(const json_t *kvs, struct backend_value *value)
{
	const json_t *kv = json_array_get(kvs, 0);
	const char *text64 = json_string_value(json_object_get(kv, "value"));

	value->revision = etcd_number(kv, "mod_revision");
	value->len = 0;
	if (!kv)
		return 0;
	if (!value->revision)
		return -EPROTO;
	/* The gateway omits an empty value. */
	if (text64 && sodium_base642bin((unsigned char *)value->text, sizeof(value->text) - 1,
					text64, strlen(text64), NULL, &value->len, NULL,
					sodium_base64_VARIANT_ORIGINAL))
		return -EPROTO;
	value->text[value->len] = '\0';
	return 0;
}

/* Parse the answers to etcd_add_reads(). */
static int etcd_parse_reads(const json_t *answer, struct backend_keys *now)
{
	const json_t *responses = json_object_get(answer, "responses");

	for (unsigned key = 0; key < BACKEND_KEYS; key++) {
		const json_t *range =
			json_object_get(json_array_get(responses, key), "response_range");

		if (!range || etcd_parse_value(json_object_get(range, "kvs"), &now->key[key]))
			return -EPROTO;
	}
	return 0;
}

/* Returns the request of a read. A transaction that compares nothing and only reads is answered
 * through the leader, like a range, unless all its reads are serializable. */
static json_t *etcd_build_read(const struct etcd_register *e, enum backend_word word)
{
	json_t *success = json_array();

	if (!etcd_add_reads(success, e, word))
		return json_pack("{s:o}", "success", success);
	json_decref(success);
	return NULL;
}

/* Report a call that failed at all members. The text is the error of the last member, or an error
 * that names a certificate: such a register refuses this host until an operator corrects the
 * certificate. */
static int etcd_explain(const struct etcd_register *e, enum etcd_outcome outcome,
			const struct etcd_reply *reply, struct error *err)
{
	int cause = outcome == ETCD_UNCERTAIN ? ETIMEDOUT : ENOTCONN;

	if (outcome == ETCD_REFUSED) {
		error_set(err, ERROR_REFUSED, reply->cause, "%s", reply->text);
		return -reply->cause;
	}
	error_set(err, reply->is_distrust ? ERROR_REFUSED : ERROR_UNREACHED, cause,
		  "no answer by a majority of the register's members (%u addresses) within %u ms; "
		  "%s: %s",
		  e->endpoints, e->base.limit_ms,
		  reply->is_distrust ? "TLS fails" : "the last error", reply->text);
	return -cause;
}

static int etcd_no_memory(struct error *err)
{
	error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for a request");
	return -ENOMEM;
}

static int etcd_bad_answer(struct error *err)
{
	error_set(err, ERROR_FAILED, EPROTO, "etcd's answer cannot be understood");
	return -EPROTO;
}

static int etcd_read(struct mirror_register *r, uint64_t deadline, enum backend_word word,
		     struct backend_keys *now, struct error *err)
{
	struct etcd_register *e = etcd_of(r);
	struct etcd_reply reply = {0};
	json_t *body = etcd_build_read(e, word);
	enum etcd_outcome outcome;
	int rc;

	if (!body)
		return etcd_no_memory(err);
	outcome = etcd_ask(e, "/v3/kv/txn", body, deadline, &reply);
	json_decref(body);
	if (outcome != ETCD_ANSWERED)
		return etcd_explain(e, outcome, &reply, err);
	rc = etcd_parse_reads(reply.json, now);
	json_decref(reply.json);
	return rc ? etcd_bad_answer(err) : 0;
}

static enum register_result etcd_parse_txn(const json_t *answer, uint64_t *revision,
					   struct backend_keys *now, struct error *err)
{
	if (json_is_true(json_object_get(answer, "succeeded"))) {
		*revision = etcd_number(json_object_get(answer, "header"), "revision");
		return REGISTER_DONE;
	}
	if (!etcd_parse_reads(answer, now))
		return REGISTER_CHANGED;
	etcd_bad_answer(err);
	return REGISTER_UNKNOWN;
}

static enum register_result etcd_txn(struct mirror_register *r, uint64_t deadline,
				     const struct backend_txn *txn, uint64_t *revision,
				     struct backend_keys *now, struct error *err)
{
	struct etcd_register *e = etcd_of(r);
	struct etcd_reply reply = {0};
	json_t *body = etcd_build_txn(e, txn);
	enum register_result result;
	enum etcd_outcome outcome;

	if (!body) {
		etcd_no_memory(err);
		return REGISTER_FAILED;
	}
	outcome = etcd_call(e, "/v3/kv/txn", body, deadline, &reply);
	json_decref(body);
	if (outcome != ETCD_ANSWERED) {
		etcd_explain(e, outcome, &reply, err);
		return outcome == ETCD_UNCERTAIN ? REGISTER_UNKNOWN : REGISTER_FAILED;
	}
	result = etcd_parse_txn(reply.json, revision, now, err);
	json_decref(reply.json);
	return result;
}

/* Returns true if etcd has the alarm NOSPACE. Each member's status lists the alarms of all
 * members. */
static bool etcd_is_full(const json_t *status)
{
	const json_t *errors = json_object_get(status, "errors");
	bool is_full = false;

	for (size_t i = 0; i < json_array_size(errors) && !is_full; i++) {
		const char *text = json_string_value(json_array_get(errors, i));

		is_full = text && strstr(text, "NOSPACE");
	}
	return is_full;
}

/* Count only members that have a leader, so that the number shows whether there is a majority. */
static void etcd_health(struct mirror_register *r, struct register_health *health)
{
	struct etcd_register *e = etcd_of(r);
	unsigned limit_ms = r->limit_ms / e->endpoints + 1;
	json_t *body = json_object();

	strcpy(health->kind, "etcd");
	health->members = e->endpoints;
	for (unsigned i = 0; i < e->endpoints; i++) {
		struct etcd_reply reply = {0};

		if (etcd_authenticate(e, i, limit_ms, &reply) == ETCD_ANSWERED &&
		    etcd_http_post(e, i, "/v3/maintenance/status", body, limit_ms, &reply) ==
			    ETCD_ANSWERED) {
			health->healthy += etcd_number(reply.json, "leader") != 0;
			health->is_full |= etcd_is_full(reply.json);
		}
		json_decref(reply.json);
	}
	json_decref(body);
}

static void etcd_close(struct mirror_register *r)
{
	struct etcd_register *e = etcd_of(r);

	curl_easy_cleanup(e->curl);
	curl_multi_cleanup(e->asks);
	sodium_memzero(e->password, sizeof(e->password));
	sodium_memzero(e->token, sizeof(e->token));
	free(e);
}

const struct backend_ops etcd_ops = {
	.read = etcd_read,
	.txn = etcd_txn,
	.watch = etcd_watch,
	.health = etcd_health,
	.close = etcd_close,
};
