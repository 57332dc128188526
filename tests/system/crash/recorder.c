/* SPDX-License-Identifier: BSD-3-Clause */
#include "recorder.h"

#include <string.h>

void record_make(uint8_t record[RECORD_SIZE], uint64_t n)
{
	uint64_t x = (n + 1) * 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < RECORD_SIZE; i += sizeof(x), x = x * 0x2545f4914f6cdd1dull + n)
		memcpy(record + i, &x, sizeof(x));
	memcpy(record, &n, sizeof(n));
}

int recorder_open(struct recorder *r, uint64_t first)
{
	r->next = r->acked = first;
	return client_open(&r->client, (size_t)RECORD_DEPTH * RECORD_SIZE);
}

/* A record's place in the buffer is free again once it is acknowledged. */
int recorder_post(struct recorder *r)
{
	struct client *c = &r->client;
	size_t from = r->next % RECORD_DEPTH * RECORD_SIZE, to = r->next * RECORD_SIZE;
	int ret;

	record_make(c->buf + from, r->next);
	ret = rpma_write(c->conn, c->at[0], to, c->mr, from, RECORD_SIZE,
			 RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!ret)
		ret = rpma_flush(c->conn, c->at[0], to, RECORD_SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
				 RPMA_F_COMPLETION_ALWAYS, NULL);
	r->next += !ret;
	return ret;
}

static int take(struct recorder *r, int timeout_ms)
{
	struct ibv_wc wc;
	int ret = client_wait_wc(r->client.cq, &wc, timeout_ms);

	if (ret)
		return ret;
	if (wc.status != IBV_WC_SUCCESS)
		return RPMA_E_UNKNOWN;
	r->acked++;
	return 0;
}

int recorder_step(struct recorder *r)
{
	while (r->next - r->acked < RECORD_DEPTH) {
		int ret = recorder_post(r);

		if (ret)
			return ret;
	}
	return take(r, CLIENT_WAIT_MS);
}

void recorder_drain(struct recorder *r)
{
	while (r->acked < r->next && !take(r, CLIENT_WAIT_MS))
		;
}
