/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions/hello.h"

#include <string.h>

#include "base/cursor.h"

#define HELLO_MAGIC 0x414d5052u /* "RPMA" */

/* Read len bytes. If len exceeds max or the rest of the buffer, the cursor becomes bad. */
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

static void hello_put_claim(struct wcursor *c, const struct claim_id *claim)
{
	wcursor_le(c, claim->generation, 8);
	wcursor_le(c, claim->key, 8);
}

static struct claim_id hello_get_claim(struct rcursor *c)
{
	uint64_t generation = rcursor_le(c, 8);

	return (struct claim_id){generation, rcursor_le(c, 8)};
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

/* Write only the members that are valid in this state. */
static void hello_put_content(struct wcursor *c, const struct hello_content *content)
{
	wcursor_le(c, content->state, 1);
	if (content->state == HELLO_CONTENT_RAW)
		return;
	wcursor_le(c, content->length, 8);
	wcursor_le(c, content->time_ns, 8);
	if (content->state == HELLO_CONTENT_WHOLE)
		wcursor_bytes(c, content->digest, HELLO_DIGEST);
}

static void hello_get_content(struct rcursor *c, struct hello_content *content)
{
	memset(content, 0, sizeof(*content));
	content->state = (uint8_t)rcursor_le(c, 1);
	if (content->state > HELLO_CONTENT_WHOLE)
		c->bad = true;
	if (c->bad || content->state == HELLO_CONTENT_RAW)
		return;
	content->length = rcursor_le(c, 8);
	content->time_ns = rcursor_le(c, 8);
	if (content->state == HELLO_CONTENT_WHOLE)
		hello_get_bytes(c, content->digest, HELLO_DIGEST, HELLO_DIGEST);
}

/* Write everything behind the magic number. A grant contains these bytes as well. */
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
	hello_put_content(c, &reply->content);
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
	hello_get_content(c, &reply->content);
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

/* Encode a question that consists only of its type. */
static size_t hello_question_encode(enum hello_type type, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_TO_MAX, type);

	return wcursor_len(&c);
}

static bool hello_question_decode(const uint8_t *buf, size_t len, enum hello_type type)
{
	struct rcursor c = hello_message_open(buf, len, type);

	return hello_message_is_whole(&c);
}

size_t hello_ask_encode(uint8_t *buf)
{
	return hello_question_encode(HELLO_TYPE_ASK, buf);
}

bool hello_ask_decode(const uint8_t *buf, size_t len)
{
	return hello_question_decode(buf, len, HELLO_TYPE_ASK);
}

size_t hello_ask_counts_encode(uint8_t *buf)
{
	return hello_question_encode(HELLO_TYPE_ASK_COUNTS, buf);
}

bool hello_ask_counts_decode(const uint8_t *buf, size_t len)
{
	return hello_question_decode(buf, len, HELLO_TYPE_ASK_COUNTS);
}

size_t hello_confirm_encode(uint8_t *buf)
{
	return hello_question_encode(HELLO_TYPE_CONFIRM, buf);
}

bool hello_confirm_decode(const uint8_t *buf, size_t len)
{
	return hello_question_decode(buf, len, HELLO_TYPE_CONFIRM);
}

size_t hello_begin_encode(const struct hello_begin *begin, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_BEGIN);

	wcursor_le(&c, begin->is_file, 1);
	wcursor_le(&c, begin->offset, 8);
	wcursor_le(&c, begin->length, 8);
	wcursor_le(&c, begin->time_ns, 8);
	hello_put_claim(&c, &begin->former);
	return wcursor_len(&c);
}

bool hello_begin_decode(const uint8_t *buf, size_t len, struct hello_begin *begin)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_BEGIN);
	uint64_t is_file = rcursor_le(&c, 1);

	memset(begin, 0, sizeof(*begin));
	begin->is_file = is_file == 1;
	begin->offset = rcursor_le(&c, 8);
	begin->length = rcursor_le(&c, 8);
	begin->time_ns = rcursor_le(&c, 8);
	begin->former = hello_get_claim(&c);
	return hello_message_is_whole(&c) && is_file <= 1;
}

size_t hello_end_encode(const struct hello_content *content, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_TO_MAX, HELLO_TYPE_END);

	hello_put_content(&c, content);
	return wcursor_len(&c);
}

bool hello_end_decode(const uint8_t *buf, size_t len, struct hello_content *content)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_END);

	hello_get_content(&c, content);
	return hello_message_is_whole(&c) && content->state == HELLO_CONTENT_WHOLE;
}

size_t hello_verdict_encode(enum hello_status status, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_VERDICT, HELLO_TYPE_VERDICT);

	wcursor_le(&c, status, 1);
	return wcursor_len(&c);
}

/* A malformed message, or an unknown status, must not count as a success. */
static bool hello_status_take(const struct rcursor *c, uint64_t value, enum hello_status *status)
{
	bool is_one = hello_message_is_whole(c) && value < HELLO_STATUS_COUNT;

	*status = is_one ? (enum hello_status)value : HELLO_FILE_UNKNOWN;
	return is_one;
}

bool hello_verdict_decode(const uint8_t *buf, size_t len, enum hello_status *status)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_VERDICT);
	uint64_t value = rcursor_le(&c, 1);

	return hello_status_take(&c, value, status);
}

size_t hello_begun_encode(const struct hello_begun *begun, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_BEGUN, HELLO_TYPE_BEGUN);

	wcursor_le(&c, begun->status, 1);
	hello_put_claim(&c, &begun->claim);
	wcursor_le(&c, begun->made_ns, 8);
	return wcursor_len(&c);
}

bool hello_begun_decode(const uint8_t *buf, size_t len, struct hello_begun *begun)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_BEGUN);
	uint64_t value = rcursor_le(&c, 1);

	begun->claim = hello_get_claim(&c);
	begun->made_ns = rcursor_le(&c, 8);
	return hello_status_take(&c, value, &begun->status);
}

size_t hello_list_encode(const struct hello_list *list, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_FROM_MAX, HELLO_TYPE_LIST);

	wcursor_le(&c, list->count, 1);
	for (unsigned i = 0; i < list->count; i++) {
		hello_put_name(&c, list->entries[i].region);
		wcursor_le(&c, list->entries[i].size, 8);
		wcursor_le(&c, list->entries[i].durability, 1);
		hello_put_content(&c, &list->entries[i].content);
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
		hello_get_content(&c, &list->entries[i].content);
	}
	return hello_message_is_whole(&c);
}

const char *hello_value_name(unsigned index)
{
	static const char *const names[HELLO_VALUES] = {
		"rx_bytes",       "tx_bytes",
		"writes_in",      "sends_in",
		"reads_in",       "flushes_in",
		"atomics_in",     "writebacks",
		"crc_errors",     "terminates_in",
		"terminates_out", [HELLO_WRITEBACK_FAILURES] = "writeback_failures",
	};

	return index < HELLO_VALUES ? names[index] : NULL;
}

static void hello_put_region_counts(struct wcursor *c, const struct hello_region_counts *r)
{
	hello_put_name(c, r->region);
	wcursor_le(c, r->size, 8);
	wcursor_le(c, r->durability, 1);
	wcursor_le(c, r->status, 1);
	wcursor_le(c, r->avail, 8);
	wcursor_le(c, r->room, 8);
}

static void hello_get_region_counts(struct rcursor *c, struct hello_region_counts *r)
{
	hello_get_name(c, r->region);
	r->size = rcursor_le(c, 8);
	r->durability = (uint8_t)rcursor_le(c, 1);
	r->status = (uint8_t)rcursor_le(c, 1);
	c->bad |= r->status >= HELLO_STATUS_COUNT;
	r->avail = rcursor_le(c, 8);
	r->room = rcursor_le(c, 8);
}

size_t hello_counts_encode(const struct hello_counts *counts, uint8_t *buf)
{
	struct wcursor c = hello_message_begin(buf, HELLO_FROM_MAX, HELLO_TYPE_COUNTS);

	wcursor_le(&c, counts->clients, 8);
	wcursor_le(&c, counts->served, 8);
	wcursor_le(&c, counts->refused, 8);
	wcursor_le(&c, HELLO_VALUES, 1);
	for (unsigned i = 0; i < HELLO_VALUES; i++)
		wcursor_le(&c, counts->values[i], 8);
	wcursor_le(&c, counts->count, 1);
	for (unsigned i = 0; i < counts->count; i++)
		hello_put_region_counts(&c, &counts->regions[i]);
	return wcursor_len(&c);
}

/* An older server sends fewer values. The missing values stay 0. */
static void hello_get_values(struct rcursor *c, uint64_t values[HELLO_VALUES])
{
	unsigned count = (unsigned)rcursor_le(c, 1);

	c->bad |= count > HELLO_VALUES_MAX;
	for (unsigned i = 0; i < count && !c->bad; i++) {
		uint64_t value = rcursor_le(c, 8);

		if (i < HELLO_VALUES)
			values[i] = value;
	}
}

bool hello_counts_decode(const uint8_t *buf, size_t len, struct hello_counts *counts)
{
	struct rcursor c = hello_message_open(buf, len, HELLO_TYPE_COUNTS);

	memset(counts, 0, sizeof(*counts));
	counts->clients = rcursor_le(&c, 8);
	counts->served = rcursor_le(&c, 8);
	counts->refused = rcursor_le(&c, 8);
	hello_get_values(&c, counts->values);
	counts->count = (uint8_t)rcursor_le(&c, 1);
	c.bad |= counts->count > HELLO_ENTRY_MAX;
	for (unsigned i = 0; i < counts->count && !c.bad; i++)
		hello_get_region_counts(&c, &counts->regions[i]);
	if (!hello_message_is_whole(&c))
		counts->count = 0;
	return hello_message_is_whole(&c);
}
