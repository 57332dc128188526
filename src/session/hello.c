/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/hello.h"

#include <string.h>

#include "base/cursor.h"

#define HELLO_MAGIC 0x414d5052u /* "RPMA" */

/* At most max bytes; a length beyond that is as bad as one beyond the buffer. */
static void hello_get_bytes(struct rcursor *c, void *dst, size_t len, size_t max)
{
	const uint8_t *at;

	if (len > max) {
		c->bad = true;
		return;
	}
	at = rcursor_bytes(c, len);
	if (at)
		memcpy(dst, at, len);
}

static void hello_put_name(struct wcursor *c, const char *name)
{
	size_t len = strnlen(name, HELLO_NAME_MAX);

	wcursor_le(c, len, 1);
	wcursor_bytes(c, name, len);
}

static void hello_get_name(struct rcursor *c, char *name)
{
	size_t len = rcursor_le(c, 1);

	memset(name, 0, HELLO_NAME_MAX + 1);
	hello_get_bytes(c, name, len, HELLO_NAME_MAX);
}

size_t hello_request_encode(const struct hello_request *req, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, HELLO_MAX);

	wcursor_le(&c, HELLO_MAGIC, 4);
	wcursor_le(&c, req->version, 1);
	wcursor_le(&c, req->access, 1);
	wcursor_le(&c, req->has_secret, 1);
	hello_put_name(&c, req->region);
	return wcursor_len(&c);
}

bool hello_request_decode(const struct rpma_conn_private_data *pdata, struct hello_request *req)
{
	struct rcursor c = rcursor_init(pdata->ptr, pdata->len);

	memset(req, 0, sizeof(*req));
	if (rcursor_le(&c, 4) != HELLO_MAGIC)
		return false;
	req->version = (uint8_t)rcursor_le(&c, 1);
	if (req->version != HELLO_VERSION)
		return !c.bad;
	req->access = (uint8_t)rcursor_le(&c, 1);
	req->has_secret = rcursor_le(&c, 1) & 1;
	hello_get_name(&c, req->region);
	return !c.bad;
}

/* Everything behind the magic number; a grant repeats it. */
static void hello_put_reply(struct wcursor *c, const struct hello_reply *reply)
{
	wcursor_le(c, reply->version, 1);
	wcursor_le(c, reply->status, 1);
	wcursor_le(c, reply->durability, 1);
	wcursor_le(c, reply->size, 8);
	wcursor_le(c, reply->pcfg_len, 1);
	wcursor_bytes(c, reply->pcfg, reply->pcfg_len);
	wcursor_le(c, reply->mr_len, 1);
	wcursor_bytes(c, reply->mr, reply->mr_len);
	hello_put_name(c, reply->region);
	if (reply->status == HELLO_PROVE)
		wcursor_bytes(c, reply->nonce, HELLO_NONCE);
}

static bool hello_get_reply(struct rcursor *c, struct hello_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->version = (uint8_t)rcursor_le(c, 1);
	reply->status = (uint8_t)rcursor_le(c, 1);
	if (reply->version != HELLO_VERSION)
		return !c->bad;
	reply->durability = (uint8_t)rcursor_le(c, 1);
	reply->size = rcursor_le(c, 8);
	reply->pcfg_len = (uint8_t)rcursor_le(c, 1);
	hello_get_bytes(c, reply->pcfg, reply->pcfg_len, HELLO_DESC_MAX);
	reply->mr_len = (uint8_t)rcursor_le(c, 1);
	hello_get_bytes(c, reply->mr, reply->mr_len, HELLO_DESC_MAX);
	hello_get_name(c, reply->region);
	if (reply->status == HELLO_PROVE)
		hello_get_bytes(c, reply->nonce, HELLO_NONCE, HELLO_NONCE);
	return !c->bad;
}

size_t hello_reply_encode(const struct hello_reply *reply, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, HELLO_MAX);

	wcursor_le(&c, HELLO_MAGIC, 4);
	hello_put_reply(&c, reply);
	return wcursor_len(&c);
}

bool hello_reply_decode(const struct rpma_conn_private_data *pdata, struct hello_reply *reply)
{
	struct rcursor c = rcursor_init(pdata->ptr, pdata->len);

	memset(reply, 0, sizeof(*reply));
	return rcursor_le(&c, 4) == HELLO_MAGIC && hello_get_reply(&c, reply);
}

static struct wcursor hello_message_begin(uint8_t *buf, size_t size, enum hello_type type)
{
	struct wcursor c = wcursor_init(buf, size);

	wcursor_le(&c, HELLO_MAGIC, 4);
	wcursor_le(&c, type, 1);
	return c;
}

static struct rcursor hello_message_open(const uint8_t *buf, size_t len, enum hello_type type)
{
	struct rcursor c = rcursor_init(buf, len);

	if (rcursor_le(&c, 4) != HELLO_MAGIC || rcursor_le(&c, 1) != type)
		c.bad = true;
	return c;
}

static bool hello_message_is_whole(const struct rcursor *c)
{
	return !c->bad && !rcursor_left(c);
}

size_t hello_proof_encode(const struct hello_proof *proof, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_PROOF);

	wcursor_bytes(&c, proof->nonce, HELLO_NONCE);
	wcursor_bytes(&c, proof->mac, HELLO_MAC);
	return wcursor_len(&c);
}

bool hello_proof_decode(const uint8_t *buf, size_t len, struct hello_proof *proof)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_PROOF);

	memset(proof, 0, sizeof(*proof));
	hello_get_bytes(&c, proof->nonce, HELLO_NONCE, HELLO_NONCE);
	hello_get_bytes(&c, proof->mac, HELLO_MAC, HELLO_MAC);
	return hello_message_is_whole(&c);
}

size_t hello_grant_encode(const struct hello_grant *grant, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_FROM_MAX, HELLO_TYPE_GRANT);

	hello_put_reply(&c, &grant->reply);
	wcursor_bytes(&c, grant->mac, HELLO_MAC);
	return wcursor_len(&c);
}

bool hello_grant_decode(const uint8_t *buf, size_t len, struct hello_grant *grant)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_GRANT);

	memset(grant, 0, sizeof(*grant));
	hello_get_reply(&c, &grant->reply);
	hello_get_bytes(&c, grant->mac, HELLO_MAC, HELLO_MAC);
	return hello_message_is_whole(&c);
}

size_t hello_ask_encode(uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_ASK);

	return wcursor_len(&c);
}

bool hello_ask_decode(const uint8_t *buf, size_t len)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_ASK);

	return hello_message_is_whole(&c);
}

size_t hello_confirm_encode(uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_CONFIRM);

	return wcursor_len(&c);
}

bool hello_confirm_decode(const uint8_t *buf, size_t len)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_CONFIRM);

	return hello_message_is_whole(&c);
}

size_t hello_verdict_encode(enum hello_status status, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_VERDICT, HELLO_TYPE_VERDICT);

	wcursor_le(&c, status, 1);
	return wcursor_len(&c);
}

/* Whatever is no verdict must not be taken for a good one. */
bool hello_verdict_decode(const uint8_t *buf, size_t len, enum hello_status *status)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_VERDICT);
	uint64_t value = rcursor_le(&c, 1);

	*status = HELLO_FILE_UNKNOWN;
	if (!hello_message_is_whole(&c) || value >= HELLO_STATUS_COUNT)
		return false;
	*status = (enum hello_status)value;
	return true;
}

size_t hello_list_encode(const struct hello_list *list, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_FROM_MAX, HELLO_TYPE_LIST);

	wcursor_le(&c, list->count, 1);
	for (unsigned i = 0; i < list->count; i++) {
		hello_put_name(&c, list->entries[i].region);
		wcursor_le(&c, list->entries[i].size, 8);
		wcursor_le(&c, list->entries[i].durability, 1);
	}
	return wcursor_len(&c);
}

bool hello_list_decode(const uint8_t *buf, size_t len, struct hello_list *list)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_LIST);

	memset(list, 0, sizeof(*list));
	list->count = (uint8_t)rcursor_le(&c, 1);
	if (list->count > HELLO_ENTRY_MAX) {
		list->count = 0;
		return false;
	}
	for (unsigned i = 0; i < list->count; i++) {
		hello_get_name(&c, list->entries[i].region);
		list->entries[i].size = rcursor_le(&c, 8);
		list->entries[i].durability = (uint8_t)rcursor_le(&c, 1);
	}
	return hello_message_is_whole(&c);
}
