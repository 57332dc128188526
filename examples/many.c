/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many -- one thread serves many connections, with epoll.
 *
 * Everything that librpma can wait for has a file descriptor: requests at the endpoint, events of a
 * connection, completions in a queue. With O_NONBLOCK set on the descriptors no call waits, and
 * epoll reports which descriptors need a call. All connections complete in one queue, so the most
 * frequent kind of event has only one descriptor.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "common.h"

#define CONNS_DEFAULT 50
#define CONNS_MAX     200

/*
 * The messages are numbers. Each connection has memory for one received and one sent number.
 */
static uint32_t numbers[2 * CONNS_MAX];
#define IN(i)  ((size_t)(i)*2 * sizeof(uint32_t))
#define OUT(i) (IN(i) + sizeof(uint32_t))

static struct rpma_conn *clients[CONNS_MAX]; /* NULL: there is no connection */
static unsigned came, gone, most;
static int epoll_fd;

/* The data that epoll reports: the kind of a descriptor, and the number of its connection. */
enum kind { REQUESTS, EVENTS, COMPLETIONS };

static void watch(int fd, enum kind kind, uint32_t i)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | i};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		err(EXIT_FAILURE, "watch a descriptor");
}

static void on_requests(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			struct rpma_mr_local *mr, unsigned expected)
{
	struct rpma_conn_req *req;
	int ret, fd;

	while ((ret = rpma_ep_next_conn_req(ep, cfg, &req)) == 0) {
		void *who = (void *)(uintptr_t)came;

		if (came == expected) { /* one request too many: deleting the request rejects it */
			rpma_conn_req_delete(&req);
			continue;
		}
		must(rpma_conn_req_recv(req, mr, IN(came), sizeof(uint32_t), who), "receive");
		must(rpma_conn_req_connect(&req, NULL, &clients[came]), "accept");
		must(rpma_conn_get_event_fd(clients[came], &fd), "descriptor of events");
		watch(fd, EVENTS, came);
		came++;
	}
	if (ret != RPMA_E_NO_EVENT)
		must(ret, "next request");
}

static void on_events(struct rpma_conn **conn)
{
	enum rpma_conn_event event;

	while (*conn && rpma_conn_next_event(*conn, &event) == 0) {
		if (event == RPMA_CONN_ESTABLISHED) {
			if (came - gone > most)
				most = came - gone;
			continue;
		}
		rpma_conn_disconnect(*conn);
		/* This closes the connection's descriptor, so that epoll no longer watches it. */
		must(rpma_conn_delete(conn), "delete a connection");
		gone++;
	}
}

static void on_completions(struct rpma_cq *cq, struct rpma_mr_local *mr)
{
	struct ibv_wc wc;
	int ret = rpma_cq_wait(cq); /* takes the wake-up, without a wait */

	if (ret != RPMA_E_NO_COMPLETION)
		must(ret, "completions");
	while (rpma_cq_get_wc(cq, 1, &wc, NULL) == 0) {
		size_t i = wc.wr_id;

		/* The connection's end is handled by its event, and a sent answer needs no work. */
		if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV || !clients[i])
			continue;
		numbers[2 * i + 1] = numbers[2 * i];
		must(rpma_send(clients[i], mr, OUT(i), wc.byte_len, RPMA_F_COMPLETION_ALWAYS,
			       (void *)i),
		     "send");
	}
}

/* One queue for all connections: each has at most one receive and one answer under way. */
static struct rpma_cq *common_queue(struct rpma_peer *peer, struct rpma_conn_cfg **cfg)
{
	struct rpma_cq *cq;

	must(rpma_cq_new(peer, 2 * CONNS_MAX, &cq), "completion queue");
	must(rpma_conn_cfg_new(cfg), "configure");
	must(rpma_conn_cfg_set_cq(*cfg, cq), "configure");
	return cq;
}

static struct rpma_mr_local *register_numbers(struct rpma_peer *peer)
{
	struct rpma_mr_local *mr;

	must(rpma_mr_reg(peer, numbers, sizeof(numbers), RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
			 &mr),
	     "register");
	return mr;
}

static void server(char **args)
{
	unsigned expected = number(args[2], CONNS_DEFAULT, CONNS_MAX);
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr = register_numbers(peer);
	struct rpma_ep *ep = listen_at(peer, args[0], args[1]);
	struct rpma_conn_cfg *cfg;
	struct rpma_cq *cq = common_queue(peer, &cfg);
	struct epoll_event ev;
	int fd;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	must(rpma_ep_get_fd(ep, &fd), "descriptor of requests");
	watch(fd, REQUESTS, 0);
	must(rpma_cq_get_fd(cq, &fd), "descriptor of completions");
	watch(fd, COMPLETIONS, 0);
	while (gone < expected) {
		if (epoll_wait(epoll_fd, &ev, 1, -1) != 1)
			err(EXIT_FAILURE, "epoll_wait");
		switch ((enum kind)(ev.data.u64 >> 32)) {
		case REQUESTS:
			on_requests(ep, cfg, mr, expected);
			break;
		case EVENTS:
			on_events(&clients[(uint32_t)ev.data.u64]);
			break;
		case COMPLETIONS:
			on_completions(cq, mr);
			break;
		}
	}
	printf("%u connections came and went, %u at one time\n", gone, most);
	must(rpma_ep_shutdown(&ep), "stop listening");
	must(rpma_cq_delete(&cq), "delete the queue");
	must(rpma_conn_cfg_delete(&cfg), "configuration");
	must(rpma_mr_dereg(&mr), "deregister");
	must(rpma_peer_delete(&peer), "delete the peer");
}

/* An ordinary client: it connects several times, and then uses all connections. */
static void client(char **args)
{
	static struct session s[CONNS_MAX];
	unsigned n = number(args[2], CONNS_DEFAULT, CONNS_MAX);
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_mr_local *mr = register_numbers(peer);

	for (unsigned i = 0; i < n; i++) {
		const char *why;

		s[i].peer = peer;
		why = session_connect(&s[i], args, NULL, 0);
		if (why)
			errx(EXIT_FAILURE, "connection %u: %s", i, why);
		must(rpma_recv(s[i].conn, mr, IN(i), sizeof(uint32_t), NULL), "receive");
	}
	for (unsigned i = 0; i < n; i++) {
		numbers[2 * i + 1] = i;
		must(rpma_send(s[i].conn, mr, OUT(i), sizeof(uint32_t), RPMA_F_COMPLETION_ON_ERROR,
			       NULL),
		     "send");
	}
	for (unsigned i = 0; i < n; i++) {
		await(s[i].cq, "answer");
		if (numbers[2 * i] != i)
			errx(EXIT_FAILURE, "connection %u got the answer %u", i, numbers[2 * i]);
		session_disconnect(&s[i]);
	}
	printf("%u connections, each with its own answer\n", n);
	must(rpma_mr_dereg(&mr), "deregister");
	must(rpma_peer_delete(&peer), "delete the peer");
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT [COUNT]", server},
					    {"client", "ADDRESS PORT [COUNT]", client},
					    {0}};

	return play(argc, argv, roles);
}
