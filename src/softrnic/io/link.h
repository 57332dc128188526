/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h -- a link carries the bytes of one connection, in order and in both directions. One table
 * of operations describes it, as TCP's in link_tcp.c. Another link is one file with its table, and
 * one row in link_table.c.
 *
 * Results are 0, a number of bytes or -errno. A connection's link is used only with the
 * connection's lock, a listener's link by one thread at a time. No operation waits.
 */
#ifndef IO_LINK_H
#define IO_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/io/poller.h"

struct eng_source;

/* The beginning of every link's own structure. */
struct link {
	const struct link_ops *ops;
};

/* May a listener at the IPv6 wildcard take IPv4 connections? */
enum link_families { LINK_FAMILIES_DEFAULT, LINK_FAMILIES_BOTH, LINK_FAMILIES_ONE };

/* Every operation of link_ops is required. A group of operations below link_ops is complete, or
 * absent (NULL). unit.io.link checks the tables of all links. */
struct link_ops {
	const char *name;
	bool gathers_sends; /* a send costs much more than its bytes, so fewer sends are better */

	const struct link_connecting *connecting; /* NULL: the link can only replace another one */
	const struct link_polling *polling;       /* NULL: only its source shows that bytes came */
	const struct link_in_place *in_place;     /* NULL: only recv() and send() move bytes */

	/* --- readiness --- */
	/* From now on also report to the source whether the link takes bytes. If the link already
	 * takes bytes, it reports that at once. */
	void (*watch_write)(struct link *l, bool write);
	/* The link's readiness after these bits were reported to its source. */
	unsigned (*ready)(struct link *l, unsigned polled);

	/* --- bytes --- */
	/*
	 * Receive into memory. Returns the number of bytes, 0 if the peer has ended its sending,
	 * -EAGAIN if nothing has arrived (READY_READ follows), -EFAULT if the memory is gone, or
	 * the error that ended the link. The list is shortened to the requested length: if fewer
	 * bytes arrived, the link has no more.
	 */
	ssize_t (*recv)(struct link *l, struct iovec *iov, int n);
	/* Returns the number of sent bytes; -EAGAIN: none, see watch_write(); -EFAULT: the memory
	 * is gone. The list is shortened to the part that the link could take at all. */
	ssize_t (*send)(struct link *l, struct iovec *iov, int n);
	/*
	 * Before end_sending(): have all sent bytes left for the peer, and are all arrived bytes
	 * read? After end_sending(): has the peer's host received all bytes and the end? If the
	 * process ends while bytes of the peer are unread, the close is a reset, and bytes that
	 * have not left are lost.
	 */
	bool (*has_left)(struct link *l);
	/* End the sending: the peer reads all sent bytes, and then the end. Without this call the
	 * end of the process is a reset, and no further byte is sent. */
	void (*end_sending)(struct link *l);

	/* --- its state --- */
	/* the error that ended the link, even if nothing was received since; or 0 */
	int (*error)(struct link *l);
	/* The peer has ended its sending, but bytes before the end may still be unread. */
	bool (*has_ended)(const struct link *l);
	/* The time for which the peer's host has acknowledged none of the sent bytes; 0: all are
	 * acknowledged, or none were sent. */
	uint64_t (*unacknowledged_ns)(struct link *l);
	int (*local)(struct link *l, struct link_addr *addr);
	int (*remote)(struct link *l, struct link_addr *addr);
	/* The number of bytes in one packet. FPDUs have this length, unless agreed otherwise. */
	uint32_t (*segment)(struct link *l);

	/* --- the end --- */
	/* Stop all reports and free the link. Bytes that were sent before end_sending() still
	 * leave; without end_sending() the peer gets a reset. */
	void (*close)(struct link *l);
	/* As close(), but no further byte leaves; the peer gets a reset and not the end. */
	void (*reset)(struct link *l);
	/* As close(), in a forked child: without any effect on the peer and the parent. */
	void (*forked)(struct link *l);
};

/* Operations of a link that is chosen by its addresses: a row of link_table.c. */
struct link_connecting {
	/* Returns 0 if the link does not carry connections to or from this address. Of several
	 * links the one with the highest number is used. */
	int (*serves)(const struct link_addr *addr);
	/* The source address of a connection to this address. No packet is sent. */
	int (*route)(const struct link_addr *to, struct link_addr *from);
	/* Are both ends on one host, so that no byte can change on its way? */
	bool (*same_host)(const struct link_addr *us, const struct link_addr *peer);
	/* Make a link at this address, for listen() or dial(). Port 0: any. */
	int (*bind)(const struct link_addr *at, enum link_families families, struct link **out);
	/* Make a link for dial(), from this address (the port does not matter), or from any
	 * (LINK_NONE). */
	int (*create)(const struct link_addr *from, const struct link_addr *to, struct link **out);
	int (*listen)(struct link *l);
	/* Accept the next connection. -EAGAIN: none, READY_READ follows; -ECONNABORTED: the
	 * connection is gone, call again; -EMFILE and the like: call again later. */
	int (*accept)(struct link *l, struct link **out);
	/* Release the address at once, and stop all accepts and reports. */
	void (*stop_listening)(struct link *l);
	/* Begin to connect, or begin again after dialed() returned -ECONNREFUSED. 0: the connect is
	 * in progress. */
	int (*dial)(struct link *l, const struct link_addr *to);
	/* Returns 0: connected; -EINPROGRESS: not yet, READY_WRITE follows. A link that was
	 * connected to itself returns -ECONNREFUSED. */
	int (*dialed)(struct link *l);
	/* From now on report the link's readiness to this source only; READY_WRITE only if `write`.
	 * For a link that was accepted, listens or dials. */
	int (*watch)(struct link *l, struct eng_source *src, bool write);
};

/* A thread of the application checks for bytes, or waits for them, and no other thread is woken. */
struct link_polling {
	/*
	 * report false: the caller checks for bytes itself, and the link reports only READY_HANGUP
	 * (with READY_READ) and READY_WRITE. report true: the link reports bytes again; returns
	 * whether unreported bytes may be there, so that the caller must check once more.
	 */
	bool (*report_read)(struct link *l, bool report);
	/*
	 * While bytes are not reported: this thread is about to wait for them by poll(2). Returns a
	 * descriptor for POLLIN that is readable after bytes or their end arrive, and stays until
	 * the link is closed; or -EAGAIN: bytes may be there now. After a descriptor, wait_end()
	 * must follow as soon as the wait is over. Several threads may wait.
	 */
	int (*wait_begin)(struct link *l);
	void (*wait_end)(struct link *l);
};

/* Both ends map the memory that contains the bytes. Checking it needs no system call. */
struct link_in_place {
	/* May bytes or their end be there, or come within this number of checks? May be called at
	 * any rate. */
	bool (*pending)(const struct link *l, unsigned looks);
	/* Returns the next bytes in place, as far as they are contiguous; 0 and errors as with
	 * recv(). The bytes stay until consume(), or until the link is closed. */
	ssize_t (*look)(struct link *l, const void **bytes);
	void (*consume)(struct link *l, size_t len);
	/*
	 * The end may have arrived without a report: the next receive without bytes checks for it.
	 */
	void (*look_for_end)(struct link *l);
	/* While bytes are not reported: does the link take bytes again after a send that took none?
	 * Then it does not report room either. */
	bool (*has_room)(struct link *l);
	/* Lend contiguous memory for the next bytes; commit() sends the bytes that were stored
	 * there. 0: use send(). */
	size_t (*lend)(struct link *l, void **to);
	void (*commit)(struct link *l, size_t len);
};

/* The link that carries connections to or from this address; NULL: there is none. */
const struct link_ops *link_of(const struct link_addr *addr);

/* Copy into the list's memory, which may be gone. Returns the number of copied bytes, or -EFAULT if
 * it is 0. */
ssize_t link_iov_put(const struct iovec *iov, int n, const void *bytes, size_t len);
/* Copy out of the list's memory in the same way, at most `size` bytes. */
ssize_t link_iov_get(const struct iovec *iov, int n, void *buf, size_t size);
size_t link_iov_len(const struct iovec *iov, int n);
void link_iov_shorten(struct iovec *iov, int n, size_t len);

#endif
