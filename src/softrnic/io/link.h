/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h -- a link carries the bytes of one connection, in order and both ways. What is behind it
 * is one table of operations; TCP (link_tcp.c) is one. Another link is one file with its table, and
 * one row in link_table.c.
 *
 * Results are 0, a number of bytes or -errno. A connection's link is used with the connection's
 * lock only, a listener's by one thread at a time. Nothing here waits.
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

/*
 * Every operation of link_ops is required. A group below it is there as a whole, or not at all
 * (NULL). unit.io.link checks the tables of all links.
 */
struct link_ops {
	const char *name;
	bool gathers_sends; /* a send costs much more than its bytes, so that fewer are better */

	const struct link_connecting *connecting; /* NULL: it takes the place of another link */
	const struct link_polling *polling;       /* NULL: only its source shows that bytes came */
	const struct link_in_place *in_place;     /* NULL: bytes come and go by recv() and send() */

	/* --- what it is ready for --- */
	/*
	 * From now on report to the source whether the link takes bytes, too. If it does already,
	 * that is reported at once.
	 */
	void (*watch_write)(struct link *l, bool write);
	/* What the link is ready for, when its source was reported these bits. */
	unsigned (*ready)(struct link *l, unsigned polled);

	/* --- bytes --- */
	/*
	 * A receive into memory: the number of bytes, 0 when the peer has ended its sending,
	 * -EAGAIN when nothing is here (READY_READ follows), -EFAULT when the memory is gone, or
	 * the error that ended the link. The list is shortened to what the link asked for: fewer
	 * bytes than that are all there are.
	 */
	ssize_t (*recv)(struct link *l, struct iovec *iov, int n);
	/* How many were taken; -EAGAIN: none, see watch_write(). -EFAULT: memory is gone. The list
	 * is shortened to what the link could take at all. */
	ssize_t (*send)(struct link *l, struct iovec *iov, int n);
	/*
	 * Have all bytes that the link took left for the peer, and were all read that came? After
	 * end_sending(): has the peer's host received all of them, and the end? If the process ends
	 * while bytes of the peer are unread, its close is a reset, and what has not left is lost.
	 */
	bool (*has_left)(struct link *l);
	/* The peer reads all of it, and then the end. Until then the end of the process is a reset,
	 * and nothing more leaves. */
	void (*end_sending)(struct link *l);

	/* --- its state --- */
	/* the error that ended the link, even if nothing was received since; or 0 */
	int (*error)(struct link *l);
	/* The peer has ended its sending, though bytes before the end may not be received. */
	bool (*has_ended)(const struct link *l);
	/*
	 * The time for which the peer's host has acknowledged nothing of what was sent; 0: it has,
	 * or nothing was sent.
	 */
	uint64_t (*unacknowledged_ns)(struct link *l);
	int (*local)(struct link *l, struct link_addr *addr);
	int (*remote)(struct link *l, struct link_addr *addr);
	/*
	 * The number of bytes that one packet carries. FPDUs are as long, unless agreed otherwise.
	 */
	uint32_t (*segment)(struct link *l);

	/* --- the end --- */
	/* Nothing is reported any more. Frees the link. What was taken
	 * before end_sending() still leaves; without end_sending() it is a reset. */
	void (*close)(struct link *l);
	/* The same, and nothing more leaves in any case; the peer finds a reset and not the end. */
	void (*reset)(struct link *l);
	/* The same in a forked child: without any effect on the peer and the parent. */
	void (*forked)(struct link *l);
};

/* Addresses lead to it: a row of link_table.c. */
struct link_connecting {
	/* 0: it does not carry connections to or from this address. Of several links that do, the
	 * one with the highest number is taken. */
	int (*serves)(const struct link_addr *addr);
	/* The address from which a connection to that address would come. No packet is sent. */
	int (*route)(const struct link_addr *to, struct link_addr *from);
	/* Are both ends on one host, so that no byte is changed on its way? */
	bool (*same_host)(const struct link_addr *us, const struct link_addr *peer);
	/* A link at this address, for listen() or dial(). Port 0: any. */
	int (*bind)(const struct link_addr *at, enum link_families families, struct link **out);
	/* A link for dial(), from this address (the port does not matter), or, with LINK_NONE,
	 * from any. */
	int (*create)(const struct link_addr *from, const struct link_addr *to, struct link **out);
	int (*listen)(struct link *l);
	/* The next connection. -EAGAIN: none, READY_READ follows; -ECONNABORTED: it has gone, ask
	 * again; -EMFILE and the like: ask again later. */
	int (*accept)(struct link *l, struct link **out);
	/* The address is free for others at once; nothing is accepted or reported any more. */
	void (*stop_listening)(struct link *l);
	/* Begin to connect, or begin anew after dialed() gave -ECONNREFUSED. 0: it is under way. */
	int (*dial)(struct link *l, const struct link_addr *to);
	/* 0: connected; -EINPROGRESS: not yet, READY_WRITE follows. A link that was connected to
	 * itself gives -ECONNREFUSED. */
	int (*dialed)(struct link *l);
	/* Report to this source from now on, and to none before it, what the link becomes ready
	 * for; READY_WRITE only if `write`. For a link that was accepted, listens or dials. */
	int (*watch)(struct link *l, struct eng_source *src, bool write);
};

/* A thread of the application looks for bytes by itself, or waits for them, and no other thread is
 * woken for them. */
struct link_polling {
	/*
	 * false: the caller looks by itself, and only READY_HANGUP (with READY_READ) and
	 * READY_WRITE are reported. true: bytes are reported again; returns whether some may
	 * be here that are not reported, so that the caller must look once more.
	 */
	bool (*report_read)(struct link *l, bool report);
	/*
	 * While bytes are not reported: this thread is about to wait for them by poll(2). Returns a
	 * descriptor, for POLLIN, that is readable when bytes or their end are here, and stays
	 * until the link is closed; -EAGAIN: they may be here now. wait_end() follows a descriptor,
	 * as soon as the wait is over. Several threads may wait.
	 */
	int (*wait_begin)(struct link *l);
	void (*wait_end)(struct link *l);
};

/* Both ends see the memory in which the bytes lie. Looks at it take no system call. */
struct link_in_place {
	/*
	 * May bytes or their end be here, or come within so many looks? It may be called at any
	 * rate.
	 */
	bool (*pending)(const struct link *l, unsigned looks);
	/* The next bytes where they lie, as many as lie in one piece; 0 and errors as with recv().
	 * They stay until consume() gives them up, or the link is closed. */
	ssize_t (*look)(struct link *l, const void **bytes);
	void (*consume)(struct link *l, size_t len);
	/*
	 * The end may be here without a report: the next receive that finds no bytes checks for it.
	 */
	void (*look_for_end)(struct link *l);
	/* While bytes are not reported: does the link take bytes again, which it did not at the
	 * last send, and which it does not report then? */
	bool (*has_room)(struct link *l);
	/* Memory for the next bytes, at most so many in one piece, and commit() sends what was
	 * stored there; 0: use send(). */
	size_t (*lend)(struct link *l, void **to);
	void (*commit)(struct link *l, size_t len);
};

/* The link that carries connections to, or from, this address; NULL: none does. */
const struct link_ops *link_of(const struct link_addr *addr);

/*
 * Copy into the list's memory, which may vanish. Returns the number of bytes, or -EFAULT if there
 * is none.
 */
ssize_t link_iov_put(const struct iovec *iov, int n, const void *bytes, size_t len);
/* Copy out of it in the same way, at most `size` bytes. */
ssize_t link_iov_get(const struct iovec *iov, int n, void *buf, size_t size);
size_t link_iov_len(const struct iovec *iov, int n);
void link_iov_shorten(struct iovec *iov, int n, size_t len);

#endif
