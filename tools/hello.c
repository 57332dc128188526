/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "hello.h"

#define HELLO_MAGIC 0x414d5052u /* "RPMA" */

/* A bounded walk over a buffer; reads past the end give zeros and set bad. */
struct walk {
	uint8_t *at, *end;
	bool bad;
};

static uint8_t *walk_take(struct walk *w, size_t len)
{
	uint8_t *at = w->at;

	if (w->bad || (size_t)(w->end - w->at) < len) {
		w->bad = true;
		return NULL;
	}
	w->at += len;
	return at;
}

static void put_int(struct walk *w, uint64_t value, size_t width)
{
	uint8_t *at = walk_take(w, width);

	for (size_t i = 0; at && i < width; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_int(struct walk *w, size_t width)
{
	const uint8_t *at = walk_take(w, width);
	uint64_t value = 0;

	for (size_t i = 0; at && i < width; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static void put_bytes(struct walk *w, const void *src, size_t len)
{
	uint8_t *at = walk_take(w, len);

	if (at)
		memcpy(at, src, len);
}

static void get_bytes(struct walk *w, void *dst, size_t len, size_t max)
{
	const uint8_t *at = len <= max ? walk_take(w, len) : NULL;

	if (at)
		memcpy(dst, at, len);
	else
		w->bad = true;
}

static struct walk walk_over(const void *buf, size_t len)
{
	uint8_t *at = (uint8_t *)buf; /* decoders only read */

	return (struct walk){.at = at, .end = at + len, .bad = !buf};
}

static void put_name(struct walk *w, const char *name)
{
	size_t len = strnlen(name, HELLO_NAME_MAX);

	put_int(w, len, 1);
	put_bytes(w, name, len);
}

static void get_name(struct walk *w, char *name)
{
	size_t len = get_int(w, 1);

	memset(name, 0, HELLO_NAME_MAX + 1);
	get_bytes(w, name, len, HELLO_NAME_MAX);
}

size_t hello_request_encode(const struct hello_request *req, uint8_t *buf)
{
	struct walk w = walk_over(buf, HELLO_MAX);

	put_int(&w, HELLO_MAGIC, 4);
	put_int(&w, req->version, 1);
	put_int(&w, req->access, 1);
	put_int(&w, req->has_secret, 1);
	put_name(&w, req->region);
	return (size_t)(w.at - buf);
}

bool hello_request_decode(const struct rpma_conn_private_data *pdata, struct hello_request *req)
{
	struct walk w = walk_over(pdata->ptr, pdata->len);

	memset(req, 0, sizeof(*req));
	if (get_int(&w, 4) != HELLO_MAGIC)
		return false;
	req->version = (uint8_t)get_int(&w, 1);
	if (req->version != HELLO_VERSION)
		return !w.bad;
	req->access = (uint8_t)get_int(&w, 1);
	req->has_secret = get_int(&w, 1) & 1;
	get_name(&w, req->region);
	return !w.bad;
}

/* Everything behind the magic number; a grant repeats it. */
static void put_reply(struct walk *w, const struct hello_reply *reply)
{
	put_int(w, reply->version, 1);
	put_int(w, reply->status, 1);
	put_int(w, reply->durability, 1);
	put_int(w, reply->size, 8);
	put_int(w, reply->pcfg_len, 1);
	put_bytes(w, reply->pcfg, reply->pcfg_len);
	put_int(w, reply->mr_len, 1);
	put_bytes(w, reply->mr, reply->mr_len);
	put_name(w, reply->region);
	if (reply->status == HELLO_PROVE)
		put_bytes(w, reply->nonce, HELLO_NONCE);
}

static bool get_reply(struct walk *w, struct hello_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->version = (uint8_t)get_int(w, 1);
	reply->status = (uint8_t)get_int(w, 1);
	if (reply->version != HELLO_VERSION)
		return !w->bad;
	reply->durability = (uint8_t)get_int(w, 1);
	reply->size = get_int(w, 8);
	reply->pcfg_len = (uint8_t)get_int(w, 1);
	get_bytes(w, reply->pcfg, reply->pcfg_len, HELLO_DESC_MAX);
	reply->mr_len = (uint8_t)get_int(w, 1);
	get_bytes(w, reply->mr, reply->mr_len, HELLO_DESC_MAX);
	get_name(w, reply->region);
	if (reply->status == HELLO_PROVE)
		get_bytes(w, reply->nonce, HELLO_NONCE, HELLO_NONCE);
	return !w->bad;
}

size_t hello_reply_encode(const struct hello_reply *reply, uint8_t *buf)
{
	struct walk w = walk_over(buf, HELLO_MAX);

	put_int(&w, HELLO_MAGIC, 4);
	put_reply(&w, reply);
	return (size_t)(w.at - buf);
}

bool hello_reply_decode(const struct rpma_conn_private_data *pdata, struct hello_reply *reply)
{
	struct walk w = walk_over(pdata->ptr, pdata->len);

	memset(reply, 0, sizeof(*reply));
	return get_int(&w, 4) == HELLO_MAGIC && get_reply(&w, reply);
}

static struct walk message_begin(uint8_t *buf, size_t size, enum hello_type type)
{
	struct walk w = walk_over(buf, size);

	put_int(&w, HELLO_MAGIC, 4);
	put_int(&w, type, 1);
	return w;
}

static struct walk message_open(const uint8_t *buf, size_t len, enum hello_type type)
{
	struct walk w = walk_over(buf, len);

	if (get_int(&w, 4) != HELLO_MAGIC || get_int(&w, 1) != type)
		w.bad = true;
	return w;
}

static bool message_is_whole(const struct walk *w)
{
	return !w->bad && w->at == w->end;
}

size_t hello_proof_encode(const struct hello_proof *proof, uint8_t *buf)
{
	struct walk w = message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_PROOF);

	put_bytes(&w, proof->nonce, HELLO_NONCE);
	put_bytes(&w, proof->mac, HELLO_MAC);
	return (size_t)(w.at - buf);
}

bool hello_proof_decode(const uint8_t *buf, size_t len, struct hello_proof *proof)
{
	struct walk w = message_open(buf, len, HELLO_TYPE_PROOF);

	memset(proof, 0, sizeof(*proof));
	get_bytes(&w, proof->nonce, HELLO_NONCE, HELLO_NONCE);
	get_bytes(&w, proof->mac, HELLO_MAC, HELLO_MAC);
	return message_is_whole(&w);
}

size_t hello_grant_encode(const struct hello_grant *grant, uint8_t *buf)
{
	struct walk w = message_begin(buf, HELLO_FROM_MAX, HELLO_TYPE_GRANT);

	put_reply(&w, &grant->reply);
	put_bytes(&w, grant->mac, HELLO_MAC);
	return (size_t)(w.at - buf);
}

bool hello_grant_decode(const uint8_t *buf, size_t len, struct hello_grant *grant)
{
	struct walk w = message_open(buf, len, HELLO_TYPE_GRANT);

	memset(grant, 0, sizeof(*grant));
	get_reply(&w, &grant->reply);
	get_bytes(&w, grant->mac, HELLO_MAC, HELLO_MAC);
	return message_is_whole(&w);
}

size_t hello_ask_encode(uint8_t *buf)
{
	struct walk w = message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_ASK);

	return (size_t)(w.at - buf);
}

bool hello_ask_decode(const uint8_t *buf, size_t len)
{
	struct walk w = message_open(buf, len, HELLO_TYPE_ASK);

	return message_is_whole(&w);
}

size_t hello_confirm_encode(uint8_t *buf)
{
	struct walk w = message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_CONFIRM);

	return (size_t)(w.at - buf);
}

bool hello_confirm_decode(const uint8_t *buf, size_t len)
{
	struct walk w = message_open(buf, len, HELLO_TYPE_CONFIRM);

	return message_is_whole(&w);
}

size_t hello_verdict_encode(enum hello_status status, uint8_t *buf)
{
	struct walk w = message_begin(buf, HELLO_VERDICT, HELLO_TYPE_VERDICT);

	put_int(&w, status, 1);
	return (size_t)(w.at - buf);
}

/* Whatever is no verdict must not be taken for a good one. */
bool hello_verdict_decode(const uint8_t *buf, size_t len, enum hello_status *status)
{
	struct walk w = message_open(buf, len, HELLO_TYPE_VERDICT);
	uint64_t value = get_int(&w, 1);

	*status = HELLO_FILE_UNKNOWN;
	if (!message_is_whole(&w) || value >= HELLO_STATUS_COUNT)
		return false;
	*status = (enum hello_status)value;
	return true;
}

size_t hello_list_encode(const struct hello_list *list, uint8_t *buf)
{
	struct walk w = message_begin(buf, HELLO_FROM_MAX, HELLO_TYPE_LIST);

	put_int(&w, list->count, 1);
	for (unsigned i = 0; i < list->count; i++) {
		put_name(&w, list->entries[i].region);
		put_int(&w, list->entries[i].size, 8);
		put_int(&w, list->entries[i].durability, 1);
	}
	return (size_t)(w.at - buf);
}

bool hello_list_decode(const uint8_t *buf, size_t len, struct hello_list *list)
{
	struct walk w = message_open(buf, len, HELLO_TYPE_LIST);

	memset(list, 0, sizeof(*list));
	list->count = (uint8_t)get_int(&w, 1);
	if (list->count > HELLO_ENTRY_MAX) {
		list->count = 0;
		return false;
	}
	for (unsigned i = 0; i < list->count; i++) {
		get_name(&w, list->entries[i].region);
		list->entries[i].size = get_int(&w, 8);
		list->entries[i].durability = (uint8_t)get_int(&w, 1);
	}
	return message_is_whole(&w);
}
