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
	uint32_t wrs = RECORD_DEPTH * RECORD_WRS;
	int ret = client_open(&r->client, (size_t)RECORD_DEPTH * RECORD_SIZE);

	r->next = r->acked = first;
	if (!ret)
		ret = rpma_conn_cfg_set_sq_size(r->client.cfg, wrs);
	return ret ? ret : rpma_conn_cfg_set_cq_size(r->client.cfg, wrs);
}

/* A softrnic target writes back the bytes that a Read covers, which RFC 5040 does not promise. */
static int recorder_declare_peer(struct recorder *r)
{
	struct rpma_peer_cfg *pcfg;
	int ret = rpma_peer_cfg_new(&pcfg);

	if (ret)
		return ret;
	ret = rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true);
	if (!ret)
		ret = rpma_conn_apply_remote_peer_cfg(r->client.conn, pcfg);
	rpma_peer_cfg_delete(&pcfg);
	return ret;
}

int recorder_prepare(struct recorder *r, enum record_how how)
{
	r->how = how;
	if (how == RECORD_READ)
		return recorder_declare_peer(r);
	return how == RECORD_BATCH ? rpma_batch_new(r->client.conn, RECORD_WRS, &r->batch) : 0;
}

static bool recorder_is_verified(const struct recorder *r, uint64_t n)
{
	uint32_t caps;

	return n % 2 && !rpma_conn_get_remote_caps(r->client.conn, &caps) && caps & RPMA_CAP_VERIFY;
}

/* Post a write and a flush, or a write and a Read. When the second request completes, the bytes are
 * persistent. Later requests wait for it. */
static int recorder_post_persist(struct recorder *r, size_t to)
{
	struct client *c = &r->client;

	if (recorder_is_verified(r, r->next))
		return rpma_verify(c->conn, c->at[0], to, RECORD_SIZE, RPMA_DIGEST_AUTO,
				   &r->digest[r->next % RECORD_DEPTH], RPMA_F_COMPLETION_ALWAYS,
				   (void *)(uintptr_t)r->next);
	return rpma_flush(c->conn, c->at[0], to, RECORD_SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
			  RPMA_F_COMPLETION_ON_ERROR, NULL);
}

static int recorder_post_commit(struct recorder *r)
{
	struct client *c = &r->client;
	uint64_t word = r->next + 1;
	size_t at;
	int ret = rpma_mr_remote_get_size(c->at[0], &at);

	at -= sizeof(word);
	if (!ret)
		ret = rpma_atomic_write(c->conn, c->at[0], at, (const char *)&word,
					RPMA_F_COMPLETION_ON_ERROR, NULL);
	return ret ? ret
		   : rpma_flush(c->conn, c->at[0], at, sizeof(word), RPMA_FLUSH_TYPE_PERSISTENT,
				RPMA_F_COMPLETION_ALWAYS, NULL);
}

/* Write, flush, write the word and flush with one call, which usually makes one system call. */
static int recorder_post_batch(struct recorder *r, size_t from, size_t to)
{
	struct client *c = &r->client;
	uint64_t word = r->next + 1;
	size_t at;
	int ret = rpma_mr_remote_get_size(c->at[0], &at);

	at -= sizeof(word);
	if (!ret)
		ret = rpma_batch_write(r->batch, c->at[0], to, c->mr, from, RECORD_SIZE,
				       RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!ret)
		ret = rpma_batch_flush(r->batch, c->at[0], to, RECORD_SIZE,
				       RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ON_ERROR,
				       NULL);
	if (!ret)
		ret = rpma_batch_atomic_write(r->batch, c->at[0], at, (const char *)&word,
					      RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!ret)
		ret = rpma_batch_flush_all(r->batch, RPMA_FLUSH_TYPE_PERSISTENT,
					   RPMA_F_COMPLETION_ALWAYS, NULL);
	return ret ? ret : rpma_batch_post(r->batch);
}

static int recorder_post_calls(struct recorder *r, size_t from, size_t to)
{
	struct client *c = &r->client;
	int ret = rpma_write(c->conn, c->at[0], to, c->mr, from, RECORD_SIZE,
			     RPMA_F_COMPLETION_ON_ERROR, NULL);

	if (!ret)
		ret = recorder_post_persist(r, to);
	return ret ? ret : recorder_post_commit(r);
}

/* A record's slot in the buffer is free again after the record is acknowledged. */
int recorder_post(struct recorder *r)
{
	size_t from = r->next % RECORD_DEPTH * RECORD_SIZE, to = r->next * RECORD_SIZE;
	int ret;

	record_make(r->client.buf + from, r->next);
	ret = r->how == RECORD_BATCH ? recorder_post_batch(r, from, to)
				     : recorder_post_calls(r, from, to);
	r->next += !ret;
	return ret;
}

static int recorder_check_digest(struct recorder *r, uint64_t n)
{
	uint8_t record[RECORD_SIZE];
	struct rpma_digest want;
	int ret;

	record_make(record, n);
	ret = rpma_digest_compute(RPMA_DIGEST_AUTO, record, sizeof(record), &want);
	r->verified++;
	return ret || !rpma_digest_equal(&want, &r->digest[n % RECORD_DEPTH]) ? RPMA_E_UNKNOWN : 0;
}

/* Wait for the next acknowledgement, at most this long. */
static int recorder_take(struct recorder *r, int timeout_ms)
{
	struct ibv_wc wc;
	int ret;

	do {
		ret = client_wait_wc(r->client.cq, &wc, timeout_ms);
		if (!ret && wc.status != IBV_WC_SUCCESS)
			ret = RPMA_E_UNKNOWN;
		if (!ret && wc.opcode == (enum ibv_wc_opcode)RPMA_WC_VERIFY)
			ret = recorder_check_digest(r, wc.wr_id);
	} while (!ret && wc.opcode == (enum ibv_wc_opcode)RPMA_WC_VERIFY);
	r->acked += !ret;
	return ret;
}

int recorder_step(struct recorder *r)
{
	while (r->next - r->acked < RECORD_DEPTH) {
		int ret = recorder_post(r);

		if (ret)
			return ret;
	}
	return recorder_take(r, CLIENT_WAIT_MS);
}

void recorder_drain(struct recorder *r)
{
	while (r->acked < r->next && !recorder_take(r, CLIENT_WAIT_MS))
		;
}
