/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/lib/check.h"

#include "lane.h"

#include "base/clock.h"
#include "lib/medium.h"

#define CONNECT_NS (30 * NSEC_PER_SEC)
#define ECHO       8
#define SQ         64

void lane_open(struct lane *lane, unsigned number, size_t bytes, int liveness_ms)
{
	*lane = (struct lane){.number = number, .bytes = bytes, .letter = (uint8_t)number};
	OK(client_open(&lane->client, bytes));
	OK(rpma_conn_cfg_set_sq_size(lane->client.cfg, SQ));
	OK(rpma_conn_cfg_set_cq_size(lane->client.cfg, SQ));
	if (liveness_ms)
		OK(rpma_conn_cfg_set_liveness(lane->client.cfg, liveness_ms));
}

void lane_close(struct lane *lane)
{
	client_close(&lane->client);
}

static bool lane_is_in_rings(struct lane *lane)
{
	struct rpma_counter counters[64];
	size_t n = ARRAY_LEN(counters);

	OK(rpma_conn_get_counters(lane->client.conn, counters, &n));
	for (size_t i = 0; i < n && i < ARRAY_LEN(counters); i++)
		if (!strcmp(counters[i].name, "shm_tx_bytes"))
			return counters[i].value > 0;
	fail_msg("no counter of bytes through rings");
	return false;
}

void lane_connect(struct lane *lane, const struct place *place)
{
	uint64_t end = clock_now_ns() + CONNECT_NS;

	while (client_connect(&lane->client, place->port, NULL))
		if (clock_now_ns() > end)
			fail_msg("lane %u cannot connect", lane->number);
	while (place->rings && !lane_is_in_rings(lane)) {
		OK(client_read(&lane->client, 0, lane->number * LANE_STRIDE, ECHO, NULL));
		if (clock_now_ns() > end)
			fail_msg("lane %u stays on TCP", lane->number);
	}
}

static void lane_fill(struct lane *lane)
{
	lane->letter++;
	memset(lane->client.buf, lane->letter, lane->bytes);
}

void lane_post(struct lane *lane)
{
	struct client *c = &lane->client;

	lane_fill(lane);
	for (size_t at = 0; at < lane->bytes; at += LANE_PIECE)
		OK(rpma_write(c->conn, c->at[0], lane->number * LANE_STRIDE + at, c->mr, at,
			      lane->bytes - at < LANE_PIECE ? lane->bytes - at : LANE_PIECE,
			      RPMA_F_COMPLETION_ON_ERROR, NULL));
}

void lane_give_up(struct lane *lane)
{
	client_drop(&lane->client);
}

static size_t lane_end(const struct lane *lane)
{
	return lane->number * LANE_STRIDE + lane->bytes - LANE_PUT;
}

void lane_post_put(struct lane *lane)
{
	struct client *c = &lane->client;

	lane_fill(lane);
	OK(rpma_write(c->conn, c->at[0], lane_end(lane), c->mr, 0, LANE_PUT,
		      RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(c->conn, c->at[0], lane_end(lane), LANE_PUT, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, NULL));
}

void lane_expect_put(struct lane *lane)
{
	struct ibv_wc wc;
	char why[256];

	OK(client_wait_wc(lane->client.cq, &wc, 3 * CLIENT_WAIT_MS));
	rpma_wc_explain(lane->client.conn, &wc, why, sizeof(why));
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("a put failed: %s", why);
}

void lane_put(struct lane *lane)
{
	lane_post_put(lane);
	lane_expect_put(lane);
}

/* Bytes that are in the page cache, but not on the medium, were placed after the flush. */
size_t lane_stale(const struct lane *lane, const struct place *place)
{
	off_t at = (off_t)lane_end(lane);
	uint8_t bytes[LANE_PUT];
	size_t stale = 0;

	if (place->behind)
		stale = (size_t)medium_dirty(place->fd, at, LANE_PUT);
	assert_int_equal(pread(place->fd, bytes, LANE_PUT, at), LANE_PUT);
	for (size_t i = 0; i < LANE_PUT; i++)
		stale += bytes[i] != lane->letter;
	return stale;
}
