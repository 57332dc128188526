/* SPDX-License-Identifier: BSD-3-Clause */
/* requests.h -- the tool's requests, and its events. Only the loop's thread calls these
 * functions. */
#ifndef MIRRORD_REQUESTS_H
#define MIRRORD_REQUESTS_H

#include "mirror/core/code.h"
#include "mirrord/clients.h"
#include "mirrord/impl.h"

/* request.c: handles the tool's requests. */
void request_on_packet(struct client *client, const char *text, size_t len);
void request_refuse(struct client *client, enum code code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void request_send(struct client *client, struct json_t *answer); /* frees `answer` */
/* Answer {"ok": true}, with the text unless it is NULL. */
void request_done(struct client *client, const char *text);
/*
 * Answer the requests whose deadline has passed. Returns the milliseconds until the next deadline,
 * or -1.
 */
int requests_tick(struct daemon *d, uint64_t now_ms);

uint64_t request_random(void); /* never returns 0 */

/* request_status.c: makes the status of a set. */
struct json_t *request_status(const struct set *s);

/* request_order.c: handles orders. Each order gets an answer, now or later. */
void request_order(struct client *client, struct set *s, const char *member,
		   const struct packet_order_request *order);
void request_fence(struct client *client, struct set *s, const char *member, int64_t timeout_ms);
void request_resolve(struct client *client, struct set *s, const char *member);
void request_change(struct client *client, struct set *s, const struct mirror_config *config);
void request_on_ordered(struct set *s, const struct packet *p);

/* request_settings.c: changes settings of a set, by their names in the register. */
void request_settings(struct client *client, struct set *s, struct json_t *settings);
/* Keep the client waiting: its request will be answered later. */
void request_wait(struct client *client, struct set *s, enum client_wait wait);
/* Returns the member's slot, or MIRROR_NO_SLOT after a refusal. */
uint8_t request_slot(struct client *client, const struct set *s, const char *member);
/* Refuse a request that only another host can carry out. */
void request_elsewhere(struct client *client, const struct set *s, uint8_t slot, const char *what);
enum code request_code_of(enum packet_status status);

/* request_promote.c: handles an operator's promotion. */
void request_promote(struct client *client, struct set *s, const char *member, bool force);
/*
 * Returns the kind of promotion that the present orders permit for that view. An order counts if
 * its request still waits, and the register was read after the request. An order is dropped
 * together with its request.
 */
enum promotion_kind request_order_for(const struct set *s, const struct mirror_view *view);
/* Drop an order whose time limit has passed or whose client is gone. It has no effect any more. */
void request_end_promotion(struct client *client);
/* Note the result in the waiting orders. Call this when a swap that an order permitted has ended.
 * is_unknown: the swap got no answer. */
void request_on_promotion_swapped(struct set *s, bool is_unknown);
/* Put the waiting orders into the status. */
void request_put_promotions(const struct set *s, struct json_t *waiting);
/* Call this when the set's state has changed: refuses orders that have become impossible. */
void request_look_promotions(struct set *s);
/* Answer the waiting orders: they are carried out. Call this when a process on this host has become
 * primary. */
void request_on_promoted(struct set *s);
/* Give up the order, and answer its request after all its swaps have finished. Call this when the
 * time limit of the order has passed. */
void request_give_promotion_up(struct client *client);
/* Refuse the waiting orders if no process waits for the set. Call this when on-promote has failed,
 * for the reason in `text`. */
void request_on_promote_failed(struct set *s, const char *text);

/* scrub.c: orders the periodic comparison of the copies. */
#define SCRUB_ID PACKET_SCRUB_ID
void scrub_tick(struct set *s, uint64_t now_ms);
/* Handle the end or the refusal of a periodic comparison. Called for every answer of the primary's
 * process to an order. */
void scrub_on_ordered(struct set *s, uint32_t id, const struct packet_ordered *ordered);

/* event.c: makes the events for `rpmirror events`. */
void event_emit(struct set *s, const char *member, const char *what, const char *from,
		const char *to, const char *text);
/* Handle an `events` request: report the present state, then the changes. */
void event_begin(struct client *client, const struct set *only, bool now_only);
/* Compare the state with the last report, and report the changes. */
void event_look(struct set *s);
/* Returns the number of events of each kind since the daemon started. */
struct json_t *event_counts(const struct set *s);
/* Returns the seconds for which the set was blocked since the daemon started. */
double event_blocked_s(const struct set *s);

#endif
