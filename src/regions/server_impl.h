/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_impl.h -- the server's objects, and the functions that its files share.
 *
 * A file calls functions of the files listed above it, none of those below it.
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
/* Most refused clients that receive the reason at the same time. Further clients are rejected
 * without a reason. */
#define SERVER_REFUSED_MAX 64
/* Most clients, and their time limit, that have proved nothing yet or only ask for the list. */
#define SERVER_PENDING_MAX 64
#define SERVER_PENDING_MS  5000

/* A registration of memory for a kind of access. Its rights limit what a client may do. */
struct region_export {
	struct rpma_mr_local *mr;
	uint64_t size;
	uint8_t desc[HELLO_DESC_MAX];
	uint8_t desc_len;
};

struct region {
	const char *name, *path;
	struct mapfile data, scratch;
	bool is_memory; /* memory of the server's creator; path is then a text for people */
	bool persists;
	struct lookup *lookup;
	enum hello_status name_status; /* result of the latest look at the name */
	struct file_record_place place;
	/* claims are stored on the disk; else they end with this server */
	bool keeps_claims;
	struct claims claims;         /* including claims whose record is being stored */
	struct hello_content content; /* the content that clients see */
	/* the content that is being stored, if store_ticket is set */
	struct hello_content to_store;
	uint64_t store_ticket;
	/* Indexed by hello_access; used only without a secret; none for writing. */
	struct region_export shared[HELLO_SCRATCH + 1];
	/* Always registered: the device remembers a failed write-back as long as the file has a
	 * region. */
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
	unsigned waiting;         /* clients whose BEGIN waits for another writer's end */
	uint64_t next_id;
	struct client *first; /* the latest client */
	struct counters gone; /* sum of the counters of clients that have gone */
	uint64_t gone_count;
	uint64_t refused;
	struct log_limit refusals[HELLO_STATUS_COUNT], not_accepted, not_served, not_recorded;
};

enum client_state {
	CLIENT_REFUSED, /* receives the reason of the refusal */
	CLIENT_PROVING, /* has received our nonce */
	CLIENT_LISTING, /* may ask for the list */
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
	struct region *region; /* NULL: none yet */
	/* Registered for this client alone: after its proof, or for writing. */
	struct region_export own;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct client_watch on_event, on_message;
	int event_fd, cq_fd;      /* cq_fd: -1 unless messages are expected */
	bool is_up;               /* the connection is established */
	uint64_t confirm;         /* ticket of the client's question about the name; 0: none */
	bool has_verdict;         /* the client was sent a verdict */
	struct hello_begin begin; /* the client's announcement, if has_announced */
	/* the client has announced a write; a second announcement is refused, whatever the
	 * answer */
	bool has_announced;
	/* time until which the client waits for another writer of its range; 0: it does not wait */
	uint64_t waits_ms;
	/* the client may write its range now, or once begin_ticket is answered */
	bool has_begun;
	uint64_t begin_ticket;       /* ticket of the announcement's record; 0: answered */
	struct claim_id claim;       /* the claim that the client got */
	struct hello_content before; /* the region's content before the announcement */
	bool has_ended;              /* the client has reported that its file is whole */
	bool is_unrecorded;          /* the record of this report could not be stored */
	uint8_t nonce[HELLO_NONCE];
	/* Messages: the only memory that a client reaches before its proof. The verdict has its own
	 * buffer, because the grant may still be on its way. */
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
/* Register memory with no more rights than the access needs. librpma's result. */
int region_export_new(struct server *s, struct region *r, enum hello_access access,
		      struct region_export *e);

/* client.c: the list of clients. */
uint64_t clients_now_ms(void);
/* The arrival state that belongs to the client's state. */
enum arrival_state client_arrival(const struct client *client);
/* Add the client to the server and watch its descriptors. *client may be gone afterwards. */
void client_adopt(struct server *s, struct client *client);
void client_enter(struct server *s, struct client *client, enum client_state state);
void client_note_served(const struct server *s, const struct client *client);
/* Release a client that was not adopted, with everything that it has. */
void client_free(struct client *client);
/* Disconnect and release a client, including its registration. */
void client_forget(struct server *s, struct client *client);
void clients_forget_all(struct server *s);
/* Forget the oldest pending clients until there is room for one from addr. */
void clients_make_room(struct server *s, const char *addr);
uint64_t clients_count_from(const struct server *s, const char *addr);
/* Forget the clients whose time limit has passed. Returns the milliseconds until the next limit;
 * -1: no limit is pending. */
int clients_forget_overdue(struct server *s);

/* message.c: a client's messages. Librpma's results. */
int message_open(struct server *s, struct client *client, struct rpma_conn_req *req);
int message_expect(struct client *client);
/* The len bytes in messages.out. */
int message_send(struct client *client, size_t len);
int message_send_begun(struct client *client, const struct hello_begun *begun);
int message_send_verdict(struct client *client, enum hello_status status);

/* content.c: the content of the regions, and the claims of their writers. */
/* Read the records, once the files are open. */
void contents_load(struct server *s);
/* Handle a writer's messages. The answer to the first message, and the verdict, follow later.
 * librpma's results; RPMA_E_INVAL: the message is not permitted now. */
int content_begin(struct server *s, struct client *client, const struct hello_begin *begin);
int content_end(struct client *client, const struct hello_content *content);
/* The client asks for the verdict without an END. Returns true if the verdict follows after a
 * record is stored. */
bool content_confirm(struct client *client);
/* Answer each BEGIN that waited for another writer's end, with a refusal if its time is over.
 * Returns the milliseconds until the next one is due, -1: none waits. May end clients. */
int contents_tick(struct server *s);
/* The attempt to store a record has ended, with or without success. May end clients. */
void content_on_answer(struct server *s, struct region *r, const struct lookup_answer *answer);

/* name.c: checks whether the files still have their names. */
int names_open(struct server *s, struct error *err);
void names_close(struct server *s);
/* May a new client write the region? Waits a short time for a look at the name. */
enum hello_status name_check(struct server *s, struct region *r);
/* The client has flushed its writes, and asks whether they will be found; the verdict follows. */
void name_confirm(struct client *client);
/* Send the client's verdict if it is due. All questions up to `answered` are answered. May end the
 * client. */
void name_send_verdict(struct server *s, struct client *client, uint64_t answered);
void names_on_answer(struct server *s);
/* Look regularly while there are clients. Returns the milliseconds until the next look, -1:
 * none. */
int names_tick(struct server *s);

/* counts.c: the counters for a client that watches the server. The report about each file comes
 * from the latest look; the call requests a new look for the next report. */
void counts_make(struct server *s, struct hello_counts *counts);

/* admission.c: decides whether a client is admitted. */
enum hello_status admission_check_request(const struct server *s,
					  const struct rpma_conn_private_data *pdata,
					  struct hello_request *req);
/* Check a client after its proof, if it needs one. Sets *region unless the client asks for the
 * list. */
enum hello_status admission_check(struct server *s, const struct hello_request *req,
				  const char *addr, struct region **region);
void admission_note_refusal(struct server *s, enum hello_status status,
			    const struct client *client);
/* The export may be NULL, and must be NULL unless status is HELLO_OK. */
void admission_make_reply(enum hello_status status, const struct region *region,
			  const struct region_export *e, struct hello_reply *reply);

/* protocol.c: handles received messages. */
void protocol_on_ready(struct server *s, struct client *client);

/* accept.c: handles connection requests. */
void accept_on_request(struct server *s);

#endif
