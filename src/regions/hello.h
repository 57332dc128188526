/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.h -- the codec of the protocol of named regions: the messages between client and server
 * before and after data moves.
 *
 * Little-endian. Request and reply are private data of the connection. InfiniBand's connection
 * manager carries 56 bytes in a request and 196 bytes in a reply; both messages are shorter. A
 * server that refuses a client accepts the connection, gives the reason in the reply and
 * disconnects, because not every provider delivers the private data of a reject.
 *
 * With a shared secret the reply to an acceptable request is HELLO_PROVE with the server's nonce.
 * Two messages follow: the client's proof and the server's grant. The grant contains the reply
 * that the server sends without a secret, and the server's own proof (secret.h).
 *
 * A client that may write announces, before its first byte, which range it is going to write
 * (BEGIN). The client may write after the server's answer (BEGUN). At that time two facts are on
 * the server's disk. The first: the region holds no whole file at present, if the client writes a
 * file or overwrites a part of one. The second: this client has claimed the range; BEGUN gives the
 * claim's generation and key (claims.h). A client whose connection was lost sends this generation
 * and key in its next BEGIN. The client gets the same claim again, or HELLO_TAKEN with the
 * generation and time of the newer claim.
 *
 * A client that has flushed its bytes asks whether the region's file can still be found under its
 * name (CONFIRM). If the client wrote a file, END takes the place of CONFIRM: END contains the
 * file's length, time and digest, which are on the server's disk before the answer. The server's
 * verdict answers either message, or is sent unrequested, and ends the client's work in any case.
 * Each connection gets one verdict.
 */
#ifndef REGIONS_HELLO_H
#define REGIONS_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <librpma.h>

#include "regions/claims.h"

#define HELLO_VERSION   5
#define HELLO_NAME_MAX  44
#define HELLO_DESC_MAX  32
#define HELLO_NONCE     32
#define HELLO_MAC       32
#define HELLO_ENTRY_MAX 32 /* largest number of regions of one server */
#define HELLO_DIGEST    32 /* length of BLAKE2b-256 */

#define HELLO_LENGTH_UNKNOWN UINT64_MAX

enum hello_access {
	HELLO_READ = 1,
	HELLO_WRITE = 2,
	HELLO_SCRATCH = 3, /* a page beside the region, which ping may overwrite */
	HELLO_LIST = 4,    /* only for listing the regions */
};

enum hello_status {
	HELLO_OK,
	HELLO_BAD_VERSION,
	HELLO_NO_REGION,
	HELLO_BUSY,
	HELLO_BAD_REQUEST,
	HELLO_PROVE,         /* not a refusal: the client has to prove that it has the secret */
	HELLO_SECRET_NEEDED, /* the server needs a secret, and the request offers none */
	HELLO_SECRET_UNUSED, /* the request offers a secret, and the server has none */
	HELLO_SECRET_WRONG,
	HELLO_CHOOSE,        /* the request names no region, and there are several */
	HELLO_BUSY_ADDRESS,  /* this address already has as many connections as permitted */
	HELLO_BEING_WRITTEN, /* another client is writing this range */
	/* The name of the region's file leads nowhere, to another file, or to a file that is
	 * shorter now. */
	HELLO_FILE_REMOVED,
	HELLO_FILE_REPLACED,
	HELLO_FILE_TRUNCATED,
	HELLO_FILE_UNKNOWN,    /* the server cannot check the name at present */
	HELLO_FILE_UNRECORDED, /* the server cannot store the record of the region's content */
	/* another writer has claimed the range since then, or may have done so */
	HELLO_TAKEN,
	HELLO_STATUS_COUNT,
};

enum hello_content_state {
	HELLO_CONTENT_RAW,     /* bytes about which nothing is known */
	HELLO_CONTENT_PARTIAL, /* a file that is being written, or was left unfinished */
	HELLO_CONTENT_WHOLE,   /* a whole file, which begins at the start of the region */
};

/* Content of a region. */
struct hello_content {
	uint8_t state; /* enum hello_content_state; RAW: the rest is zero */
	/* length of the file; HELLO_LENGTH_UNKNOWN only while the file is PARTIAL */
	uint64_t length;
	uint64_t time_ns;             /* modification time of the file, in ns since 1970 */
	uint8_t digest[HELLO_DIGEST]; /* digest of the content of a WHOLE file */
};

struct hello_request {
	uint8_t version;
	uint8_t access;
	bool has_secret;
	char region[HELLO_NAME_MAX + 1]; /* "": the server's only region */
};

struct hello_reply {
	uint8_t version;
	uint8_t status;
	uint8_t durability; /* enum rpma_durability of the region */
	uint64_t size;      /* size of the memory behind the descriptor */
	char region[HELLO_NAME_MAX + 1];
	struct hello_content content;
	uint8_t pcfg_len, mr_len; /* 0 unless the status is HELLO_OK */
	uint8_t pcfg[HELLO_DESC_MAX], mr[HELLO_DESC_MAX];
	uint8_t nonce[HELLO_NONCE]; /* valid if the status is HELLO_PROVE */
};

/* The next messages are sent on the established connection. */
struct hello_proof {
	uint8_t nonce[HELLO_NONCE]; /* nonce of the client */
	uint8_t mac[HELLO_MAC];
};

struct hello_grant {
	struct hello_reply reply;
	uint8_t mac[HELLO_MAC]; /* zeros if the status is HELLO_SECRET_WRONG */
};

struct hello_entry {
	char region[HELLO_NAME_MAX + 1];
	uint64_t size;
	uint8_t durability;
	struct hello_content content;
};

/* The answer to a question for the list. The question is a message without content. */
struct hello_list {
	uint8_t count;
	struct hello_entry entries[HELLO_ENTRY_MAX];
};

/* Announces a write. */
struct hello_begin {
	bool is_file; /* true: a file from offset 0 on; false: bytes */
	uint64_t offset,
		/* length of the range; HELLO_LENGTH_UNKNOWN: at most to the region's end */
		length;
	uint64_t time_ns;       /* modification time of the file, in ns since 1970 */
	struct claim_id former; /* the client's claim before the connection was lost; zero: none */
};

/* The answer to hello_begin. */
struct hello_begun {
	enum hello_status status;
	/* HELLO_OK: the client's claim; HELLO_TAKEN: the newer claim, without its key */
	struct claim_id claim;
	uint64_t made_ns; /* time of the newer claim, in ns since 1970 */
};

enum hello_type {
	HELLO_TYPE_PROOF = 1,
	HELLO_TYPE_GRANT,
	HELLO_TYPE_ASK,
	HELLO_TYPE_LIST,
	HELLO_TYPE_CONFIRM,
	HELLO_TYPE_VERDICT,
	HELLO_TYPE_BEGIN,
	HELLO_TYPE_BEGUN,
	HELLO_TYPE_END,
	HELLO_TYPE_ASK_COUNTS,
	HELLO_TYPE_COUNTS,
};

/* Counters of connections. A server adds them up for COUNTS; hello_value_name() returns their
 * names. */
#define HELLO_VALUES             12
#define HELLO_VALUES_MAX         64 /* a newer server may send more */
#define HELLO_WRITEBACK_FAILURES 11 /* index of this counter */

/* Counters of a server since it started. */
struct hello_counts {
	/* current clients, clients ever served, and refused clients */
	uint64_t clients, served, refused;
	uint64_t values[HELLO_VALUES];
	uint8_t count; /* number of regions */
	struct hello_region_counts {
		char region[HELLO_NAME_MAX + 1];
		uint64_t size;
		uint8_t durability;
		/* enum hello_status: HELLO_OK, or the reason why the region's file is not found
		 * under its name */
		uint8_t status;
		uint64_t avail, room; /* bytes of the file's file system; room 0: unknown */
	} regions[HELLO_ENTRY_MAX];
};

/* Returns the counter's name in rpma_conn_get_counters(3), or NULL if index is too large. */
const char *hello_value_name(unsigned index);

/* largest size of a request or reply */
#define HELLO_MAX      192
#define HELLO_TO_MAX   (5 + HELLO_NONCE + HELLO_MAC)          /* longest message to the server */
#define HELLO_FROM_MAX (6 + HELLO_ENTRY_MAX * (10 + 44 + 49)) /* longest message from the server */
#define HELLO_VERDICT  6                                      /* size of a verdict */
#define HELLO_BEGUN    (6 + 3 * 8)                            /* size of a BEGUN */

/* Encode into buf[HELLO_MAX]. Returns the number of bytes. */
size_t hello_request_encode(const struct hello_request *req, uint8_t *buf);
size_t hello_reply_encode(const struct hello_reply *reply, uint8_t *buf);
/* Returns false if the bytes are not of this protocol. A longer buffer is accepted, because
 * InfiniBand pads private data. */
bool hello_request_decode(const struct rpma_conn_private_data *pdata, struct hello_request *req);
bool hello_reply_decode(const struct rpma_conn_private_data *pdata, struct hello_reply *reply);

/* Encode a client's message into buf[HELLO_TO_MAX], or a server's message into
 * buf[HELLO_FROM_MAX]. Returns the number of bytes. */
size_t hello_proof_encode(const struct hello_proof *proof, uint8_t *buf);
size_t hello_grant_encode(const struct hello_grant *grant, uint8_t *buf);
size_t hello_ask_encode(uint8_t *buf);
size_t hello_list_encode(const struct hello_list *list, uint8_t *buf);
size_t hello_ask_counts_encode(uint8_t *buf);
size_t hello_counts_encode(const struct hello_counts *counts, uint8_t *buf);
size_t hello_confirm_encode(uint8_t *buf);
size_t hello_begin_encode(const struct hello_begin *begin, uint8_t *buf);
/* Encode the end of a WHOLE file. */
size_t hello_end_encode(const struct hello_content *content, uint8_t *buf);
/* Encode into buf[HELLO_VERDICT] and buf[HELLO_BEGUN]. */
size_t hello_verdict_encode(enum hello_status status, uint8_t *buf);
size_t hello_begun_encode(const struct hello_begun *begun, uint8_t *buf);
/* Returns false unless buf is exactly one proof, without missing or additional bytes. */
bool hello_proof_decode(const uint8_t *buf, size_t len, struct hello_proof *proof);
bool hello_grant_decode(const uint8_t *buf, size_t len, struct hello_grant *grant);
bool hello_ask_decode(const uint8_t *buf, size_t len);
bool hello_ask_counts_decode(const uint8_t *buf, size_t len);
bool hello_counts_decode(const uint8_t *buf, size_t len, struct hello_counts *counts);
bool hello_list_decode(const uint8_t *buf, size_t len, struct hello_list *list);
bool hello_confirm_decode(const uint8_t *buf, size_t len);
bool hello_verdict_decode(const uint8_t *buf, size_t len, enum hello_status *status);
bool hello_begin_decode(const uint8_t *buf, size_t len, struct hello_begin *begin);
bool hello_begun_decode(const uint8_t *buf, size_t len, struct hello_begun *begun);
bool hello_end_decode(const uint8_t *buf, size_t len, struct hello_content *content);

#endif
