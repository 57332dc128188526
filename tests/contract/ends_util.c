/* SPDX-License-Identifier: BSD-3-Clause */
/* ends_util.c -- functions for all tests: memory, patterns, waiting. */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>

#include "ends.h"

struct rpma_conn_cfg *ends_cfg(uint32_t cq, uint32_t rcq, uint32_t sq, uint32_t rq)
{
	struct rpma_conn_cfg *cfg;

	OK(rpma_conn_cfg_new(&cfg));
	if (cq)
		OK(rpma_conn_cfg_set_cq_size(cfg, cq));
	if (rcq)
		OK(rpma_conn_cfg_set_rcq_size(cfg, rcq));
	if (sq)
		OK(rpma_conn_cfg_set_sq_size(cfg, sq));
	if (rq)
		OK(rpma_conn_cfg_set_rq_size(cfg, rq));
	return cfg;
}

uint8_t *ends_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static uint8_t ends_pattern(size_t i, unsigned seed)
{
	return (uint8_t)(i + (i >> 8) * 7 + (i >> 16) * 13 + seed * 101 + 1);
}

/*
 * Functions that access memory of peers. Messages on the socket order the accesses of the two ends,
 * which ThreadSanitizer cannot see.
 */
#define PEER_MEMORY __attribute__((no_sanitize("thread")))

PEER_MEMORY void ends_fill(uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = ends_pattern(i, seed);
}

PEER_MEMORY bool ends_is_filled(const uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != ends_pattern(i, seed))
			return false;
	return true;
}

PEER_MEMORY bool ends_is_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

void ends_sleep_ms(int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L};

	nanosleep(&ts, NULL);
}

bool ends_readable(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, ms) == 1;
}

void ends_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	assert_true(flags >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
}

bool ends_event_within(struct rpma_conn *conn, int ms, enum rpma_conn_event *ev)
{
	int fd;

	OK(rpma_conn_get_event_fd(conn, &fd));
	if (!ends_readable(fd, ms))
		return false;
	OK(rpma_conn_next_event(conn, ev));
	return true;
}

void ends_permit_persistent(struct rpma_conn *conn)
{
	struct rpma_peer_cfg *pcfg;

	if (!ends_flushes_by_reading())
		return;
	OK(rpma_peer_cfg_new(&pcfg));
	OK(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	OK(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
	OK(rpma_peer_cfg_delete(&pcfg));
}
