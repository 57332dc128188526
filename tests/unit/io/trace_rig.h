/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_rig.h -- a TCP connection with one traced end. A process reads the environment only once,
 * so each case runs in a child process, where MUST() replaces assertions.
 */
#ifndef UNIT_IO_TRACE_RIG_H
#define UNIT_IO_TRACE_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/packets.h"
#include "softrnic/io/link_tcp.h"
#include "softrnic/io/trace.h"

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define FILE_NAME "trace.pcapng"

/* Run `body` in a child process, in a folder of its own, with SOFTRNIC_TRACE=name. Its standard
 * error goes to the file "err". */
void in_child(void (*body)(void), const char *name);
/* Returns how many lines of "err" contain the text. */
int complaints(const char *text);
long size_of(const char *path);

enum rig_family { RIG_IPV4, RIG_IPV6, RIG_MAPPED };

struct rig {
	int us, peer;        /* the two sockets; `us` does not block */
	uint16_t port[2];    /* ports of `us` and of the peer */
	struct trace *trace; /* the trace of `us` */
	bool initiator;
	uint8_t *bytes[2]; /* bytes that `us` and the peer have sent */
	size_t len[2];
};

/* Connect, without a trace. */
void rig_connect(struct rig *r, enum rig_family family, bool initiator);
void rig_trace(struct rig *r); /* begins the trace; if that is impossible, the test fails */
/* Send or receive all the bytes: the traced end gathers them from pieces, and scatters received
 * bytes to two pieces. */
void rig_send(struct rig *r, const void *bytes, size_t len);
void rig_receive(struct rig *r, const void *bytes, size_t len);
void rig_exchange(struct rig *r, unsigned rounds); /* exchanges random bytes */
/* closes the connection in good order, the peer first */
void rig_end(struct rig *r);

/*
 * Check that the packets of the connection in the file are valid TCP and carry the connection's
 * bytes. The last packet must have these `flags`.
 */
void rig_expect(const struct rig *r, const char *path, uint8_t flags);

#endif
