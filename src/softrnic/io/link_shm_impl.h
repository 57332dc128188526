/* SPDX-License-Identifier: BSD-3-Clause */
/* link_shm_impl.h -- declarations that only the link_shm*.c files use. */
#ifndef IO_LINK_SHM_IMPL_H
#define IO_LINK_SHM_IMPL_H

#include "softrnic/io/link_shm.h"

struct trace;

struct link_shm {
	struct link link;
	struct link *below;
	struct eng_source *src;
	struct trace *trace; /* trace of the link below; NULL: the link is not traced */
	int fd;              /* the Unix socket; -1: closed, because the peer has closed it */
	struct shm_memory memory;
	struct ring tx, rx;
	atomic_uint *given_up;            /* this end's word in the shared memory */
	const atomic_uint *peer_given_up; /* the peer's word in the shared memory */
	bool tx_on, rx_on;                /* the direction is switched to its ring */
	bool silent;                      /* bytes are not reported to the source */
	bool awaited;                     /* threads wait for bytes on the socket */
	/* the last send found the ring full, so the link waits until the ring has room */
	bool waits_room;
	bool room_reported; /* the peer must send a wake-up when the ring has room */
	bool watched;       /* the source watches the socket */
	bool looks_below;   /* the end may have arrived on the link below */
	bool has_end;       /* the end has arrived on the link below */
	ssize_t end;        /* result of the link below for the end: 0 or -errno */
	bool is_left;       /* the Unix socket was shut down, so no wake-ups arrive any more */
	bool undrained;     /* wake-ups may be unread on the socket */
	unsigned flags_set; /* greatest number of unread wake-ups, besides two older ones */
	bool broken;        /* the positions that the peer wrote are impossible */
};

static inline struct link_shm *link_shm_of(struct link *l)
{
	return (struct link_shm *)l;
}

/* link_shm.c */
void link_shm_close_socket(struct link_shm *s);

/* in link_shm_io.c: */
ssize_t link_shm_recv(struct link *l, struct iovec *iov, int n);
ssize_t link_shm_send(struct link *l, struct iovec *iov, int n);
size_t link_shm_lend(struct link *l, void **to);
void link_shm_commit(struct link *l, size_t len);
ssize_t link_shm_look(struct link *l, const void **bytes);
void link_shm_consume(struct link *l, size_t len);
bool link_shm_pending(const struct link *l, unsigned looks);
bool link_shm_report_read(struct link *l, bool report);
bool link_shm_has_room(struct link *l);
int link_shm_wait_begin(struct link *l);
void link_shm_wait_end(struct link *l);
unsigned link_shm_ready(struct link *l, unsigned polled);
void link_shm_watch_socket(struct link_shm *s); /* watch the socket or not, as the state requires */

#endif
