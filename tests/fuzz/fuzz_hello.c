/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: a message between the two ends of the program rpma. The first byte chooses the decoder; a
 * decoded message must encode to the same bytes.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "regions/hello.h"

static struct rpma_conn_private_data pdata_of(const uint8_t *data, size_t len)
{
	return (struct rpma_conn_private_data){(void *)data, (uint8_t)len};
}

static void try_request(const uint8_t *data, size_t len)
{
	struct rpma_conn_private_data pdata = pdata_of(data, len);
	struct hello_request req, again;
	uint8_t buf[HELLO_MAX];

	if (!hello_request_decode(&pdata, &req) || req.version != HELLO_VERSION)
		return;
	EXPECT(strlen(req.region) <= HELLO_NAME_MAX);
	pdata = pdata_of(buf, hello_request_encode(&req, buf));
	EXPECT(hello_request_decode(&pdata, &again));
	EXPECT(req.access == again.access && !strcmp(req.region, again.region));
}

static void try_reply(const uint8_t *data, size_t len)
{
	struct rpma_conn_private_data pdata = pdata_of(data, len);
	struct hello_reply reply, again;
	uint8_t buf[HELLO_MAX];

	if (!hello_reply_decode(&pdata, &reply) || reply.version != HELLO_VERSION)
		return;
	EXPECT(reply.pcfg_len <= HELLO_DESC_MAX && reply.mr_len <= HELLO_DESC_MAX);
	EXPECT(strlen(reply.region) <= HELLO_NAME_MAX);
	pdata = pdata_of(buf, hello_reply_encode(&reply, buf));
	EXPECT(hello_reply_decode(&pdata, &again));
	EXPECT(reply.size == again.size && reply.mr_len == again.mr_len);
	EXPECT(!memcmp(&reply.content, &again.content, sizeof(again.content)));
}

static void try_proof(const uint8_t *data, size_t len)
{
	struct hello_proof proof;
	uint8_t buf[HELLO_TO_MAX];

	if (!hello_proof_decode(data, len, &proof))
		return;
	EXPECT(hello_proof_encode(&proof, buf) == len && !memcmp(buf, data, len));
}

static void try_grant(const uint8_t *data, size_t len)
{
	struct hello_grant grant, again;
	uint8_t buf[HELLO_FROM_MAX];

	if (!hello_grant_decode(data, len, &grant) || grant.reply.version != HELLO_VERSION)
		return;
	EXPECT(hello_grant_decode(buf, hello_grant_encode(&grant, buf), &again));
	EXPECT(!memcmp(grant.mac, again.mac, HELLO_MAC));
}

static void try_list(const uint8_t *data, size_t len)
{
	struct hello_list list, again;
	uint8_t buf[HELLO_FROM_MAX];

	if (!hello_list_decode(data, len, &list))
		return;
	EXPECT(list.count <= HELLO_ENTRY_MAX);
	EXPECT(hello_list_decode(buf, hello_list_encode(&list, buf), &again));
	EXPECT(list.count == again.count);
}

static void try_counts(const uint8_t *data, size_t len)
{
	struct hello_counts counts, again;
	uint8_t buf[HELLO_FROM_MAX], twice[HELLO_FROM_MAX];
	size_t size;

	if (!hello_counts_decode(data, len, &counts)) {
		EXPECT(!counts.count);
		return;
	}
	EXPECT(counts.count <= HELLO_ENTRY_MAX);
	size = hello_counts_encode(&counts, buf);
	EXPECT(hello_counts_decode(buf, size, &again));
	/* Compare the encoded bytes: the structures can differ after the NUL that ends a name. */
	EXPECT(hello_counts_encode(&again, twice) == size && !memcmp(buf, twice, size));
}

static void try_verdict(const uint8_t *data, size_t len)
{
	enum hello_status status;
	uint8_t buf[HELLO_VERDICT];

	if (!hello_verdict_decode(data, len, &status)) {
		EXPECT(status == HELLO_FILE_UNKNOWN);
		return;
	}
	EXPECT(status < HELLO_STATUS_COUNT);
	EXPECT(hello_verdict_encode(status, buf) == len && !memcmp(buf, data, len));
}

static void try_begin(const uint8_t *data, size_t len)
{
	struct hello_begin begin;
	uint8_t buf[HELLO_TO_MAX];

	if (!hello_begin_decode(data, len, &begin))
		return;
	EXPECT(hello_begin_encode(&begin, buf) == len && !memcmp(buf, data, len));
}

static void try_begun(const uint8_t *data, size_t len)
{
	struct hello_begun begun;
	uint8_t buf[HELLO_BEGUN];

	if (!hello_begun_decode(data, len, &begun)) {
		EXPECT(begun.status == HELLO_FILE_UNKNOWN);
		return;
	}
	EXPECT(begun.status < HELLO_STATUS_COUNT);
	EXPECT(hello_begun_encode(&begun, buf) == len && !memcmp(buf, data, len));
}

static void try_end(const uint8_t *data, size_t len)
{
	struct hello_content content;
	uint8_t buf[HELLO_TO_MAX];

	if (!hello_end_decode(data, len, &content))
		return;
	EXPECT(content.state == HELLO_CONTENT_WHOLE);
	EXPECT(hello_end_encode(&content, buf) == len && !memcmp(buf, data, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const tries[])(const uint8_t *, size_t) = {
		try_request, try_reply, try_proof, try_grant, try_list,
		try_verdict, try_begin, try_begun, try_end,   try_counts};
	uint8_t which;

	if (len < 1 || len > 4096)
		return 0;
	which = data[0] % (sizeof(tries) / sizeof(tries[0]));
	if (which < 2 && len > 256) /* the length field of private data has one byte */
		return 0;
	tries[which](data + 1, len - 1);
	hello_ask_decode(data + 1, len - 1);
	hello_ask_counts_decode(data + 1, len - 1);
	hello_confirm_decode(data + 1, len - 1);
	return 0;
}
