/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl.h -- the server's objects, and what its files have of each other.
 *
 * A file calls those that stand above it here and none below it.
 */
#ifndef REGIONS_SERVER_IMPL_H
#define REGIONS_SERVER_IMPL_H

#include "base/log_limit.h"
#include "regions/lookup.h"
#include "service/arrival.h"
#include "service/mapfile.h"
#include "regions/file_record.h"
#include "regions/server.h"

#define SERVER_SCRATCH (1u << 20)
/* Refused clients that are being given the reason; those beyond are rejected without it. */
#define SERVER_REFUSED_MAX 64
/* Clients that have proved nothing yet or only ask for the list: so many, for so long. */
#define SERVER_PENDING_MAX 64
#define SERVER_PENDING_MS  5000

/* Memory under an hello_access: what a client may do is what the registration permits. */
struct region_export {
	struct rpma_mr_local *mr;
	uint64_t size;
	uint8_t desc[HELLO_DESC_MAX];
	uint8_t desc_len;
};

struct region {
	const char *name, *path;
	struct mapfile data, scratch;
	bool is_memory; /* of the server's creator; path says so for people */
	bool persists;
	struct lookup *lookup;
	enum hello_status name_status; /* what the latest look at the name found */
	struct file_record_place place;
	bool keeps_claims;             /* on the disk; else they end with this server */
	struct claims claims;          /* with those whose record is on its way to the disk */
	struct hello_content content;  /* what clients get to know */
	struct hello_content to_store; /* what is on its way to the disk, if there is a ticket */
	uint64_t store_ticket;
	/* By hello_access, without a secret only; none to write. */
	struct region_export shared[HELLO_SCRATCH + 1];
	/* A failed write-back is remembered as long as the file has a region: always one. */
	struct rpma_mr_local *anchor;
	uint8_t pcfg[HELLO_DESC_MAX];
	uint8_t pcfg_len;
};

struct server {
	const struct server_opts *opts;
	struct address listen;
	struct region regions[SERVER_REGIONS_MAX];
	unsigned region_count;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	int epoll_fd;
	int name_fd; /* of the lookups' answers */
	uint64_t looked_ms;
	struct arrivals arrivals; /* clients by state */
	unsigned waiting;         /* clients whose BEGIN waits for another writer's end */
	uint64_t next_id;
	struct client *first; /* the latest one */
	struct counters gone; /* what clients counted that are no more */
	uint64_t gone_count;
	uint64_t refused;
	struct log_limit refusals[HELLO_STATUS_COUNT], not_accepted, not_served, not_recorded;
};

enum client_state {
	CLIENT_REFUSED, /* is being given the reason */
	CLIENT_PROVING, /* has a nonce of ours */
	CLIENT_LISTING, /* may ask for the list */
	CLIENT_SERVED,
};

/* An epoll tag: which of a client's descriptors is ready. */
struct client_watch {
	struct client *client;
	bool is_message;
};

struct client {
	struct client *next;
	uint64_t id;
	char addr[RPMA_ADDR_MAX];
	enum client_state state;
	struct arrival arrival;
	struct hello_request request;
	struct region *region; /* NULL: none yet */
	/* Registered for this client alone: after its proof, or as it may write. */
	struct region_export own;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct client_watch on_event, on_message;
	int event_fd, cq_fd;         /* cq_fd: -1 unless messages are expected */
	bool is_up;                  /* the connection is established */
	uint64_t confirm;            /* the ticket of its question about the name, 0: none */
	bool has_verdict;            /* it was sent one */
	struct hello_begin begin;    /* what it announced, if it did */
	bool has_announced;          /* it did, and whatever the answer was, it may not again */
	uint64_t waits_ms;           /* so long for another writer of the range to end; 0: not */
	bool has_begun;              /* it may write what it announced, or will as soon as the */
	uint64_t begin_ticket;       /* ticket is answered */
	struct claim_id claim;       /* the answer to it */
	struct hello_content before; /* what the region held then */
	bool has_ended;              /* its file is whole, as it says */
	bool is_unrecorded;          /* and this could not be stored */
	uint8_t nonce[HELLO_NONCE];
	/* The only memory that a client reaches before its proof, as messages. The verdict may
	 * follow while the grant is still being sent. */
	struct rpma_mr_local *message_mr;
	struct client_messages {
		uint8_t in[HELLO_TO_MAX], out[HELLO_FROM_MAX], begun[HELLO_BEGUN],
			verdict[HELLO_VERDICT];
	} messages;
};

/* note.c: lines for the server's creator. */
void server_note(const struct server *s, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void server_note_limited(const struct server *s, enum log_level level, struct log_limit *limit,
			 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* region.c: files, opened and registered. */
int regions_open(struct server *s, struct error *err);
int regions_register(struct server *s, struct ibv_context *context, struct error *err);
void regions_unregister(struct server *s);
void regions_close(struct server *s, bool keep);
/* A registration with no more rights than that access needs. Librpma's result. */
int region_export_new(struct server *s, struct region *r, enum hello_access access,
		      struct region_export *e);

/* client.c: the clients there are. */
uint64_t clients_now_ms(void);
/* By its state. */
enum arrival_state client_arrival(const struct client *client);
/* From now on the server knows it and watches its descriptors; *client may be gone afterwards. */
void client_adopt(struct server *s, struct client *client);
void client_enter(struct server *s, struct client *client, enum client_state state);
void client_note_served(const struct server *s, const struct client *client);
/* Release what it has; for one that was not adopted. */
void client_free(struct client *client);
/* Disconnect it and forget it, and with it its registration. */
void client_forget(struct server *s, struct client *client);
void clients_forget_all(struct server *s);
/* Forget the oldest pending ones, so that there is room for one from addr. */
void clients_make_room(struct server *s, const char *addr);
uint64_t clients_count_from(const struct server *s, const char *addr);
/* Forget the clients whose time limit has passed. Returns the milliseconds until the next limit, or
 * -1 if there is none. */
int clients_forget_overdue(struct server *s);

/* message.c: a client's messages. Librpma's results. */
int message_open(struct server *s, struct client *client, struct rpma_conn_req *req);
int message_expect(struct client *client);
/* The len bytes in messages.out. */
int message_send(struct client *client, size_t len);
int message_send_begun(struct client *client, const struct hello_begun *begun);
int message_send_verdict(struct client *client, enum hello_status status);

/* content.c: what do the regions hold, and who claimed them? */
/* Read the records, once the files are open. */
void contents_load(struct server *s);
/* A writer's messages; the answer to the first one and the verdict follow. Librpma's results, or
 * RPMA_E_INVAL: this was no message that may come now. */
int content_begin(struct server *s, struct client *client, const struct hello_begin *begin);
int content_end(struct client *client, const struct hello_content *content);
/* It asks for the verdict without an end. True: it comes when a record is stored. */
bool content_confirm(struct client *client);
/* BEGINs that waited for another writer's end are answered, those that waited too long with a
 * refusal. Milliseconds until the next one is due, -1: none waits. May end clients. */
int contents_tick(struct server *s);
/* The record that was on its way is on the disk, or is not. May end clients. */
void content_on_answer(struct server *s, struct region *r, const struct lookup_answer *answer);

/* name.c: do the files still have their names? */
int names_open(struct server *s, struct error *err);
void names_close(struct server *s);
/* May the region be written, when a client comes for that? Waits a little to know. */
enum hello_status name_check(struct server *s, struct region *r);
/* The client has flushed what it wrote and asks whether this will be found; the verdict follows. */
void name_confirm(struct client *client);
/* Send its verdict, if it is due: questions up to this one are answered. May end the client. */
void name_send_verdict(struct server *s, struct client *client, uint64_t answered);
void names_on_answer(struct server *s);
/* Look now and then as long as there are clients. Milliseconds until the next time, -1: none. */
int names_tick(struct server *s);

/* counts.c: what a client that watches the server asks for. Has each file looked at for the next
 * time; what it reports of them is of the last look. */
void counts_make(struct server *s, struct hello_counts *counts);

/* admission.c: whether a client is admitted. */
enum hello_status admission_check_request(const struct server *s,
					  const struct rpma_conn_private_data *pdata,
					  struct hello_request *req);
/* Once it has proved what is to be proved: *region is set unless it asks for the list. */
enum hello_status admission_check(struct server *s, const struct hello_request *req,
				  const char *addr, struct region **region);
void admission_note_refusal(struct server *s, enum hello_status status,
			    const struct client *client);
/* The export may be NULL, and is unless status is HELLO_OK. */
void admission_make_reply(enum hello_status status, const struct region *region,
			  const struct region_export *e, struct hello_reply *reply);

/* protocol.c: messages that arrive. */
void protocol_on_ready(struct server *s, struct client *client);

/* accept.c: connections that are asked for. */
void accept_on_request(struct server *s);

#endif
