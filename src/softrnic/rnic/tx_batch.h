/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx_batch.h -- FPDUs on their way to the LLP, in a buffer that the owner lends.
 *
 * Headers, trailers and small payloads are copied into the buffer one after the other, so that many
 * small messages are one piece of the gather list. Large payloads are referred to, and their region
 * is held until they are sent. With CRC or markers everything is copied: the CRC must match the
 * sent bytes, even if the application changes its buffer meanwhile.
 */
#ifndef RNIC_TX_BATCH_H
#define RNIC_TX_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/mpa_marker.h"
#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/qp.h"

#define TX_REFER_MIN 513        /* a shorter payload is cheaper to copy than to list */
#define TX_BATCH_MAX (1u << 20) /* limit of a batch, so that responses and requests take turns */
#define TX_FPDUS     1024

struct tx_piece {
	struct iovec iov;
	struct mr *mr;    /* the region, which is held, if the piece refers to its memory */
	bool is_response; /* the piece answers a request of the peer */
};

struct tx_side; /* copies of memory that is about to end */

struct tx_batch {
	unsigned n, first; /* pieces; the first one with unsent bytes */
	unsigned n_fpdu;
	size_t used; /* used bytes of data */
	size_t len, sent;
	struct tx_side *sides;
	struct tx_piece piece[QP_TX_IOV];
	uint32_t fpdu_end[TX_FPDUS]; /* end of each FPDU, in the count of `len` */
	uint8_t data[];
};

struct tx_batch *tx_batch_init(void *buf); /* QP_TXBUF bytes */
void tx_batch_drop(struct tx_batch *b);    /* drop everything, release all regions */
static inline bool tx_batch_is_sent(const struct tx_batch *b)
{
	return b->sent == b->len;
}
int tx_batch_emit(const struct tx_batch *b, struct iovec iov[QP_TX_IOV]);
void tx_batch_sent(struct tx_batch *b, size_t len);
bool tx_batch_is_at_boundary(const struct tx_batch *b); /* no FPDU is half sent */
void tx_batch_cut(struct tx_batch *b);                  /* drop all FPDUs without sent bytes */
/* Does an unsent piece refer to a byte of [p, p+len) in registered memory? */
bool tx_batch_refers_to(const struct tx_batch *b, const void *p, size_t len);
/*
 * The number of unsent bytes before the memory that vanished. *is_response: an answer refers to
 * that memory.
 */
size_t tx_batch_find_fault(const struct tx_batch *b, bool *is_response);
/* Copy the unsent bytes of mr's memory (NULL: of any region), and release it. Returns 0, -ENOMEM or
 * -EFAULT. */
int tx_batch_own(struct tx_batch *b, const struct mr *mr);

/*
 * Add a short FPDU without CRC and markers; its payload is copied, and may vanish meanwhile.
 * Returns its length, -ENOBUFS or -EFAULT. tx_put_at() does the same in other memory, and never
 * reads that memory.
 */
ssize_t tx_put_at(uint8_t *to, size_t room, const struct ddp_hdr *hdr, const void *payload,
		  uint32_t len);
ssize_t tx_batch_put(struct tx_batch *b, const struct ddp_hdr *hdr, const void *payload,
		     uint32_t len, bool is_response);

/* One FPDU that is being built at the end of a batch. Copied bytes enter the gather list as one
 * piece, after the FPDU is complete or before a piece that refers to memory. */
struct tx_fpdu {
	struct tx_batch *b;
	uint8_t *start; /* start of its bytes in b->data */
	uint8_t *at;    /* the next byte goes there */
	uint8_t *piece; /* first byte that is not in the gather list yet */
	size_t before;  /* b->len before the FPDU */
	size_t copied;  /* number of payload bytes */
	uint64_t pos;   /* position in the stream */
	bool crc, markers, is_response;
	/* the link may accept half an FPDU, so memory that may vanish is copied first */
	bool short_link;
};

/* See tx_fpdu_begin(), which fills in all members except pointers and counts. */
bool tx_fpdu_open(struct tx_fpdu *f, const struct ddp_hdr *hdr, uint32_t payload, unsigned parts);
/* Add a copy of our own memory. */
static inline void tx_fpdu_put(struct tx_fpdu *f, const void *src, size_t len)
{
	memcpy(f->at, src, len);
	f->at += len;
	f->copied += len;
}
/* Add held memory: copy it, or refer to it and hold it once more. Returns 0 or -EFAULT. */
int tx_fpdu_add(struct tx_fpdu *f, void *src, size_t len, struct mr *mr);
size_t tx_fpdu_close(struct tx_fpdu *f); /* returns its length in the stream */
void tx_fpdu_abort(struct tx_fpdu *f);

#endif
