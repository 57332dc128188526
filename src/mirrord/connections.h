/* SPDX-License-Identifier: BSD-3-Clause */
/* connections.h -- connections from primaries, candidates and other daemons. Only the loop's
 * thread calls these functions. */
#ifndef MIRRORD_CONNECTIONS_H
#define MIRRORD_CONNECTIONS_H

#include "mirrord/impl.h"

/* inbound.c: begins and ends connections. */
/* End the connections whose deadline has passed. Returns the time of the next deadline, or
 * UINT64_MAX. */
uint64_t inbounds_deadline(struct daemon *d, uint64_t now_ms);
/* Watch the connection. The call may free *link. */
void inbound_adopt(struct daemon *d, struct inbound *link);
/* Free a connection that was not adopted. */
void inbound_free(struct inbound *link);
/* Disconnect and deregister. After the return the peer cannot place any more bytes. */
void inbound_end(struct inbound *link);
void inbounds_make_room(struct daemon *d, const char *addr);
/*
 * Close the set's data connections and control connections with epochs below `epoch`.
 */
void inbounds_cut(struct set *s, struct mirror_epoch epoch, const struct inbound *asker);
void inbounds_end_all(struct daemon *d, struct set *s); /* s NULL: the connections of all sets */
int inbound_post_receives(struct inbound *link, struct rpma_conn_req *req);
/*
 * Send a message. Returns librpma's result, or RPMA_E_AGAIN if the other end has more outstanding
 * requests than permitted.
 */
int inbound_send(struct inbound *link, const struct message *m);

/* accept.c: handles connection requests. */
void accept_on_request(struct watch *w);

/* fence.c: promises that bytes of earlier epochs are not placed any more. */
enum greeting_status fence_status(enum member_reason reason);
/* Set the answer to DONE with the verdict's reason. */
void fence_refuse(const struct set *s, const struct member_verdict *v, uint8_t to,
		  struct message *answer);
/* Close the connections of earlier epochs, wait until none of their bytes are in transfer, and
 * record the promise. The answer becomes PROMISED, or DONE with a refusal. */
void fence_promise(struct set *s, const struct inbound *asker, struct mirror_epoch epoch,
		   struct message *answer);

/* control.c: handles messages of connections. */
void control_on_message(struct watch *w);
/* Answer a question about the set's copy. Returns false if the message is not a question. */
bool control_answer(struct set *s, const struct inbound *asker, const struct message *m,
		    struct message *answer);

#endif
