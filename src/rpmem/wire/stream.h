/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h -- sends and receives frames over a pair of descriptors (pipes, sockets), with a time
 * limit for each call.
 *
 * A wire_stream belongs to one thread at a time. It does not own its descriptors. The first error
 * is final, because the boundaries of messages are lost after an error.
 */
#ifndef RPMEM_WIRE_STREAM_H
#define RPMEM_WIRE_STREAM_H

#include "base/error.h"
#include "rpmem/wire/frame.h"

/* A struct of about 32 KiB. */
struct wire_stream {
	int in, out; /* may be the same descriptor */
	int failed;  /* -errno of the first failure; 0: the stream works */
	bool any;    /* true after the first frame has come */
	struct wire_seal tx, rx;
	size_t used; /* length of the last frame in rx_buf */
	size_t have; /* bytes in rx_buf */
	uint8_t rx_buf[WIRE_FRAME_MAX], tx_buf[WIRE_FRAME_MAX];
};

/* Makes both descriptors non-blocking. */
void wire_stream_init(struct wire_stream *s, int in, int out);
/* Seal both directions from the next frame on. */
void wire_stream_seal(struct wire_stream *s, const struct wire_key *tx, const struct wire_key *rx);
/*
 * Send a whole message. deadline: a result of poll_deadline(). Returns 0, -ETIMEDOUT, -ECONNRESET
 * (the other end is gone), or another -errno of write(2). Never raises SIGPIPE on a socket; if
 * `out` is a pipe, the process must ignore that signal.
 */
int wire_stream_send(struct wire_stream *s, enum wire_type type, const uint8_t *body, size_t len,
		     uint64_t deadline);
/*
 * Receive the next frame, which stays valid until the next receive. Returns 0; -ETIMEDOUT, after
 * which the caller may call again; -ECONNRESET if the other end is gone; or an error of
 * wire_frame_decode().
 */
int wire_stream_receive(struct wire_stream *s, struct wire_frame *frame, uint64_t deadline);
/* Receive without waiting, for a loop that polls s->in. -EAGAIN: no whole frame has come yet.
 * After a frame, call this again, because several frames may have come together. */
int wire_stream_try_receive(struct wire_stream *s, struct wire_frame *frame);
/*
 * Explain a failed receive in a text for people. The call recognises PMDK's rpmemd, and output of
 * another program (such as a shell's start-up file). who: the name of the other end in the text.
 * Returns the kind, ERROR_UNREACHED or ERROR_FAILED; err->cause is the errno.
 */
int wire_stream_explain(const struct wire_stream *s, int failure, const char *who,
			struct error *err);

#endif
