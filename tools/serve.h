/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.h -- the server: its options, the regions that it exports, and one object a client.
 */
#ifndef TOOL_SERVE_H
#define TOOL_SERVE_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "session/address.h"
#include "session/hello.h"
#include "lookup.h"
#include "mapfile.h"
#include "session/secret.h"
#include "tally.h"

#define SERVE_REGIONS_MAX HELLO_ENTRY_MAX
#define SERVE_SCRATCH     (1u << 20)
/* Refused clients that are being told why; those beyond are rejected without a word. */
#define SERVE_REFUSED_MAX 64
/* Clients that have proved nothing yet or only ask for the list: so many, so many from one
 * address, for so long. */
#define SERVE_GUESTS_MAX         64
#define SERVE_GUESTS_PER_ADDRESS 16
#define SERVE_GUEST_MS           5000

struct serve_opts {
	struct address listen;
	const char *files[SERVE_REGIONS_MAX];
	char names[SERVE_REGIONS_MAX][HELLO_NAME_MAX + 1];
	unsigned file_count, name_count;
	uint64_t size;
	bool create;
	uint64_t max_clients, max_per_address;
	const char *secret_file;
	bool allow_volatile;
	bool json, verbose;
};

/* Memory under an hello_access: what a client may do is what the registration permits. */
struct serve_export {
	struct rpma_mr_local *mr;
	uint64_t size;
	uint8_t desc[HELLO_DESC_MAX];
	uint8_t desc_len;
};

struct serve_region {
	const char *name, *path;
	struct mapfile data, scratch;
	bool persists;
	struct lookup *lookup;
	enum hello_status name_status;                 /* what the latest look at the name found */
	struct serve_export shared[HELLO_SCRATCH + 1]; /* by hello_access; without a secret only */
	/* A failed write-back is remembered as long as the file has a region: always one. */
	struct rpma_mr_local *anchor;
	uint8_t pcfg[HELLO_DESC_MAX];
	uint8_t pcfg_len;
};

struct serve {
	const struct serve_opts *opts;
	bool has_secret;
	struct secret secret;
	struct serve_region regions[SERVE_REGIONS_MAX];
	unsigned region_count;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	int epoll_fd;
	int name_fd; /* of the lookups' answers */
	uint64_t looked_ms;
	unsigned clients, guests, refused; /* by serve_state */
	uint64_t next_id;
	struct serve_client *first; /* the latest one */
	struct tally gone;          /* what clients counted that are no more */
	uint64_t gone_count;
};

enum serve_state {
	SERVE_REFUSED, /* is being told why */
	SERVE_PROVING, /* has a nonce of ours */
	SERVE_LISTING, /* may ask for the list */
	SERVE_SERVED,
};

/* An epoll tag: which of a client's descriptors is ready. */
struct serve_watch {
	struct serve_client *client;
	bool is_message;
};

struct serve_client {
	struct serve_client *next;
	uint64_t id;
	char addr[RPMA_ADDR_MAX];
	enum serve_state state;
	struct hello_request request;
	struct serve_region *region; /* NULL: none yet */
	struct serve_export own;     /* registered for this client alone, after its proof */
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct serve_watch on_event, on_message;
	int event_fd, cq_fd; /* cq_fd: -1 unless messages are expected */
	bool is_up;          /* the connection is established */
	uint64_t confirm;    /* the ticket of its question after the name, 0: none */
	bool is_told;        /* it has its verdict */
	uint64_t deadline_ms;
	uint8_t nonce[HELLO_NONCE];
	/* The only memory that a client reaches before its proof, as messages. The verdict may
	 * follow while the grant is still being sent. */
	struct rpma_mr_local *mail_mr;
	struct serve_mail {
		uint8_t in[HELLO_TO_MAX], out[HELLO_FROM_MAX], verdict[HELLO_VERDICT];
	} mail;
};

/* serve_region.c: open and register the memory. Print their own error lines. */
int serve_regions_open(struct serve *s);
int serve_regions_register(struct serve *s, struct ibv_context *context);
void serve_regions_unregister(struct serve *s);
/* keep: files that --create made stay. */
void serve_regions_close(struct serve *s, bool keep);
int serve_export_new(struct serve *s, struct serve_region *r, enum hello_access access,
		     struct serve_export *e);

/* serve_greet.c: what a client gets to hear. */
enum hello_status serve_judge(const struct serve *s, const struct rpma_conn_private_data *pdata,
			      struct hello_request *req);
/* Once it is known to be no stranger: *region is set unless it wants the list. */
enum hello_status serve_judge_wish(struct serve *s, const struct hello_request *req,
				   const char *addr, struct serve_region **region);
void serve_log_refusal(enum hello_status status, uint64_t id, const char *addr,
		       const struct hello_request *req);
/* The export may be NULL, and is unless status is HELLO_OK. */
void serve_make_reply(enum hello_status status, const struct serve_region *region,
		      const struct serve_export *e, struct hello_reply *reply);

/* serve_name.c: do the files still have their names? */
int serve_names_open(struct serve *s);
void serve_names_close(struct serve *s);
/* May the region be written, when a client comes for that? Waits a little to know. */
enum hello_status serve_name_judge(struct serve_region *r);
/* It has flushed what it wrote and asks whether this will be found; the verdict follows. */
void serve_name_confirm(struct serve_client *client);
/* Its verdict, if it is due: questions up to this one are answered. May end the client. */
void serve_name_tell(struct serve *s, struct serve_client *client, uint64_t answered);
void serve_names_on_answer(struct serve *s);
/* Look now and then as long as there are clients. Milliseconds until the next time, -1: none. */
int serve_names_tick(struct serve *s);

/* serve_client.c: a client's life. */
uint64_t serve_now_ms(void);
void serve_on_request(struct serve *s);
void serve_on_watch(struct serve *s, struct serve_watch *watch);
void serve_enter(struct serve *s, struct serve_client *client, enum serve_state state);
void serve_forget(struct serve *s, struct serve_client *client);
void serve_drop_all(struct serve *s);
/* Drop the guests whose time is over. Milliseconds until the next one's is, -1: there is none. */
int serve_drop_overdue(struct serve *s);

/* serve_mail.c: the messages that come before the data. */
/* 0 or the library's error. */
int serve_mail_open(struct serve *s, struct serve_client *client, struct rpma_conn_req *req);
void serve_mail_on_ready(struct serve *s, struct serve_client *client);
/* Send its verdict, once. 0 or the library's error. */
int serve_mail_tell(struct serve_client *client, enum hello_status status);

/* serve_stats.c: on SIGUSR1. */
void serve_print_counters(struct serve *s);

/* serve_opts.c: as copy_parse. */
int serve_parse(int argc, char **argv, struct serve_opts *opts);

#endif
