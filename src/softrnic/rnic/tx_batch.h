/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx_batch.h -- a batch of FPDUs for the LLP, in a buffer that the owner lends.
 *
 * Headers, trailers and small payloads are copied into the buffer one after the other, so that many
 * small messages are one piece of the gather list. Large payloads are not copied: the gather list
 * points to them, and their region is held until they are sent. With CRC or markers everything is
 * copied: the CRC must match the sent bytes, even if the application changes its buffer meanwhile.
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

/* a shorter payload is cheaper to copy than to add to the gather list */
#define TX_REFER_MIN 513
#define TX_BATCH_MAX (1u << 20) /* limit of a batch, so that responses and requests take turns */
#define TX_FPDUS     1024

struct tx_piece {
	struct iovec iov;
	struct mr *mr;    /* the held region, if the piece points to registered memory */
	bool is_response; /* the piece belongs to an answer to the peer */
};

struct tx_side; /* holds copies of memory that is being deregistered */

struct tx_batch {
	unsigned n, first; /* number of pieces; index of the first piece with unsent bytes */
	unsigned n_fpdu;
	size_t used; /* used bytes of `data` */
	size_t len, sent;
	struct tx_side *sides;
	struct tx_piece piece[QP_TX_IOV];
	uint32_t fpdu_end[TX_FPDUS]; /* end of each FPDU, as a position that `len` counts */
	uint8_t data[];
};

struct tx_batch *tx_batch_init(void *buf); /* `buf` has QP_TXBUF bytes */
void tx_batch_drop(struct tx_batch *b);    /* drop everything, release all regions */
static inline bool tx_batch_is_sent(const struct tx_batch *b)
{
	return b->sent == b->len;
}
int tx_batch_emit(const struct tx_batch *b, struct iovec iov[QP_TX_IOV]);
void tx_batch_sent(struct tx_batch *b, size_t len);
bool tx_batch_is_at_boundary(const struct tx_batch *b); /* is no FPDU half sent? */
/* drop all FPDUs of which no byte is sent */
void tx_batch_cut(struct tx_batch *b);
/* Does an unsent piece refer to a byte of [p, p+len) in registered memory? */
bool tx_batch_refers_to(const struct tx_batch *b, const void *p, size_t len);
/*
 * Returns the number of unsent bytes before the memory that vanished. *is_response is true if an
 * answer points to that memory.
 */
size_t tx_batch_find_fault(const struct tx_batch *b, bool *is_response);
/* Copy the unsent bytes in mr's memory (mr NULL: of any region), and release the region. Returns 0,
 * -ENOMEM or -EFAULT. */
int tx_batch_own(struct tx_batch *b, const struct mr *mr);

/*
 * Add a short FPDU without CRC and markers. Its payload is copied; the payload's memory may vanish
 * during the copy. Returns the FPDU's length, -ENOBUFS or -EFAULT. tx_put_at() does the same in
 * memory outside of the batch, and never reads that memory.
 */
ssize_t tx_put_at(uint8_t *to, size_t room, const struct ddp_hdr *hdr, const void *payload,
		  uint32_t len);
ssize_t tx_batch_put(struct tx_batch *b, const struct ddp_hdr *hdr, const void *payload,
		     uint32_t len, bool is_response);

/* One FPDU that is being built at the end of a batch. Copied bytes are added to the gather list as
 * one piece, when the FPDU is complete, or before a piece that points to registered memory. */
struct tx_fpdu {
	struct tx_batch *b;
	uint8_t *start; /* start of the FPDU's bytes in b->data */
	uint8_t *at;    /* address for the next byte */
	uint8_t *piece; /* first byte that is not in the gather list yet */
	size_t before;  /* b->len before this FPDU */
	size_t copied;  /* number of payload bytes */
	uint64_t pos;   /* stream position of the FPDU */
	bool crc, markers, is_response;
	/* The link may accept half an FPDU, so memory that may vanish is copied first. */
	bool short_link;
};

/* Called by tx_fpdu_begin(), which fills in all members except pointers and counts. */
bool tx_fpdu_open(struct tx_fpdu *f, const struct ddp_hdr *hdr, uint32_t payload, unsigned parts);
/* Add bytes of the library's own memory, by a copy. */
static inline void tx_fpdu_put(struct tx_fpdu *f, const void *src, size_t len)
{
	memcpy(f->at, src, len);
	f->at += len;
	f->copied += len;
}
/* Add held memory. It is copied, or the gather list points to it and adds a hold. Returns 0 or
 * -EFAULT. */
int tx_fpdu_add(struct tx_fpdu *f, void *src, size_t len, struct mr *mr);
size_t tx_fpdu_close(struct tx_fpdu *f); /* returns the FPDU's length in the stream */
void tx_fpdu_abort(struct tx_fpdu *f);

#endif
