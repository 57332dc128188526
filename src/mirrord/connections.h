/* SPDX-License-Identifier: BSD-3-Clause */
/* connections.h -- connections of primaries, candidates and other daemons. The loop's thread
 * only. */
#ifndef MIRRORD_CONNECTIONS_H
#define MIRRORD_CONNECTIONS_H

#include "mirrord/impl.h"

/* link.c: the life of connections. */
/* End overdue connections. Returns the time of the next deadline, or UINT64_MAX. */
uint64_t inbounds_deadline(struct daemon *d, uint64_t now_ms);
/* Watch the connection; *link may be gone afterwards. */
void inbound_adopt(struct daemon *d, struct inbound *link);
/* Release a connection that was not adopted. */
void inbound_free(struct inbound *link);
/* Disconnect and deregister. After the return the peer cannot place any more bytes. */
void inbound_end(struct inbound *link);
void inbounds_make_room(struct daemon *d, const char *addr);
/*
 * End the set's data connections and control connections with epochs below `epoch`.
 */
void inbounds_cut(struct set *s, struct mirror_epoch epoch, const struct inbound *asker);
void inbounds_end_all(struct daemon *d, struct set *s); /* s NULL: the connections of all sets */
int inbound_post_receives(struct inbound *link, struct rpma_conn_req *req);
/*
 * Librpma's results, or RPMA_E_AGAIN: the other end has more requests under way than are permitted.
 */
int inbound_send(struct inbound *link, const struct message *m);

/* accept.c: requested connections. */
void accept_on_request(struct watch *w);

/* fence.c: promises. */
enum greeting_status fence_status(enum member_reason reason);
/* Set the answer to DONE with the verdict's reason. */
void fence_refuse(const struct set *s, const struct member_verdict *v, uint8_t to,
		  struct message *answer);
/* Cut, drain, record. The answer becomes PROMISED, or DONE with a refusal. */
void fence_promise(struct set *s, const struct inbound *asker, struct mirror_epoch epoch,
		   struct message *answer);

/* control.c: messages of connections. */
void control_on_message(struct watch *w);
/* Answer a question about the set's copy. Returns false if the message is not a question. */
bool control_answer(struct set *s, const struct inbound *asker, const struct message *m,
		    struct message *answer);

#endif
