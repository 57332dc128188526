/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/poll.h"
#include "rpmemd/lane.h"
#include "rpmemd/worker.h"
#include "service/peer.h"

enum data_lane_state { DATA_LANE_UNKNOWN, DATA_LANE_EXPECTED, DATA_LANE_CAME };

struct data {
	struct data_opts opts;
	int epoll_fd;
	struct rpma_ep *ep;
	uint16_t port;
	uint64_t deadline; /* deadline for the arrival of the expected lanes */
	bool announced;    /* a lane was announced at some time */
	unsigned expected; /* number of lanes that are expected now */
	unsigned came;     /* number of lanes that were accepted */
	unsigned ended;    /* number of accepted lanes that are closed */
	/* time at which data_is_deserted() becomes true; 0: a lane is open or expected */
	uint64_t deserted;
	struct rpma_mr_local *mr;
	struct wire_lane_reply reply; /* valid after the registration */
	struct rpma_cq *cq;           /* the lanes' queue if this end has no workers; stays empty */
	struct worker *workers;       /* threads of the general method */
	unsigned worker_count;
	uint8_t *states; /* enum data_lane_state, indexed by the lane's number */
	struct lane **lanes;
};

/* largest number of events that one step handles, so that the control stream is not delayed */
#define DATA_EVENTS 64

/*
 * Descriptors of a lane: its socket and its event channel. The general method also needs the
 * channel of its completion queue.
 */
#define DATA_LANE_FDS  3
#define DATA_OTHER_FDS 96

unsigned data_lanes_possible(unsigned lanes, enum wire_method method)
{
	unsigned each = method == WIRE_METHOD_GENERAL ? DATA_LANE_FDS + 1 : DATA_LANE_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return lanes;
	if (limit.rlim_cur < DATA_OTHER_FDS + each)
		return 1;
	limit.rlim_cur = (limit.rlim_cur - DATA_OTHER_FDS) / each;
	return limit.rlim_cur < lanes ? (unsigned)limit.rlim_cur : lanes;
}

static int data_open_queues(struct data *d)
{
	if (d->opts.method != WIRE_METHOD_GENERAL)
		return rpma_cq_new(d->opts.device->peer, 1, &d->cq);
	d->worker_count = d->opts.nthreads && d->opts.nthreads < d->opts.lanes ? d->opts.nthreads
									       : d->opts.lanes;
	d->workers = calloc(d->worker_count, sizeof(*d->workers));
	return d->workers ? 0 : RPMA_E_NOMEM;
}

int data_new(const struct data_opts *opts, struct data **data, struct error *err)
{
	struct data *d = calloc(1, sizeof(*d));
	int rc = d ? 0 : RPMA_E_NOMEM;

	*data = NULL;
	if (d) {
		d->opts = *opts;
		d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		d->states = calloc(opts->lanes, 1);
		d->lanes = calloc(opts->lanes, sizeof(struct lane *));
		rc = d->epoll_fd < 0 || !d->states || !d->lanes ? RPMA_E_NOMEM
								: data_open_queues(d);
	}
	if (rc) {
		error_set(err, ERROR_LOCAL, ENOMEM, "cannot make the queues of %u lanes: %s",
			  opts->lanes, rc == RPMA_E_NOMEM ? "out of memory" : rpma_err_last());
		data_delete(&d);
		return ERROR_LOCAL;
	}
	*data = d;
	return 0;
}

static void data_stop_listening(struct data *d)
{
	int fd;

	if (!d->ep)
		return;
	if (!rpma_ep_get_fd(d->ep, &fd))
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	rpma_ep_shutdown(&d->ep);
	LOG_DEBUG("port %u is closed", d->port);
}

static void data_close_lanes(struct data *d)
{
	for (unsigned i = 0; i < d->worker_count; i++)
		worker_ask_to_stop(&d->workers[i]);
	/* Disconnect, so that the peer gets an orderly end. */
	for (unsigned i = 0; i < d->opts.lanes && d->lanes; i++)
		if (d->lanes[i])
			lane_end(d->lanes[i]);
	for (unsigned i = 0; i < d->worker_count; i++)
		worker_stop(&d->workers[i]);
	for (unsigned i = 0; i < d->opts.lanes && d->lanes; i++) {
		if (d->lanes[i])
			lane_close(d->lanes[i]);
		free(d->lanes[i]);
	}
}

void data_delete(struct data **data)
{
	struct data *d = *data;

	if (!d)
		return;
	data_stop_listening(d);
	data_close_lanes(d);
	rpma_mr_dereg(&d->mr);
	for (unsigned i = 0; i < d->worker_count; i++)
		worker_fini(&d->workers[i]);
	rpma_cq_delete(&d->cq);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	memset(&d->opts.key, 0, sizeof(d->opts.key));
	free(d->workers);
	free(d->states);
	free(d->lanes);
	free(d);
	*data = NULL;
}

bool data_is_deserted(const struct data *d)
{
	return d->deserted && !poll_ms_left(d->deserted);
}

static int data_listen(struct data *d, struct error *err)
{
	int fd, rc = device_listen(d->opts.device, &d->opts.ports, &d->ep, &d->port, err);

	if (rc)
		return rc;
	if (rpma_ep_get_fd(d->ep, &fd) || peer_watch(d->epoll_fd, fd, NULL)) {
		rpma_ep_shutdown(&d->ep);
		return error_set(err, ERROR_LOCAL, ECONNABORTED, "epoll: %s", strerror(errno));
	}
	LOG_DEBUG("port %u is open", d->port);
	return 0;
}

int data_expect(struct data *d, unsigned first, unsigned count, uint16_t *port, struct error *err)
{
	for (unsigned i = first; i < first + count; i++)
		if (d->states[i] == DATA_LANE_CAME)
			return error_set(err, ERROR_ARGUMENT, EINVAL,
					 "lane %u is connected already", i);
	if (!d->ep && data_listen(d, err))
		return ERROR_LOCAL;
	for (unsigned i = first; i < first + count; i++) {
		d->expected += d->states[i] == DATA_LANE_UNKNOWN;
		d->states[i] = DATA_LANE_EXPECTED;
	}
	d->announced = true;
	d->deserted = 0;
	d->deadline = poll_deadline(d->opts.connect_ms);
	*port = d->port;
	return 0;
}

bool data_was_connected(const struct data *d)
{
	return d->came > 0;
}

int data_get_fd(const struct data *d)
{
	return d->epoll_fd;
}

/* Register the pool's memory, before the first proven lane is accepted. */
static int data_register(struct data *d)
{
	int usage = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
		    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	int rc;

	if (d->mr)
		return 0;
	rc = rpma_mr_reg(d->opts.device->peer, d->opts.base, d->opts.size, usage, &d->mr);
	if (!rc)
		rc = peer_describe_memory(d->mr, d->reply.mr, sizeof(d->reply.mr),
					  &d->reply.mr_len);
	if (!rc)
		rc = peer_describe(d->opts.method != WIRE_METHOD_GENERAL, d->reply.pcfg,
				   sizeof(d->reply.pcfg), &d->reply.pcfg_len);
	if (rc) {
		LOG_ERROR("the pool's memory cannot be registered: %s", rpma_err_last());
		rpma_mr_dereg(&d->mr);
	}
	return rc;
}

/* Returns the completion queue of the next lane. Lanes are assigned to the workers in the order of
 * their arrival. */
static struct rpma_cq *data_next_cq(struct data *d)
{
	struct worker *w;
	unsigned lanes;

	if (!d->workers)
		return d->cq;
	w = &d->workers[d->came % d->worker_count];
	lanes = (d->opts.lanes + d->worker_count - 1) / d->worker_count;
	if (!w->cq && worker_start(w, d->opts.device->peer, lane_cq_size(lanes)))
		LOG_ERROR("no thread for a lane: %s", rpma_err_last());
	return w->cq;
}

static struct rpma_conn_req *data_next_request(struct data *d)
{
	struct rpma_cq *cq = data_next_cq(d);
	struct rpma_conn_cfg *cfg = lane_cfg_new(d->workers != NULL);
	struct rpma_conn_req *req = NULL;
	int rc = cfg && cq ? 0 : RPMA_E_NOMEM;

	if (!rc)
		rc = rpma_conn_cfg_set_cq(cfg, cq);
	if (!rc)
		rc = rpma_ep_next_conn_req(d->ep, cfg, &req);
	if (rc && rc != RPMA_E_NO_EVENT)
		LOG_WARNING_LIMITED("a lane's request was lost: %s", rpma_err_last());
	rpma_conn_cfg_delete(&cfg);
	return rc ? NULL : req;
}

/* Returns the lane's number if the lane has a valid proof and is expected, else -1. */
static int data_check_proof(const struct data *d, const struct rpma_conn_req *req)
{
	struct rpma_conn_private_data theirs = {0};
	char addr[RPMA_ADDR_MAX] = "an unknown address";
	uint32_t number;

	rpma_conn_req_get_private_data(req, &theirs);
	rpma_conn_req_get_remote_addr(req, addr, sizeof(addr));
	if (!theirs.ptr ||
	    !wire_lane_request_decode(&d->opts.key, d->port, theirs.ptr, theirs.len, &number)) {
		LOG_WARNING_LIMITED(
			"refused a connection from %s to port %u: it does not prove to be a lane",
			addr, d->port);
		return -1;
	}
	if (number >= d->opts.lanes || d->states[number] != DATA_LANE_EXPECTED) {
		LOG_WARNING_LIMITED(
			"refused lane %u from %s: it was not announced, or is connected already",
			number, addr);
		return -1;
	}
	return (int)number;
}

static int data_accept_lane(struct data *d, unsigned number, struct rpma_conn_req **req)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	uint8_t buf[WIRE_LANE_REPLY];
	struct rpma_conn_private_data ours = {.ptr = buf};
	int fd, rc;

	if (!lane)
		return RPMA_E_NOMEM;
	lane->number = number;
	/* kept until the end, because a worker may have a pointer to the lane */
	d->lanes[number] = lane;
	ours.len = (uint8_t)wire_lane_reply_encode(&d->opts.key, number, d->port, &d->reply, buf);
	rc = lane_open(lane, d->opts.device->peer, req, &ours, d->workers ? d->opts.persist : NULL);
	if (!rc)
		rc = rpma_conn_get_event_fd(lane->conn, &fd);
	if (!rc && peer_watch(d->epoll_fd, fd, lane)) {
		rpma_conn_disconnect(lane->conn);
		rc = RPMA_E_NOMEM;
	}
	return rc;
}

/* Refuse the lane by accepting it with a refusal. The refusal's proof shows the initiator that its
 * own proof was accepted. */
static void data_refuse_lane(struct data *d, unsigned number, struct rpma_conn_req **req)
{
	struct wire_lane_reply reply = {.status = WIRE_LANE_FAILED};
	uint8_t buf[WIRE_LANE_REPLY];
	struct rpma_conn_private_data ours = {
		.ptr = buf,
		.len = (uint8_t)wire_lane_reply_encode(&d->opts.key, number, d->port, &reply, buf)};

	LOG_ERROR_LIMITED("lane %u cannot be served: %s", number, rpma_err_last());
	if (*req)
		rpma_conn_req_reject(req, &ours);
}

static void data_on_request(struct data *d)
{
	struct rpma_conn_req *req = data_next_request(d);
	int number;

	if (!req)
		return;
	number = data_check_proof(d, req);
	if (number < 0) {
		rpma_conn_req_delete(&req);
		return;
	}
	d->states[number] = DATA_LANE_CAME;
	d->expected--;
	if (data_register(d) || data_accept_lane(d, (unsigned)number, &req))
		data_refuse_lane(d, (unsigned)number, &req);
	else
		d->came++;
	if (!d->expected)
		data_stop_listening(d);
}

static void data_on_lane(struct data *d, struct lane *lane)
{
	enum rpma_conn_event event;
	int fd;

	if (rpma_conn_next_event(lane->conn, &event))
		return;
	LOG_DEBUG("lane %u: %s", lane->number, rpma_utils_conn_event_2str(event));
	if (event == RPMA_CONN_ESTABLISHED)
		return;
	/* Keep the lane until the end of the session, because a worker may be using it. */
	rpma_conn_get_event_fd(lane->conn, &fd);
	epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	rpma_conn_disconnect(lane->conn);
	d->ended++;
}

static void data_give_up_expected(struct data *d)
{
	LOG_WARNING("%u lanes did not connect within %d ms", d->expected, d->opts.connect_ms);
	for (unsigned i = 0; i < d->opts.lanes; i++)
		if (d->states[i] == DATA_LANE_EXPECTED)
			d->states[i] = DATA_LANE_UNKNOWN;
	d->expected = 0;
	data_stop_listening(d);
}

int data_step(struct data *d)
{
	struct epoll_event ev;

	/* Take one event at a time, because its handler may free the object of another event. */
	for (int i = 0; i < DATA_EVENTS && epoll_wait(d->epoll_fd, &ev, 1, 0) > 0; i++) {
		if (ev.data.ptr)
			data_on_lane(d, ev.data.ptr);
		else if (d->ep)
			data_on_request(d);
	}
	if (d->ep && !poll_ms_left(d->deadline))
		data_give_up_expected(d);
	if (!d->announced || d->expected || d->came > d->ended)
		d->deserted = 0;
	else if (!d->deserted)
		d->deserted = poll_deadline(d->opts.deserted_ms);
	if (d->deserted)
		return data_is_deserted(d) ? -1 : poll_ms_left(d->deserted);
	return d->ep ? poll_ms_left(d->deadline) : -1;
}
