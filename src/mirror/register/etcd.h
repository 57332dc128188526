/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd.h -- declarations of the register in etcd: its handle, requests with fail-over, the
 * watch. */
#ifndef MIRROR_REGISTER_ETCD_H
#define MIRROR_REGISTER_ETCD_H

#include <curl/curl.h>
#include <jansson.h>

#include "mirror/register/backend.h"

#define ETCD_ENDPOINTS 9
#define ETCD_TEXT      (REGISTER_URI_MAX + 1)
#define ETCD_SECRET    256
#define ETCD_KEY       (MIRROR_SET_MAX + 32)

struct etcd_register {
	struct mirror_register base;
	/* number of members; index of the member to try first, which has answered last */
	unsigned endpoints, preferred;
	char endpoint[ETCD_ENDPOINTS][ETCD_TEXT]; /* HOST:PORT of each member */
	char ca[ETCD_TEXT], cert[ETCD_TEXT], key[ETCD_TEXT], user[ETCD_SECRET],
		password[ETCD_SECRET];
	char password_file[ETCD_TEXT];
	bool tls;
	char token[ETCD_SECRET];                /* "": no token yet, or it has expired */
	char key64[BACKEND_KEYS][2 * ETCD_KEY]; /* the keys in the gateway's form, base64 */
	CURL *curl;
	CURLM *asks;      /* the connections of reads; NULL: no read was made yet */
	uint64_t watched; /* the watch has reported all revisions up to this one */
};

static inline struct etcd_register *etcd_of(struct mirror_register *r)
{
	/* the handle is the first member of struct etcd_register */
	return (struct etcd_register *)r;
}

/* The result of an attempt at one member, or at all members. */
enum etcd_outcome {
	ETCD_ANSWERED,
	ETCD_NOT_SENT,  /* no member received the request */
	ETCD_UNCERTAIN, /* the request was sent, and no answer shows whether it was done */
	ETCD_REFUSED,   /* the request was not done, and no other member would do it */
	ETCD_TOKEN_ENDED
};

struct etcd_reply {
	json_t *json;     /* with ETCD_ANSWERED; the caller frees it */
	int cause;        /* an errno */
	bool is_distrust; /* one end does not accept the other's certificate; text has the reason */
	char text[ERROR_TEXT / 2];
};

struct etcd_request {
	char url[2 * ETCD_TEXT];
	struct curl_slist *headers;
	char *text;
};

/* The part of an answer that has arrived so far. */
struct etcd_answer {
	char *text;
	size_t len;
	char error[CURL_ERROR_SIZE]; /* curl's text for the failure; "": only the code is known */
};

/* Apply the settings that all connections share: TLS, no proxy, no signals. */
void etcd_http_prepare(const struct etcd_register *e, CURL *curl);
/* Returns the header lines of a request; NULL: out of memory. */
struct curl_slist *etcd_http_headers(const struct etcd_register *e);
void etcd_http_url(const struct etcd_register *e, unsigned endpoint, const char *path,
		   char url[2 * ETCD_TEXT]);

/* Make one POST to one member, within limit_ms. */
enum etcd_outcome etcd_http_post(struct etcd_register *e, unsigned endpoint, const char *path,
				 const json_t *body, unsigned limit_ms, struct etcd_reply *reply);
/* The two parts of etcd_http_post(): set up a POST, and find its outcome when it has finished. */
void etcd_http_fill(const struct etcd_register *e, CURL *curl, const struct etcd_request *request,
		    unsigned limit_ms, struct etcd_answer *answer);
enum etcd_outcome etcd_http_judge(CURL *curl, CURLcode code, const char *endpoint,
				  const struct etcd_answer *answer, struct etcd_reply *reply);
enum etcd_outcome etcd_http_fail(struct etcd_reply *reply, enum etcd_outcome outcome, int cause,
				 const char *endpoint, const char *text);
/* Ask the members in turn, again and again, until a member answers or the deadline has passed. If a
 * user is configured, the request has the user's token. */
enum etcd_outcome etcd_call(struct etcd_register *e, const char *path, const json_t *body,
			    uint64_t deadline, struct etcd_reply *reply);
/* Like etcd_call(), for a request without effects: if a member is silent, the next member is asked
 * meanwhile. */
enum etcd_outcome etcd_ask(struct etcd_register *e, const char *path, const json_t *body,
			   uint64_t deadline, struct etcd_reply *reply);
/* Read the password file again; on failure the former password stays. Returns 0 or an error kind of
 * error.h. */
int etcd_read_password(struct etcd_register *e, struct error *err);
/* Get a token if a token is needed and missing. Returns 0 or an outcome of etcd_http_post(). */
enum etcd_outcome etcd_authenticate(struct etcd_register *e, unsigned endpoint, unsigned limit_ms,
				    struct etcd_reply *reply);

/* Write len bytes in base64 to text. Returns false if `size`, the length of text, is too small. */
bool etcd_base64(const void *bytes, size_t len, char *text, size_t size);
/* Read an integer from the gateway, which writes 64-bit numbers as strings. Returns 0 if the key
 * is absent. */
uint64_t etcd_number(const json_t *object, const char *key);

bool etcd_watch(struct mirror_register *r, uint64_t revision, unsigned timeout_ms, int wake_fd);
extern const struct backend_ops etcd_ops;

#endif
