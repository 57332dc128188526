/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_impl.h -- the server's objects, and the functions that its files share.
 *
 * A file calls functions of the files listed above it, but no function of the files below it.
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
/* Limit of refused clients to which the reason is being sent at the same time. Further clients are
 * rejected without a reason. */
#define SERVER_REFUSED_MAX 64
/* Limit of clients that have not proved themselves yet or only ask for the list, and their time
 * limit. */
#define SERVER_PENDING_MAX 64
#define SERVER_PENDING_MS  5000

/* A registration of memory for one kind of access. Its rights limit the accesses of a client. */
struct region_export {
	struct rpma_mr_local *mr;
	uint64_t size;
	uint8_t desc[HELLO_DESC_MAX];
	uint8_t desc_len;
};

struct region {
	const char *name, *path;
	struct mapfile data, scratch;
	/* the region is memory of the server's creator; path is then only a text for people */
	bool is_memory;
	bool persists;
	struct lookup *lookup;
	enum hello_status name_status; /* result of the latest check of the name */
	struct file_record_place place;
	struct claims claims;         /* also contains claims whose record is still being stored */
	struct hello_content content; /* the content that clients see */
	/* the content that is being stored, unless store_ticket is 0 */
	struct hello_content to_store;
	uint64_t store_ticket;
	/* Indexed by hello_access. Used only without a secret. There is no shared registration for
	 * writing. */
	struct region_export shared[HELLO_SCRATCH + 1];
	/* Registered as long as the region exists: the device remembers a failed write-back as
	 * long as the file has a registration. */
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
	int name_fd; /* eventfd for the answers of the lookups */
	uint64_t looked_ms;
	struct arrivals arrivals; /* clients by state */
	/* number of clients whose BEGIN waits until another writer has ended */
	unsigned waiting;
	uint64_t next_id;
	struct client *first; /* the client that connected last */
	struct counters gone; /* sum of the counters of the clients that have gone */
	uint64_t gone_count;
	uint64_t refused;
	struct log_limit refusals[HELLO_STATUS_COUNT], not_accepted, not_served, not_recorded;
};

enum client_state {
	CLIENT_REFUSED, /* the reason of the refusal is being sent to the client */
	CLIENT_PROVING, /* our nonce was sent to the client */
	CLIENT_LISTING, /* the client may ask for the list */
	CLIENT_SERVED,
};

/* An epoll tag: the client, and the descriptor that is ready. */
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
	struct region *region; /* NULL: the client has no region yet */
	/* A registration for this client alone: made after its proof, or for writing. */
	struct region_export own;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct client_watch on_event, on_message;
	int event_fd, cq_fd;      /* cq_fd is -1 unless messages are expected */
	bool is_up;               /* the connection is established */
	uint64_t confirm;         /* ticket of the client's question about the name; 0: none */
	bool has_verdict;         /* a verdict was sent to the client */
	struct hello_begin begin; /* the client's announcement, if has_announced */
	/* the client has announced a write; a second announcement is refused, whatever the first
	 * answer was */
	bool has_announced;
	/* time until which the client waits for another writer of its range; 0: it does not wait */
	uint64_t waits_ms;
	/* the client may write its range, from the answer to begin_ticket on */
	bool has_begun;
	/* ticket of the announcement's record; 0: the record is stored */
	uint64_t begin_ticket;
	struct claim_id claim;       /* the claim that the client got */
	struct hello_content before; /* the region's content before the announcement */
	bool has_ended;              /* the client has reported that its file is whole */
	bool is_unrecorded;          /* the record for this report could not be stored */
	uint8_t nonce[HELLO_NONCE];
	/* The messages: the only memory to which a client has access before its proof. The verdict
	 * has its own buffer, because the grant may still be in transfer. */
	struct rpma_mr_local *message_mr;
	struct client_messages {
		uint8_t in[HELLO_TO_MAX], out[HELLO_FROM_MAX], begun[HELLO_BEGUN],
			verdict[HELLO_VERDICT];
	} messages;
};

/* note.c: reports lines to the program that made the server. */
void server_note(const struct server *s, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void server_note_limited(const struct server *s, enum log_level level, struct log_limit *limit,
			 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* region.c: opens and registers the files. */
int regions_open(struct server *s, struct error *err);
int regions_register(struct server *s, struct ibv_context *context, struct error *err);
void regions_unregister(struct server *s);
void regions_close(struct server *s, bool keep);
/* Register memory with no more rights than the access needs. Returns librpma's result. */
int region_export_new(struct server *s, struct region *r, enum hello_access access,
		      struct region_export *e);

/* client.c: the list of clients. */
uint64_t clients_now_ms(void);
/* Returns the arrival state that corresponds to the client's state. */
enum arrival_state client_arrival(const struct client *client);
/* Add the client to the server and watch its descriptors. The call may delete *client. */
void client_adopt(struct server *s, struct client *client);
void client_enter(struct server *s, struct client *client, enum client_state state);
void client_note_served(const struct server *s, const struct client *client);
/* Free a client that was not adopted, with all its resources. */
void client_free(struct client *client);
/* Disconnect and release a client, including its registration. */
void client_forget(struct server *s, struct client *client);
void clients_forget_all(struct server *s);
/* Forget the oldest pending clients until one more client from addr is within the limits. */
void clients_make_room(struct server *s, const char *addr);
uint64_t clients_count_from(const struct server *s, const char *addr);
/* Forget the clients whose time limit has passed. Returns the milliseconds until the next limit,
 * or -1: no limit is pending. */
int clients_forget_overdue(struct server *s);

/* message.c: a client's messages. The functions return librpma's results. */
int message_open(struct server *s, struct client *client, struct rpma_conn_req *req);
int message_expect(struct client *client);
/* Send the first len bytes of messages.out. */
int message_send(struct client *client, size_t len);
int message_send_begun(struct client *client, const struct hello_begun *begun);
int message_send_verdict(struct client *client, enum hello_status status);

/* content.c: the content of the regions, and the claims of their writers. */
/* Read the records of the regions after the files are open. */
void contents_load(struct server *s);
/* Handle a writer's messages. The answer to BEGIN, and the verdict, are sent later. Returns
 * librpma's result. RPMA_E_INVAL: the message is not permitted now. */
int content_begin(struct server *s, struct client *client, const struct hello_begin *begin);
int content_end(struct client *client, const struct hello_content *content);
/* Handle a client's question for the verdict without an END. Returns true if the verdict is sent
 * after a record is stored. */
bool content_confirm(struct client *client);
/* Answer each BEGIN that waited until another writer finished, and refuse each BEGIN whose time
 * limit has passed. Returns the milliseconds until the next BEGIN is due, or -1 if none waits. May
 * disconnect clients. */
int contents_tick(struct server *s);
/* Answer the clients that waited for the record of the region. Call this when an attempt to store a
 * record has succeeded or failed. May disconnect clients. */
void content_on_answer(struct server *s, struct region *r, const struct lookup_answer *answer);

/* name.c: checks whether the files still have their names. */
int names_open(struct server *s, struct error *err);
void names_close(struct server *s);
/* Checks whether a new client may write the region. Waits a short time for the check of the
 * name. */
enum hello_status name_check(struct server *s, struct region *r);
/* Handle the question whether the Writes that the client has flushed will be found; the verdict is
 * sent later. */
void name_confirm(struct client *client);
/* Send the client's verdict if it is due. All questions up to `answered` are answered. May end the
 * client. */
void name_send_verdict(struct server *s, struct client *client, uint64_t answered);
void names_on_answer(struct server *s);
/* Check the names regularly while there are clients. Returns the milliseconds until the next
 * check, or -1: no check is planned. */
int names_tick(struct server *s);

/* counts.c: the counters for a client that watches the server. The status of each file is that of
 * the latest check; the call requests a new check for the next report. */
void counts_make(struct server *s, struct hello_counts *counts);

/* admission.c: decides whether a client is admitted. */
enum hello_status admission_check_request(const struct server *s,
					  const struct rpma_conn_private_data *pdata,
					  struct hello_request *req);
/* Check a client after its proof, if it needs a proof. Sets *region unless the client asks for the
 * list. */
enum hello_status admission_check(struct server *s, const struct hello_request *req,
				  const char *addr, struct region **region);
void admission_note_refusal(struct server *s, enum hello_status status,
			    const struct client *client);
/* e may be NULL, and must be NULL unless status is HELLO_OK. */
void admission_make_reply(enum hello_status status, const struct region *region,
			  const struct region_export *e, struct hello_reply *reply);

/* protocol.c: handles received messages. */
void protocol_on_ready(struct server *s, struct client *client);

/* accept.c: handles connection requests. */
void accept_on_request(struct server *s);

#endif
