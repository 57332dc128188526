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
	struct walk w = {buf, buf + HELLO_MAX, false};

	put_int(&w, HELLO_MAGIC, 4);
	put_int(&w, req->version, 1);
	put_int(&w, req->access, 1);
	put_name(&w, req->region);
	return (size_t)(w.at - buf);
}

bool hello_request_decode(const struct rpma_conn_private_data *pdata, struct hello_request *req)
{
	struct walk w = {pdata->ptr, (uint8_t *)pdata->ptr + pdata->len, false};

	memset(req, 0, sizeof(*req));
	if (!pdata->ptr || get_int(&w, 4) != HELLO_MAGIC)
		return false;
	req->version = (uint8_t)get_int(&w, 1);
	if (req->version != HELLO_VERSION)
		return !w.bad;
	req->access = (uint8_t)get_int(&w, 1);
	get_name(&w, req->region);
	return !w.bad;
}

size_t hello_reply_encode(const struct hello_reply *reply, uint8_t *buf)
{
	struct walk w = {buf, buf + HELLO_MAX, false};

	put_int(&w, HELLO_MAGIC, 4);
	put_int(&w, reply->version, 1);
	put_int(&w, reply->status, 1);
	put_int(&w, reply->durability, 1);
	put_int(&w, reply->size, 8);
	put_int(&w, reply->pcfg_len, 1);
	put_bytes(&w, reply->pcfg, reply->pcfg_len);
	put_int(&w, reply->mr_len, 1);
	put_bytes(&w, reply->mr, reply->mr_len);
	put_name(&w, reply->region);
	return (size_t)(w.at - buf);
}

bool hello_reply_decode(const struct rpma_conn_private_data *pdata, struct hello_reply *reply)
{
	struct walk w = {pdata->ptr, (uint8_t *)pdata->ptr + pdata->len, false};

	memset(reply, 0, sizeof(*reply));
	if (!pdata->ptr || get_int(&w, 4) != HELLO_MAGIC)
		return false;
	reply->version = (uint8_t)get_int(&w, 1);
	reply->status = (uint8_t)get_int(&w, 1);
	if (reply->version != HELLO_VERSION)
		return !w.bad;
	reply->durability = (uint8_t)get_int(&w, 1);
	reply->size = get_int(&w, 8);
	reply->pcfg_len = (uint8_t)get_int(&w, 1);
	get_bytes(&w, reply->pcfg, reply->pcfg_len, HELLO_DESC_MAX);
	reply->mr_len = (uint8_t)get_int(&w, 1);
	get_bytes(&w, reply->mr, reply->mr_len, HELLO_DESC_MAX);
	get_name(&w, reply->region);
	return !w.bad;
}

const char *hello_class_name(uint8_t durability)
{
	static const char *const names[] = {"volatile", "file", "dax"};

	return durability < 3 ? names[durability] : "unknown";
}
