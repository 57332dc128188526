/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common.h -- code that every example needs: start, connect, wait, end.
 *
 * A failure ends the program with one line that explains it, which is enough for an example.
 * A function that returns a failure instead has a comment about this.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdbool.h>
#include <stddef.h>

#include <librpma.h>

/* A role that the user chooses on the command line. A table of roles ends with a NULL name. */
struct role {
	const char *name;
	const char *usage; /* the arguments after the name; those in [brackets] are optional */
	void (*run)(char **args);
};

/* Run the role that argv[1] names, with the arguments after it; the list of arguments ends with
 * NULL. */
int play(int argc, char **argv, const struct role *roles);

/* Exit with "what: why" unless ret, the result of a librpma function, is 0. */
void must(int ret, const char *what);

/* Returns the number in arg, from 1 to max, or `otherwise` if arg is NULL. */
unsigned number(const char *arg, unsigned otherwise, unsigned max);

/*
 * Map `size` bytes of a file as shared memory. Creates the file if it does not exist. Unmap with
 * munmap().
 */
void *map_file(const char *path, size_t size);

/* ---- the server's side ---- */

struct rpma_peer *open_peer(const char *addr, enum rpma_util_ibv_context_type type);
struct rpma_ep *listen_at(struct rpma_peer *peer, const char *addr, const char *port);
/*
 * Accept a request, and send the descriptor of `offered` in the answer (NULL: send nothing).
 * Returns NULL if the client left before the connection was established.
 */
struct rpma_conn *accept_request(struct rpma_conn_req **req, const struct rpma_mr_local *offered);
/* Wait until the client disconnects, and release the connection. */
void see_off(struct rpma_conn **conn);

#define FOREVER (-1)

/*
 * A complete server for one-sided access: offer `size` bytes at ptr to this number of clients, one
 * after the other. This process sleeps while the clients read and write.
 */
void offer_region(char **where, void *ptr, size_t size, int usage, int clients);
/* Like offer_region(), with `size` bytes of the file where[2], which is created if it does not
 * exist. */
void offer_file(char **where, size_t size, int usage, int clients);

/* ---- the client's side ---- */

struct session {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_mr_remote *region; /* NULL until session_take_offer() */
	struct rpma_cq *cq;
};

/* Connect to the address where[0] and the port where[1]. cfg NULL: use the defaults. */
void session_open(struct session *s, char **where, const struct rpma_conn_cfg *cfg);
/* Set s->region to the region that the server's private data describe, which must have at least
 * `size` bytes. */
void session_take_offer(struct session *s, size_t size);
/* Close the connection in good order, and release the memory that was registered for it. mr may be
 * NULL. */
void session_close(struct session *s, struct rpma_mr_local **mr);

/*
 * Parts of session_open() and session_close(), for programs that connect more than once.
 * session_connect() returns NULL, or the reason of a failure. As long as there is no listener, it
 * repeats the attempt for up to retry_ms.
 */
const char *session_connect(struct session *s, char **where, const struct rpma_conn_cfg *cfg,
			    int retry_ms);
void session_disconnect(struct session *s);

/* ---- both sides ---- */

/* Wait for the next completion of a queue, successful or not. */
struct ibv_wc next_completion(struct rpma_cq *cq);
/* Wait for the next completion, of an operation that must succeed. */
struct ibv_wc await(struct rpma_cq *cq, const char *what);

#endif
