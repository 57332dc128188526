/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h -- two connected ends in one thread, which use only librpma's public API. Programs with
 * these ends compile with any librpma.h, this project's or Debian's. */
#ifndef CONTRACT_ENDS_H
#define CONTRACT_ENDS_H

#include <librpma.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ENDS_BUF 65536
/* rdma-core 44 has no names for these values. */
#define ENDS_WC_FLUSH        ((enum ibv_wc_opcode)8)
#define ENDS_WC_ATOMIC_WRITE ((enum ibv_wc_opcode)9)

/* Fail the test, and print the call, if the call fails. */
#define OK(call)                                                                                   \
	do {                                                                                       \
		int ok_ret_ = (call);                                                              \
		if (ok_ret_)                                                                       \
			fail_msg("%s: %s", #call, rpma_err_2str(ok_ret_));                         \
	} while (0)

struct ends {
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	char port[8];
	struct rpma_conn *cli, *srv;
	/* The memory of each end, registered with all rights, and its description as the other end
	 * sees it. */
	uint8_t *cli_buf, *srv_buf;
	struct rpma_mr_local *cli_mr, *srv_mr;
	struct rpma_mr_remote *at_srv, *at_cli;
};

struct ends_opts {
	const char *addr; /* NULL: use ends_addr() */
	struct rpma_conn_cfg *cli_cfg, *srv_cfg;
	const struct rpma_conn_private_data *cli_pdata, *srv_pdata;
	/* Called before a request is connected, so that the test can post receives in time. */
	void (*before_connect)(struct ends *d, struct rpma_conn_req *req, int is_server);
	size_t buf_size; /* 0: use ENDS_BUF */
};

/*
 * Returns $ENDS_ADDR, or 127.0.0.1. In the guest lab the kernel's devices do not serve 127.0.0.1.
 */
const char *ends_addr(void);
/* Choose a port that has no listener. */
void ends_free_port(char port[8]);
/* Make the device's peer and the listening endpoint, but no connection. */
void ends_listen(struct ends *d, const struct ends_opts *opts);
/* Make another connection between the two ends. */
void ends_connect(struct ends *d, const struct ends_opts *opts, struct rpma_conn **cli,
		  struct rpma_conn **srv);
/* Listen, connect, register both buffers, and exchange their descriptions. */
void ends_open(struct ends *d, const struct ends_opts *opts);
void ends_close(struct ends *d);
/* Wait for the next connection event, and check its type. */
void ends_expect_event(struct rpma_conn *conn, enum rpma_conn_event want);
/* Wait for the next completion of the connection's main CQ. */
void ends_wait_wc(struct rpma_conn *conn, struct ibv_wc *wc);
/* Wait for a completion, and check that it is a success with this opcode and context. */
void ends_expect_wc(struct rpma_conn *conn, enum ibv_wc_opcode opcode, const void *op_context);
/* Wait for a completion, and check that it is a receive of this length with this context. */
void ends_expect_received(struct rpma_conn *conn, size_t len, const void *op_context);
/* Wait for the next completion of this queue. */
void ends_cq_wait_wc(struct rpma_cq *cq, struct ibv_wc *wc);
/*
 * Flush for visibility, without a write-back: when it completes, all earlier operations are placed.
 */
void ends_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t offset, size_t len);
/* Take completions until one has failed. Returns its status. */
enum ibv_wc_status ends_wait_failure(struct rpma_conn *conn);
/* Disconnect this end after CLOSED, unless the connection is over TCP: a queue pair of InfiniBand
 * exists until both ends have disconnected. */
void ends_disconnect(struct rpma_conn *conn);
/* Returns true if an event arrives within this time. */
bool ends_event_within(struct rpma_conn *conn, int ms, enum rpma_conn_event *ev);
bool ends_readable(int fd, int ms);
void ends_set_nonblock(int fd);

struct rpma_mr_remote *ends_remote(const struct rpma_mr_local *mr);
/* registers with all rights */
struct rpma_mr_local *ends_reg(struct ends *d, void *ptr, size_t size);
/* Returns a configuration with these queue sizes; 0 means the default. */
struct rpma_conn_cfg *ends_cfg(uint32_t cq, uint32_t rcq, uint32_t sq, uint32_t rq);

/* Returns true if the device is a kernel device (siw or rxe), so that the kernel's limits apply. */
bool ends_is_kernels(void);
/*
 * Returns true if the connection is over TCP, as with softrnic and iWARP devices. InfiniBand and
 * RoCE do not use TCP.
 */
bool ends_is_tcp(void);
/* Returns true if a Write or Send completes only after the peer acknowledged it, as with RoCE. */
bool ends_acknowledges(void);
/* Returns true if a Send waits until its receive is posted. Returns false if such a Send ends the
 * connection (RFC 5040 s5.3). */
bool ends_sends_wait(void);
/* Returns true if an error ends the connection with an event. InfiniBand's queue pairs fail without
 * an event. */
bool ends_errors_disconnect(void);
/*
 * Returns true if a request that is posted after the connection's end completes. libsiw never
 * completes such a request.
 */
bool ends_late_posts_complete(void);
/* Returns the number of connections with both ends in this process that the device supports, but at
 * most `wanted`. The limit of libsiw is 144 pages of queues. */
int ends_max_conns(int wanted);
/* Skip tests that depend on softrnic's own behaviour. */
#define SOFTRNIC_ONLY()                                                                            \
	do {                                                                                       \
		if (ends_is_kernels())                                                             \
			skip();                                                                    \
	} while (0)
/* Returns true if no extensions are in use: the environment has switched them off, or the device is
 * a kernel device. */
bool ends_is_plain(void);
/* Returns true if the tests run with the distribution's librpma, which has only the features of
 * rdma-core 44. */
bool ends_is_older_librpma(void);
/* Returns true if librpma sends a flush as a read, and an atomic write as a plain write, because
 * the peer has no extensions. */
bool ends_flushes_by_reading(void);
/* Declare that this peer's memory is written directly (direct write to PMem), which a persistent
 * flush needs if the peer has no native flush. */
void ends_permit_persistent(struct rpma_conn *conn);
enum ibv_wc_opcode ends_flush_opcode(void);
enum ibv_wc_opcode ends_atomic_write_opcode(void);
uint8_t *ends_map(size_t size); /* Map anonymous, shared memory of zeros. */
/* Write a pattern that differs by position and by seed. */
void ends_fill(uint8_t *p, size_t len, unsigned seed);
bool ends_is_filled(const uint8_t *p, size_t len, unsigned seed);
bool ends_is_zero(const uint8_t *p, size_t len);
void ends_sleep_ms(int ms);

#endif
