/* SPDX-License-Identifier: BSD-3-Clause */
#include "common.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONNECT_MS 20000

static int usage(const char *prog, const struct role *roles)
{
	for (; roles->name; roles++)
		fprintf(stderr, "usage: %s %s %s\n", prog, roles->name, roles->usage);
	return EXIT_FAILURE;
}

/* Count the words of a usage text that are not in brackets. */
static int words_needed(const char *words)
{
	int n = 0;

	for (; *words && *words != '['; words += strspn(words, " ")) {
		words += strcspn(words, " ");
		n++;
	}
	return n;
}

int play(int argc, char **argv, const struct role *roles)
{
	/* Write line by line, even into a pipe, so that a reader gets each line immediately. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Print the log to standard error: a result is only a number, and the log has the
	 * details. */
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);
	for (const struct role *r = roles; argc > 1 && r->name; r++) {
		if (strcmp(argv[1], r->name) != 0)
			continue;
		if (argc - 2 < words_needed(r->usage))
			break;
		r->run(argv + 2);
		return EXIT_SUCCESS;
	}
	return usage(program_invocation_short_name, roles);
}

void must(int ret, const char *what)
{
	if (ret)
		/* since 1.4, rpma_err_last() returns the reason */
		errx(EXIT_FAILURE, "%s: %s", what, rpma_err_2str(ret));
}

unsigned number(const char *arg, unsigned otherwise, unsigned max)
{
	char *end;
	unsigned long n;

	if (!arg)
		return otherwise;
	n = strtoul(arg, &end, 10);
	if (*end || n < 1 || n > max)
		errx(EXIT_FAILURE, "'%s' is not a number from 1 to %u", arg, max);
	return (unsigned)n;
}

void *map_file(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *ptr;
	int rc;

	if (fd < 0)
		err(EXIT_FAILURE, "%s", path);
	/* Reserve the blocks now: a later flush then cannot fail because the disk is full. */
	rc = posix_fallocate(fd, 0, (off_t)size);
	if (rc)
		errx(EXIT_FAILURE, "%s: %s", path, strerror(rc));
	/* Map the file as shared memory, because stores to a private mapping never reach the
	 * file. */
	ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ptr == MAP_FAILED)
		err(EXIT_FAILURE, "map %s", path);
	close(fd); /* the mapping keeps the file open */
	return ptr;
}

struct rpma_peer *open_peer(const char *addr, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *device;
	struct rpma_peer *peer;

	must(rpma_utils_get_ibv_context(addr, type, &device), addr);
	must(rpma_peer_new(device, &peer), "make a peer");
	return peer;
}

struct rpma_ep *listen_at(struct rpma_peer *peer, const char *addr, const char *port)
{
	struct rpma_ep *ep;

	must(rpma_ep_listen(peer, addr, port, &ep), "listen");
	printf("listening at %s port %s\n", addr, port);
	return ep;
}

struct rpma_conn *accept_request(struct rpma_conn_req **req, const struct rpma_mr_local *offered)
{
	char desc[UINT8_MAX];
	struct rpma_conn_private_data pdata = {.ptr = desc};
	enum rpma_conn_event event;
	struct rpma_conn *conn;
	size_t size = 0;

	if (offered) {
		must(rpma_mr_get_descriptor_size(offered, &size), "descriptor");
		if (size > sizeof(desc))
			errx(EXIT_FAILURE, "a descriptor of %zu bytes is too long", size);
		must(rpma_mr_get_descriptor(offered, desc), "descriptor");
		pdata.len = (uint8_t)size;
	}
	must(rpma_conn_req_connect(req, offered ? &pdata : NULL, &conn), "accept");
	must(rpma_conn_next_event(conn, &event), "wait for the connection");
	if (event != RPMA_CONN_ESTABLISHED) {
		warnx("a client did not connect: %s", rpma_utils_conn_event_2str(event));
		rpma_conn_delete(&conn);
	}
	return conn;
}

void see_off(struct rpma_conn **conn)
{
	enum rpma_conn_event event;

	must(rpma_conn_next_event(*conn, &event), "wait for the client to leave");
	printf("the client is gone: %s\n", rpma_utils_conn_event_2str(event));
	rpma_conn_disconnect(*conn); /* close this end of the connection, too */
	must(rpma_conn_delete(conn), "delete the connection");
}

/* Serve this number of clients, one after the other. Then release the region and the peer. */
static void offer(char **where, struct rpma_peer *peer, struct rpma_mr_local *mr, int clients)
{
	struct rpma_ep *ep = listen_at(peer, where[0], where[1]);
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	while (clients) {
		must(rpma_ep_next_conn_req(ep, NULL, &req), "wait for a client");
		conn = accept_request(&req, mr);
		if (!conn)
			continue;
		see_off(&conn);
		if (clients != FOREVER)
			clients--;
	}
	must(rpma_ep_shutdown(&ep), "stop listening");
	must(rpma_mr_dereg(&mr), "deregister memory");
	must(rpma_peer_delete(&peer), "delete the peer");
}

void offer_region(char **where, void *ptr, size_t size, int usage_flags, int clients)
{
	struct rpma_peer *peer = open_peer(where[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr;

	must(rpma_mr_reg(peer, ptr, size, usage_flags, &mr), "register memory");
	offer(where, peer, mr, clients);
}

void offer_file(char **where, size_t size, int usage_flags, int clients)
{
	struct rpma_peer *peer = open_peer(where[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr;

	must(rpma_mr_reg_file(peer, where[2], size, usage_flags, &mr), where[2]);
	offer(where, peer, mr, clients);
}

const char *session_connect(struct session *s, char **where, const struct rpma_conn_cfg *cfg,
			    int retry_ms)
{
	struct rpma_conn_open_attr attr = {.size = sizeof(attr),
					   .addr = where[0],
					   .port = where[1],
					   .cfg = cfg,
					   .timeout_ms = CONNECT_MS + retry_ms,
					   .retry_ms = retry_ms};
	enum rpma_conn_event event;
	int ret = rpma_conn_open(s->peer, &attr, &event, &s->conn);

	s->region = NULL;
	if (ret == RPMA_E_AGAIN)
		return "refused: no program listens there";
	if (ret == RPMA_E_NO_EVENT)
		return "no answer";
	if (ret)
		return rpma_err_2str(ret);
	if (event != RPMA_CONN_ESTABLISHED) {
		rpma_conn_delete(&s->conn);
		return "rejected by the server";
	}
	must(rpma_conn_get_cq(s->conn, &s->cq), "completion queue");
	return NULL;
}

void session_open(struct session *s, char **where, const struct rpma_conn_cfg *cfg)
{
	const char *why;

	s->peer = open_peer(where[0], RPMA_UTIL_IBV_CONTEXT_REMOTE);
	why = session_connect(s, where, cfg, 0);
	if (why)
		errx(EXIT_FAILURE, "connect to %s port %s: %s", where[0], where[1], why);
}

void session_take_offer(struct session *s, size_t size)
{
	struct rpma_conn_private_data pdata;
	size_t offered;

	must(rpma_conn_get_private_data(s->conn, &pdata), "private data");
	if (!pdata.len)
		errx(EXIT_FAILURE, "the server offers no region");
	must(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &s->region), "descriptor");
	must(rpma_mr_remote_get_size(s->region, &offered), "size of the region");
	if (offered < size)
		errx(EXIT_FAILURE, "%zu bytes do not fit into the %zu offered", size, offered);
}

void session_disconnect(struct session *s)
{
	enum rpma_conn_event event;

	must(rpma_mr_remote_delete(&s->region), "forget the region");
	must(rpma_conn_disconnect(s->conn), "disconnect");
	must(rpma_conn_next_event(s->conn, &event), "wait for the end");
	must(rpma_conn_delete(&s->conn), "delete the connection");
}

void session_close(struct session *s, struct rpma_mr_local **mr)
{
	session_disconnect(s);
	must(mr ? rpma_mr_dereg(mr) : 0, "deregister memory");
	must(rpma_peer_delete(&s->peer), "delete the peer");
}

struct ibv_wc next_completion(struct rpma_cq *cq)
{
	struct ibv_wc wc = {0};
	int ret;

	/* Take completions before waiting: a completion that came earlier does not always cause
	 * another wake-up. */
	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
		ret = rpma_cq_wait(cq);
		/* RPMA_E_NO_COMPLETION is a wake-up without a completion */
		if (ret != RPMA_E_NO_COMPLETION)
			must(ret, "wait for a completion");
	}
	must(ret, "take a completion");
	return wc;
}

struct ibv_wc await(struct rpma_cq *cq, const char *what)
{
	struct ibv_wc wc = next_completion(cq);

	if (wc.status != IBV_WC_SUCCESS)
		errx(EXIT_FAILURE, "%s: %s", what, ibv_wc_status_str(wc.status));
	return wc;
}
