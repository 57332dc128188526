/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h -- a link carries the bytes of one connection, in order and in both directions. Each kind
 * of link is described by a table of operations; link_tcp.c contains the one for TCP. To add a kind
 * of link, write one file with its table, and add one row to link_table.c.
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

/* Does a listener at the IPv6 wildcard also accept IPv4 connections? */
enum link_families { LINK_FAMILIES_DEFAULT, LINK_FAMILIES_BOTH, LINK_FAMILIES_ONE };

/* All operations of link_ops are required. Each of the groups declared below is either complete or
 * absent (NULL). The test unit.io.link checks the tables of all links. */
struct link_ops {
	const char *name;
	/* a send call costs much more than its bytes, so fewer calls are better */
	bool gathers_sends;

	/* NULL: the link cannot connect; it can only replace another link */
	const struct link_connecting *connecting;
	/* NULL: bytes are only found by reports to the link's source */
	const struct link_polling *polling;
	/* NULL: bytes are only moved by recv() and send() */
	const struct link_in_place *in_place;

	/* --- readiness --- */
	/* Report to the source also when the link takes bytes. If the link takes bytes at the time
	 * of the call, this is reported immediately. */
	void (*watch_write)(struct link *l, bool write);
	/* Converts bits that the poller reported to the source into READY_* flags of the link. */
	unsigned (*ready)(struct link *l, unsigned polled);

	/* --- bytes --- */
	/*
	 * Receive into memory. Returns the number of bytes, 0 if the peer has closed its sending
	 * direction, -EAGAIN if nothing has arrived (READY_READ is reported later), -EFAULT if the
	 * memory is gone, or the error that ended the link. The function shortens the list to the
	 * length that it asked for. If it returns fewer bytes than this, the link is empty.
	 */
	ssize_t (*recv)(struct link *l, struct iovec *iov, int n);
	/* Returns the number of sent bytes, -EAGAIN if none can be sent now (see watch_write()), or
	 * -EFAULT if the memory is gone. The function shortens the list to the part that the link
	 * can take at most. */
	ssize_t (*send)(struct link *l, struct iovec *iov, int n);
	/*
	 * Before end_sending() was called: have all sent bytes left this host, and are all arrived
	 * bytes read? After end_sending(): has the peer's host received all bytes and the end of
	 * the stream? If the process exits while bytes of the peer are unread, the close is a
	 * reset, and bytes that have not left are lost.
	 */
	bool (*has_left)(struct link *l);
	/* Close the sending direction: the peer receives all sent bytes, and then the end of the
	 * stream. Without this call the exit of the process is a reset, and no further byte is
	 * sent. */
	void (*end_sending)(struct link *l);

	/* --- its state --- */
	/* Returns the error that ended the link, or 0. Works even if nothing was received since the
	 * error. */
	int (*error)(struct link *l);
	/* Has the peer closed its sending direction? Bytes that it sent before may still be
	 * unread. */
	bool (*has_ended)(const struct link *l);
	/* Returns the time for which the peer's host has acknowledged none of the sent bytes; 0 if
	 * all bytes are acknowledged, or none were sent. */
	uint64_t (*unacknowledged_ns)(struct link *l);
	int (*local)(struct link *l, struct link_addr *addr);
	int (*remote)(struct link *l, struct link_addr *addr);
	/* Returns the number of bytes that fit into one packet. FPDUs get this length unless the
	 * two ends agree on a different length. */
	uint32_t (*segment)(struct link *l);

	/* --- the end --- */
	/* Stop all reports and free the link. If end_sending() was called, all bytes that were sent
	 * before are still delivered. If not, the peer gets a reset. */
	void (*close)(struct link *l);
	/*
	 * Close the link so that no further byte leaves. The peer gets a reset instead of the end.
	 */
	void (*reset)(struct link *l);
	/* Close the link in a forked child, without any effect on the peer and the parent. */
	void (*forked)(struct link *l);
};

/* Operations of a link that is chosen by addresses. Such a link has a row in link_table.c. */
struct link_connecting {
	/* Returns 0 if the link does not carry connections to or from this address. If several
	 * links carry them, the link that returns the highest number is used. */
	int (*serves)(const struct link_addr *addr);
	/* Find the source address for a connection to this address. No packet is sent. */
	int (*route)(const struct link_addr *to, struct link_addr *from);
	/* Are both ends on one host, so that no byte can be changed between them? */
	bool (*same_host)(const struct link_addr *us, const struct link_addr *peer);
	/* Make a link that is bound to this address, for listen() or dial(). Port 0: the kernel
	 * chooses a port. */
	int (*bind)(const struct link_addr *at, enum link_families families, struct link **out);
	/* Make a link for dial(), with this source address (its port does not matter). LINK_NONE:
	 * any source address. */
	int (*create)(const struct link_addr *from, const struct link_addr *to, struct link **out);
	int (*listen)(struct link *l);
	/* Accept the next connection. Returns -EAGAIN if there is none (READY_READ is reported
	 * later), -ECONNABORTED if the connection is already gone (call again), or -EMFILE and the
	 * like (call again later). */
	int (*accept)(struct link *l, struct link **out);
	/* Release the address immediately, and stop accepting and reporting. */
	void (*stop_listening)(struct link *l);
	/* Begin to connect. May be called again after dialed() returned -ECONNREFUSED. Returns 0 if
	 * the connect is in progress. */
	int (*dial)(struct link *l, const struct link_addr *to);
	/* Returns 0 if the link is connected, or -EINPROGRESS if not yet (READY_WRITE is reported
	 * later). A link that TCP connected to itself returns -ECONNREFUSED. */
	int (*dialed)(struct link *l);
	/* From now on report the link's readiness only to this source, and READY_WRITE only if
	 * `write` is true. Called for an accepted link, a listening link, or a link that dials. */
	int (*watch)(struct link *l, struct eng_source *src, bool write);
};

/* Operations that let a thread of the application check or wait for bytes, so that no other thread
 * is woken. */
struct link_polling {
	/*
	 * With `report` false the caller checks for bytes itself, and the link reports only
	 * READY_HANGUP (with READY_READ) and READY_WRITE. With `report` true the link reports bytes
	 * again. The function returns true if unreported bytes may have arrived; the caller must
	 * then check once more.
	 */
	bool (*report_read)(struct link *l, bool report);
	/*
	 * Called while bytes are not reported: this thread is about to wait for bytes by poll(2).
	 * Returns a descriptor that becomes readable (POLLIN) when bytes or their end arrive; it
	 * stays open until the link is closed. The thread must then call wait_end() as soon as its
	 * wait is over. Returns -EAGAIN if bytes may have arrived already. Several threads may wait
	 * at the same time.
	 */
	int (*wait_begin)(struct link *l);
	void (*wait_end)(struct link *l);
};

/* Operations of a link whose memory both ends map. Checking such a link for bytes needs no system
 * call. */
struct link_in_place {
	/* Have bytes or their end possibly arrived, or do they arrive within `looks` checks? May be
	 * called as often as needed. */
	bool (*pending)(const struct link *l, unsigned looks);
	/* Returns the next contiguous bytes in place. Other results are those of recv(). The bytes
	 * stay valid until consume(), or until the link is closed. */
	ssize_t (*look)(struct link *l, const void **bytes);
	void (*consume)(struct link *l, size_t len);
	/*
	 * Called when the end may have arrived without a report. The next receive that finds no
	 * bytes then checks for the end.
	 */
	void (*look_for_end)(struct link *l);
	/* Called while bytes are not reported: does the link take bytes again after a send that
	 * took none? While bytes are not reported, such a link does not report its room either. */
	bool (*has_room)(struct link *l);
	/* Lend contiguous memory for the next bytes. commit() then sends the bytes that the caller
	 * stored there. Returns 0 if the caller must use send(). */
	size_t (*lend)(struct link *l, void **to);
	void (*commit)(struct link *l, size_t len);
};

/* Returns the link that carries connections to or from this address, or NULL. */
const struct link_ops *link_of(const struct link_addr *addr);

/* Copy into the list's memory, which may be gone. Returns the number of copied bytes, or -EFAULT if
 * no byte could be copied. */
ssize_t link_iov_put(const struct iovec *iov, int n, const void *bytes, size_t len);
/* Copy at most `size` bytes out of the list's memory, which may be gone. The results are those of
 * link_iov_put(). */
ssize_t link_iov_get(const struct iovec *iov, int n, void *buf, size_t size);
static inline size_t link_iov_len(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

void link_iov_shorten(struct iovec *iov, int n, size_t len);

#endif
