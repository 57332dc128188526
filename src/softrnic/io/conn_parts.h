/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_parts.h -- what the conn*.c files share and nobody else uses. All with the lock. */
#ifndef IO_CONN_PARTS_H
#define IO_CONN_PARTS_H

#include "softrnic/io/conn.h"

/* conn_run.c */
/* Take conn.want and do what it asks for; false: another thread must. */
bool conn_serve(struct conn *c);

/* conn_io.c */
void conn_rx(struct conn *c);
void conn_rx_ended(struct conn *c); /* a receive that went on by itself has a result */
void conn_tx(struct conn *c);
/* Go on in a thread of the engine that may touch memory. */
void conn_again(struct conn *c);
void conn_reclaim(struct conn *c); /* buffers that nothing is left in go back to the pool */

/* conn_persist.c */
bool conn_writeback(struct conn *c); /* start one if due; true: it finished at once */
void conn_writeback_done(struct conn *c, int status);
/* Nobody can be told any more. A write-back goes on: the bytes may be worth it all the same. */
void conn_cancel_digest(struct conn *c);

/* conn_link.c */
/* What the link is ready for, if its source was told these bits. */
unsigned conn_ready_bits(struct conn *c, unsigned polled);
void conn_dial_done(struct conn *c);
/* An answer counts, although its time may have run out before anybody looked; or dial again. */
void conn_dial_on_time(struct conn *c);
void conn_update_timer(struct conn *c);

#endif
