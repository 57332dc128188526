/* SPDX-License-Identifier: BSD-3-Clause */
/* connections.h -- connections of primaries, candidates and other daemons. The loop's thread
 * only. */
#ifndef MIRRORD_CONNECTIONS_H
#define MIRRORD_CONNECTIONS_H

#include "mirrord/impl.h"

/* link.c: the life of connections. */
/* End overdue ones; when the next one will be, or UINT64_MAX. */
uint64_t inbounds_deadline(struct daemon *d, uint64_t now_ms);
/* Watch it; *link may be gone afterwards. */
void inbound_adopt(struct daemon *d, struct inbound *link);
/* Release what it has; for one that was not adopted. */
void inbound_free(struct inbound *link);
/* Disconnect and deregister: when this returns nothing of it can be placed any more. */
void inbound_end(struct inbound *link);
void inbounds_make_room(struct daemon *d, const char *addr);
/* Data connections of the set with epochs below that one, and control connections too. */
void inbounds_cut(struct set *s, struct mirror_epoch epoch, const struct inbound *asker);
void inbounds_end_all(struct daemon *d, struct set *s); /* s NULL: of all sets */
int inbound_post_receives(struct inbound *link, struct rpma_conn_req *req);
/* Librpma's results, or RPMA_E_AGAIN: the other end asked for more than it may. */
int inbound_send(struct inbound *link, const struct message *m);

/* accept.c: connections that are asked for. */
void accept_on_request(struct watch *w);

/* fence.c: promises. */
enum greeting_status fence_status(enum member_reason reason);
/* answer is DONE with the verdict's reason. */
void fence_refuse(const struct set *s, const struct member_verdict *v, uint8_t to,
		  struct message *answer);
/* Cut, drain, record; answer is PROMISED, or DONE with a refusal. */
void fence_promise(struct set *s, const struct inbound *asker, struct mirror_epoch epoch,
		   struct message *answer);

/* control.c: messages of connections. */
void control_on_message(struct watch *w);
/* The answer to a question about the set's copy. False: it is no question. */
bool control_answer(struct set *s, const struct inbound *asker, const struct message *m,
		    struct message *answer);

#endif
