/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rawpeer.h -- a peer that is only a TCP socket. The test itself encodes MPA, DDP and RDMAP, so it
 * can send bytes that no device sends.
 *
 * Functions return 0 (or a length) or -errno; -ETIMEDOUT if an answer does not arrive in time,
 * -ESHUTDOWN if the other end closed or reset the connection instead.
 */
#ifndef SYSTEM_RAWPEER_H
#define SYSTEM_RAWPEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/proto/terminate.h"

#define RAW_REGIONS_MAX 12
#define RAW_WAIT_MS     10000

/* A region of the target, whose descriptor is in the target's private data. */
struct raw_region {
	uint64_t addr, len;
	uint32_t stag;
	uint8_t usage;
};

struct rawrings;

struct raw {
	int fd;
	struct rawrings *rings; /* NULL: bytes go over TCP; otherwise over rings (rawrings.h) */
	bool crc;               /* true: the two ends have agreed on CRC */
	struct mpa_start reply;
	uint8_t pdata[MPA_PD_MAX]; /* private data of the reply, reply.pd_len bytes */
	struct raw_region region[RAW_REGIONS_MAX];
	int n_regions;
	uint32_t msn[DDP_QN_COUNT]; /* MSN of the next message to send */
	uint8_t in[256 << 10];
	size_t at, have; /* received bytes that are not consumed */
	/* length of the FPDU that raw_take_fpdu() returned last; its bytes must stay readable for
	 * the caller */
	size_t taken;
};

/* The features that the default request offers. */
enum raw_offer { RAW_PLAIN, RAW_CRC = 1, RAW_EXTENSIONS = 2 };

int raw_dial(struct raw *r, const char *port);
/* Connect from another address of this machine. */
int raw_dial_from(struct raw *r, const char *from, const char *port);
/* Connect to another machine. */
int raw_dial_to(struct raw *r, const char *from, const char *addr, const char *port);
void raw_close(struct raw *r);
int raw_send(struct raw *r, const void *bytes, size_t len);
/* Receive up to len bytes. Returns 0 if the other end has closed without a reset. */
int raw_recv(struct raw *r, void *bytes, size_t len, int timeout_ms);
/* Expect that the connection ends. Returns -EPROTO if bytes arrive instead. */
int raw_expect_end(struct raw *r, int timeout_ms);

void raw_request(struct mpa_start *request, unsigned options);
/* Connect, send the request, and receive the reply and the regions in it. With extensions also send
 * a HELLO. */
int raw_connect(struct raw *r, const char *port, unsigned options);
/*
 * Connect to a program that is not the target, with private data; the reply has no regions.
 */
int raw_connect_with(struct raw *r, const char *port, const void *pdata, size_t len);
/* Connect as raw_connect() does, but without a HELLO. */
int raw_connect_mute(struct raw *r, const char *port, unsigned options);
/* Send only the request, on a connection that raw_dial() made. */
int raw_send_request(struct raw *r, unsigned options);
/* Receive the reply to a request that the test itself has sent. */
int raw_take_reply(struct raw *r);

/* Send one FPDU with these bytes, and with a wrong CRC if bad_crc is set. */
int raw_fpdu(struct raw *r, const void *ulpdu, size_t len, bool bad_crc);
/* Send one DDP segment. If it is untagged and its MSN is 0, it gets the next MSN of its queue. */
int raw_segment(struct raw *r, const struct ddp_hdr *hdr, const void *payload, size_t len);
int raw_write(struct raw *r, uint32_t stag, uint64_t to, const void *bytes, size_t len);
int raw_read(struct raw *r, uint32_t stag, uint64_t to, uint32_t len);
int raw_flush(struct raw *r, uint32_t stag, uint64_t to, uint64_t len, uint32_t flags);
/* raw_control() sends a message on the control queue; raw_hello() sends the HELLO, the first
 * message on that queue. */
int raw_control(struct raw *r, enum rdmap_opcode op, const void *bytes, size_t len);
int raw_hello(struct raw *r);
/* rings: the version of rings that the HELLO offers */
int raw_hello_with(struct raw *r, uint32_t rings);
int raw_message(struct raw *r, const void *bytes, size_t len);
int raw_invalidate(struct raw *r, uint32_t stag); /* sends an empty Send with Invalidate */

/* Receive the next FPDU. The ULPDU stays in r->in until the next call. Returns its length. */
int raw_take_fpdu(struct raw *r, const uint8_t **ulpdu, int timeout_ms);
/* Receive segments until one has this opcode, and drop all others. Returns the length of its
 * payload. */
int raw_expect(struct raw *r, enum rdmap_opcode op, struct ddp_hdr *hdr, const uint8_t **payload);
/* Receive messages until a Terminate arrives. Returns its error as TERM_CODE(); t may be NULL. */
int raw_expect_terminate(struct raw *r, struct terminate *t);

#endif
