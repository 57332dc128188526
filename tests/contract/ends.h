/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends.h -- two connected ends in one thread, through librpma's public API alone; programs that use
 * it compile with any librpma.h, this project's or Debian's.
 */
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

/* The call must succeed; a failure prints the call. */
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
	/* Memory of each end, registered with all rights, and its description at the other end. */
	uint8_t *cli_buf, *srv_buf;
	struct rpma_mr_local *cli_mr, *srv_mr;
	struct rpma_mr_remote *at_srv, *at_cli;
};

struct ends_opts {
	const char *addr; /* NULL: ends_addr() */
	struct rpma_conn_cfg *cli_cfg, *srv_cfg;
	const struct rpma_conn_private_data *cli_pdata, *srv_pdata;
	/* Called before a request is connected, to post receives here. */
	void (*before_connect)(struct ends *d, struct rpma_conn_req *req, int is_server);
	size_t buf_size; /* 0: ENDS_BUF */
};

/*
 * The address of both ends: $ENDS_ADDR, as the kernel's devices in the guest lab do not serve
 * 127.0.0.1.
 */
const char *ends_addr(void);
/* A port without a listener. */
void ends_free_port(char port[8]);
/* Make the device's peer and listening endpoint, but no connection. */
void ends_listen(struct ends *d, const struct ends_opts *opts);
/* Connect the two ends once more. */
void ends_connect(struct ends *d, const struct ends_opts *opts, struct rpma_conn **cli,
		  struct rpma_conn **srv);
/* Everything: listen, connect, register both buffers and exchange them. */
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
/* Wait for a completion of another queue. */
void ends_cq_wait_wc(struct rpma_cq *cq, struct ibv_wc *wc);
/* Make sure that everything before is placed, without a write-back. */
void ends_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t offset, size_t len);
/* Take successes until a completion fails. Returns its status. */
enum ibv_wc_status ends_wait_failure(struct rpma_conn *conn);
/* To be called after CLOSED: InfiniBand's queue pairs live until this end disconnects, too. */
void ends_disconnect(struct rpma_conn *conn);
/* Does an event come within the time? */
bool ends_event_within(struct rpma_conn *conn, int ms, enum rpma_conn_event *ev);
bool ends_readable(int fd, int ms);
void ends_set_nonblock(int fd);

struct rpma_mr_remote *ends_remote(const struct rpma_mr_local *mr);
struct rpma_mr_local *ends_reg(struct ends *d, void *ptr, size_t size); /* with all rights */
/* A configuration with queue sizes; 0: the default. */
struct rpma_conn_cfg *ends_cfg(uint32_t cq, uint32_t rcq, uint32_t sq, uint32_t rq);

/* Is the device one of the kernel's? Then the kernel's limits apply. */
bool ends_is_kernels(void);
/*
 * Is the connection over TCP? softrnic and iWARP devices use TCP, InfiniBand and RoCE do not.
 */
bool ends_is_tcp(void);
/* A Write or Send completes when the peer has acknowledged it, as programs written for RoCE expect. */
bool ends_acknowledges(void);
/* Does a Send without a receive wait? By RFC 5040 s5.3 it ends the connection. */
bool ends_sends_wait(void);
/* Does an error end the connection with an event? Queue pairs of InfiniBand fail without an
 * event. */
bool ends_errors_disconnect(void);
/*
 * Does a request complete that is posted after the connection's end? libsiw never completes it.
 */
bool ends_late_posts_complete(void);
/* The number of connections, with both ends in this process, that the device supports: libsiw maps
 * at most 144 pages of queues. */
int ends_max_conns(int wanted);
/* Skip tests that depend on softrnic's own behaviour. */
#define SOFTRNIC_ONLY()                                                                            \
	do {                                                                                       \
		if (ends_is_kernels())                                                             \
			skip();                                                                    \
	} while (0)
/* Is that library in use, or has the environment switched off all extensions? */
bool ends_is_plain(void);
/* Is the library under test the distribution's? That version supports only the features of
 * rdma-core 44. */
bool ends_is_older_librpma(void);
/* Is a flush a read and an atomic write a plain write, as in this library towards a plain peer? */
bool ends_flushes_by_reading(void);
/* A persistent flush has to be permitted if the peer has no native flush. */
void ends_permit_persistent(struct rpma_conn *conn);
enum ibv_wc_opcode ends_flush_opcode(void);
enum ibv_wc_opcode ends_atomic_write_opcode(void);
uint8_t *ends_map(size_t size); /* Map anonymous, shared memory of zeros. */
/* Bytes that differ by place and by seed. */
void ends_fill(uint8_t *p, size_t len, unsigned seed);
bool ends_is_filled(const uint8_t *p, size_t len, unsigned seed);
bool ends_is_zero(const uint8_t *p, size_t len);
void ends_sleep_ms(int ms);

#endif
