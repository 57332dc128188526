/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/tx_batch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/safecopy.h"

#define PROBE_STEP    4096u /* size of the smallest page */
#define DATA_ROOM     (QP_TXBUF - sizeof(struct tx_batch))
#define FPDU_TAIL_MAX sizeof(uint64_t) /* pad and CRC, written as one word */

_Static_assert(3 + MPA_CRC_LEN <= FPDU_TAIL_MAX, "pad and CRC fit");

struct tx_side {
	struct tx_side *next;
	uint8_t bytes[];
};

struct tx_batch *tx_batch_init(void *buf)
{
	struct tx_batch *b = buf;

	assert((uintptr_t)buf % _Alignof(struct tx_batch) == 0);
	b->sides = NULL;
	b->n = b->first = b->n_fpdu = 0;
	b->used = b->len = b->sent = 0;
	return b;
}

static void batch_release_piece(struct tx_piece *p)
{
	if (p->mr)
		mr_release(p->mr);
	p->mr = NULL;
}

void tx_batch_drop(struct tx_batch *b)
{
	struct tx_side *s;

	for (unsigned i = b->first; i < b->n; i++)
		batch_release_piece(&b->piece[i]);
	while ((s = b->sides)) {
		b->sides = s->next;
		free(s);
	}
	tx_batch_init(b);
}

int tx_batch_emit(const struct tx_batch *b, struct iovec iov[QP_TX_IOV])
{
	int n = 0;

	for (unsigned i = b->first; i < b->n; i++)
		iov[n++] = b->piece[i].iov;
	return n;
}

void tx_batch_sent(struct tx_batch *b, size_t len)
{
	assert(len <= b->len - b->sent);
	b->sent += len;
	if (tx_batch_is_sent(b)) { /* the usual case */
		tx_batch_drop(b);
		return;
	}
	while (len > 0) {
		struct tx_piece *p = &b->piece[b->first];
		size_t part = len < p->iov.iov_len ? len : p->iov.iov_len;

		p->iov.iov_base = (uint8_t *)p->iov.iov_base + part;
		p->iov.iov_len -= part;
		len -= part;
		if (p->iov.iov_len == 0) {
			batch_release_piece(p);
			b->first++;
		}
	}
}

/* Position of the end of the half-sent FPDU, or b->sent if no FPDU is half sent. */
static size_t batch_half_sent_end(const struct tx_batch *b)
{
	for (unsigned i = 0; i < b->n_fpdu && b->sent > 0; i++) {
		if (b->fpdu_end[i] >= b->sent)
			return b->fpdu_end[i];
	}
	return b->sent;
}

bool tx_batch_is_at_boundary(const struct tx_batch *b)
{
	return batch_half_sent_end(b) == b->sent;
}

/* Remove bytes from the end of the batch, until its length is `len`. Sent bytes stay. */
static void batch_shrink(struct tx_batch *b, size_t len)
{
	while (b->len > len) {
		struct tx_piece *p = &b->piece[b->n - 1];
		size_t over = b->len - len;
		size_t part = over < p->iov.iov_len ? over : p->iov.iov_len;

		p->iov.iov_len -= part;
		b->len -= part;
		if (p->iov.iov_len == 0) {
			batch_release_piece(p);
			b->n--;
		}
	}
	while (b->n_fpdu > 0 && b->fpdu_end[b->n_fpdu - 1] > b->len)
		b->n_fpdu--;
}

void tx_batch_cut(struct tx_batch *b)
{
	batch_shrink(b, batch_half_sent_end(b));
	if (tx_batch_is_sent(b))
		tx_batch_drop(b);
}

bool tx_batch_refers_to(const struct tx_batch *b, const void *p, size_t len)
{
	uintptr_t at = (uintptr_t)p;

	for (unsigned i = b->first; i < b->n; i++) {
		const struct iovec *iov = &b->piece[i].iov;
		uintptr_t start = (uintptr_t)iov->iov_base;

		if (b->piece[i].mr && at < start + iov->iov_len && start < at + len)
			return true;
	}
	return false;
}

static bool batch_is_readable(const struct iovec *iov)
{
	const uint8_t *p = iov->iov_base, *end = p + iov->iov_len;

	while (p < end) {
		if (safecopy_probe(p))
			return false;
		p = (const uint8_t *)(((uintptr_t)p | (PROBE_STEP - 1)) + 1);
	}
	return true;
}

size_t tx_batch_find_fault(const struct tx_batch *b, bool *is_response)
{
	size_t before = 0;

	for (unsigned i = b->first; i < b->n; i++) {
		const struct tx_piece *p = &b->piece[i];

		if (p->mr && !batch_is_readable(&p->iov)) {
			*is_response = p->is_response;
			return before;
		}
		before += p->iov.iov_len;
	}
	/* all pieces are readable again; assume that the first one was not */
	*is_response = b->piece[b->first].is_response;
	return 0;
}

static bool batch_is_of(const struct tx_piece *p, const struct mr *mr)
{
	return p->mr && (!mr || p->mr == mr);
}

int tx_batch_own(struct tx_batch *b, const struct mr *mr)
{
	struct tx_side *side;
	size_t len = 0;
	uint8_t *to;

	for (unsigned i = b->first; i < b->n; i++)
		len += batch_is_of(&b->piece[i], mr) ? b->piece[i].iov.iov_len : 0;
	if (len == 0)
		return 0;
	side = malloc(sizeof(*side) + len);
	if (!side)
		return -ENOMEM;
	side->next = b->sides;
	b->sides = side;
	to = side->bytes;
	for (unsigned i = b->first; i < b->n; i++) {
		struct tx_piece *p = &b->piece[i];

		if (!batch_is_of(p, mr))
			continue;
		if (safecopy(to, p->iov.iov_base, p->iov.iov_len))
			return -EFAULT;
		p->iov.iov_base = to;
		to += p->iov.iov_len;
		batch_release_piece(p);
	}
	return 0;
}

/* --- building ----------------------------------------------------------------------------- */

/* The greatest number of bytes of this FPDU that are copied to b->data. */
static size_t fpdu_copy_bound(const struct tx_fpdu *f, uint32_t payload, unsigned parts)
{
	size_t small = (size_t)parts * TX_REFER_MIN;
	size_t frame = MPA_LENGTH_LEN + DDP_HDR_MAX + FPDU_TAIL_MAX;
	size_t whole = frame + payload;

	if (__builtin_expect(f->markers, 0))
		return whole + mpa_marker_count(f->pos, whole) * MPA_MARKER_LEN;
	return f->crc || f->short_link || payload < small ? whole : frame + small;
}

/* Add bytes of b->data to the gather list. */
static inline void batch_list(struct tx_batch *b, uint8_t *bytes, size_t len, bool is_response)
{
	struct tx_piece *last = b->n ? &b->piece[b->n - 1] : NULL;

	if (last && !last->mr && (uint8_t *)last->iov.iov_base + last->iov.iov_len == bytes)
		last->iov.iov_len += len;
	else
		b->piece[b->n++] = (struct tx_piece){
			.iov = {.iov_base = bytes, .iov_len = len},
			.is_response = is_response,
		};
	b->len += len;
}

/* Add the bytes that were copied since the last piece to the gather list. */
static void fpdu_list(struct tx_fpdu *f)
{
	batch_list(f->b, f->piece, (size_t)(f->at - f->piece), f->is_response);
	f->piece = f->at;
}

/* Does an FPDU of `parts` parts, with at most `bytes` copied bytes, fit into the batch? */
static inline bool batch_has_room(const struct tx_batch *b, unsigned parts, size_t bytes)
{
	return b->n + 2 * parts + 2 <= QP_TX_IOV && b->n_fpdu < TX_FPDUS && b->len < TX_BATCH_MAX &&
	       bytes <= DATA_ROOM - b->used;
}

/* Write the DDP header after ULPDU_Length. Returns the end of the header. */
static inline uint8_t *batch_put_hdr(uint8_t *fpdu, const struct ddp_hdr *hdr)
{
	struct wcursor c = wcursor_init(fpdu + MPA_LENGTH_LEN, DDP_HDR_MAX);

	ddp_put(&c, hdr);
	return c.p;
}

/* Write ULPDU_Length, the pad and a CRC of zeros. `at` is the end of the payload. */
static inline void batch_put_frame(uint8_t *fpdu, uint8_t *at, size_t ulpdu)
{
	uint64_t zero = 0;

	memcpy(at, &zero, sizeof(zero)); /* zero is at least as long as pad and CRC */
	fpdu[0] = (uint8_t)(ulpdu >> 8);
	fpdu[1] = (uint8_t)ulpdu;
}

ssize_t tx_put_at(uint8_t *to, size_t room, const struct ddp_hdr *hdr, const void *payload,
		  uint32_t len)
{
	size_t ulpdu = ddp_hdr_len(hdr->tagged) + len, whole = mpa_fpdu_len(ulpdu);
	uint8_t *at;

	if (whole + FPDU_TAIL_MAX > room)
		return -ENOBUFS;
	at = batch_put_hdr(to, hdr);
	if (safecopy(at, payload, len))
		return -EFAULT;
	batch_put_frame(to, at + len, ulpdu);
	return (ssize_t)whole;
}

ssize_t tx_batch_put(struct tx_batch *b, const struct ddp_hdr *hdr, const void *payload,
		     uint32_t len, bool is_response)
{
	uint8_t *fpdu = b->data + b->used;
	ssize_t whole;

	if (!batch_has_room(b, 1, 0))
		return -ENOBUFS;
	whole = tx_put_at(fpdu, DATA_ROOM - b->used, hdr, payload, len);
	if (whole < 0)
		return whole;
	batch_list(b, fpdu, (size_t)whole, is_response);
	b->used += (size_t)whole;
	b->fpdu_end[b->n_fpdu++] = (uint32_t)b->len;
	return whole;
}

bool tx_fpdu_open(struct tx_fpdu *f, const struct ddp_hdr *hdr, uint32_t payload, unsigned parts)
{
	struct tx_batch *b = f->b;

	if (!batch_has_room(b, parts, fpdu_copy_bound(f, payload, parts)))
		return false;
	f->start = f->piece = b->data + b->used;
	f->before = b->len;
	f->copied = 0;
	f->at = batch_put_hdr(f->start, hdr);
	return true;
}

int tx_fpdu_add(struct tx_fpdu *f, void *src, size_t len, struct mr *mr)
{
	struct tx_batch *b = f->b;
	int err;

	if (f->crc || f->markers || len < TX_REFER_MIN ||
	    (f->short_link && mr->backing.can_stall)) {
		err = safecopy(f->at, src, len);
		f->at += len;
		f->copied += len;
		return err;
	}
	fpdu_list(f);
	mr_hold_again(mr);
	b->piece[b->n++] = (struct tx_piece){
		.iov = {.iov_base = src, .iov_len = len},
		.mr = mr,
		.is_response = f->is_response,
	};
	b->len += len;
	return 0;
}

void tx_fpdu_abort(struct tx_fpdu *f)
{
	batch_shrink(f->b, f->before);
}

/* Insert the markers into the finished FPDU (RFC 5044 s4.3). The loop begins at the end, because
 * the pieces move apart. */
static void fpdu_insert_markers(struct tx_fpdu *f)
{
	size_t len = (size_t)(f->at - f->start), count = mpa_marker_count(f->pos, len);
	uint8_t *fpdu = f->start, *to, *crc = fpdu + len - MPA_CRC_LEN;
	uint8_t markers[(MPA_ULPDU_MAX / (MPA_MARKER_PERIOD - MPA_MARKER_LEN) + 2) *
			MPA_MARKER_LEN];
	struct iovec out[2 * (sizeof(markers) / MPA_MARKER_LEN) + 2];
	const struct iovec in[2] = {{.iov_base = fpdu, .iov_len = len - MPA_CRC_LEN},
				    {.iov_base = crc, .iov_len = MPA_CRC_LEN}};
	int n;

	assert(count * MPA_MARKER_LEN <= sizeof(markers));
	n = mpa_marker_gather(f->pos, in, 2, markers, out, (int)(sizeof(out) / sizeof(out[0])));
	assert(n > 0);
	len += count * MPA_MARKER_LEN;
	if (f->crc)
		mpa_crc_encode(crc, mpa_crc(out, n, len - MPA_CRC_LEN));
	f->at += count * MPA_MARKER_LEN;
	to = fpdu + len;
	while (n-- > 0) {
		to -= out[n].iov_len;
		memmove(to, out[n].iov_base, out[n].iov_len);
	}
}

size_t tx_fpdu_close(struct tx_fpdu *f)
{
	struct tx_batch *b = f->b;
	size_t listed = b->len - f->before;
	size_t ulpdu = listed + (size_t)(f->at - f->piece) - MPA_LENGTH_LEN;

	batch_put_frame(f->start, f->at, ulpdu);
	f->at += mpa_pad(ulpdu) + MPA_CRC_LEN;
	if (f->crc && !f->markers) {
		struct iovec all = {.iov_base = f->start, .iov_len = (size_t)(f->at - f->start)};

		mpa_crc_encode(f->at - MPA_CRC_LEN, mpa_crc(&all, 1, all.iov_len - MPA_CRC_LEN));
	}
	if (__builtin_expect(f->markers, 0))
		fpdu_insert_markers(f);
	fpdu_list(f);
	b->used = (size_t)(f->at - b->data);
	b->fpdu_end[b->n_fpdu++] = (uint32_t)b->len;
	return b->len - f->before;
}
