/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * both_main.c -- arguments ADDRESS DEVICE ADDRESS DEVICE: one program uses two devices through one
 * event channel. At each address it listens and connects to itself. Each connection must use the
 * device that is named after its address. The program sends a message over both connections before
 * it ends either of them.
 */
#include <arpa/inet.h>
#include <err.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLACES 2
#define TEXT   "both at once"

struct place {
	const char *device;
	struct sockaddr_in addr;
	struct rdma_cm_id *listener, *client, *server;
	char out[32], in[32];
	struct ibv_mr *out_mr, *in_mr;
	int established;
};

static struct rdma_event_channel *channel;
static struct place places[PLACES];

static void open_listener(struct place *p, const char *addr, const char *device)
{
	p->device = device;
	p->addr.sin_family = AF_INET;
	if (inet_pton(AF_INET, addr, &p->addr.sin_addr) != 1)
		errx(2, "%s is no address", addr);
	if (rdma_create_id(channel, &p->listener, p, RDMA_PS_TCP) ||
	    rdma_bind_addr(p->listener, (struct sockaddr *)&p->addr) || rdma_listen(p->listener, 1))
		err(1, "listen at %s", addr);
	p->addr.sin_port = rdma_get_src_port(p->listener);
}

static void open_client(struct place *p)
{
	if (rdma_create_id(channel, &p->client, p, RDMA_PS_TCP) ||
	    rdma_resolve_addr(p->client, NULL, (struct sockaddr *)&p->addr, 2000))
		err(1, "resolve");
}

static void open_qp(struct place *p, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	const char *name = ibv_get_device_name(id->verbs->device);

	if (strcmp(name, p->device))
		errx(1, "device %s, not %s", name, p->device);
	if (rdma_create_qp(id, NULL, &attr))
		err(1, "queue pair on %s", name);
}

static void serve(struct place *p, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {0};

	p->server = id;
	open_qp(p, id);
	p->in_mr = rdma_reg_msgs(id, p->in, sizeof(p->in));
	if (!p->in_mr || rdma_post_recv(id, p, p->in, sizeof(p->in), p->in_mr))
		err(1, "receive on %s", p->device);
	if (rdma_accept(id, &param))
		err(1, "accept on %s", p->device);
}

static void take(const struct rdma_cm_event *ev)
{
	struct place *p = ev->id->context;
	struct rdma_conn_param param = {0};
	int ret = 0;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(ev->id, 2000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		open_qp(p, ev->id);
		ret = rdma_connect(ev->id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		serve(p, ev->id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		p->established++;
		break;
	default:
		errx(1, "%s: event %s", p->device, rdma_event_str(ev->event));
	}
	if (ret)
		err(1, "%s: after %s", p->device, rdma_event_str(ev->event));
}

static int all_established(void)
{
	int n = 0;

	for (int i = 0; i < PLACES; i++)
		n += places[i].established;
	return n == 2 * PLACES;
}

static void exchange_messages(struct place *p)
{
	struct ibv_wc wc;

	strcpy(p->out, TEXT);
	p->out_mr = rdma_reg_msgs(p->client, p->out, sizeof(p->out));
	if (!p->out_mr || rdma_post_send(p->client, p, p->out, sizeof(TEXT), p->out_mr, 0))
		err(1, "send on %s", p->device);
	if (rdma_get_recv_comp(p->server, &wc) != 1 || wc.status != IBV_WC_SUCCESS ||
	    strcmp(p->in, TEXT))
		errx(1, "%s: nothing came", p->device);
	printf("%s: %s\n", p->device, p->in);
}

static void expect_end(struct place *p)
{
	struct rdma_cm_event *ev;

	if (rdma_disconnect(p->client))
		err(1, "disconnect on %s", p->device);
	for (int n = 0; n < 2; n++) {
		if (rdma_get_cm_event(channel, &ev))
			err(1, "next event");
		if (ev->event != RDMA_CM_EVENT_DISCONNECTED || ev->id->context != p)
			errx(1, "%s: event %s", p->device, rdma_event_str(ev->event));
		if (ev->id == p->server)
			rdma_disconnect(p->server);
		rdma_ack_cm_event(ev);
	}
}

static void leave(struct place *p)
{
	expect_end(p);
	rdma_dereg_mr(p->in_mr);
	rdma_dereg_mr(p->out_mr);
	rdma_destroy_qp(p->server);
	rdma_destroy_qp(p->client);
	if (rdma_destroy_id(p->server) || rdma_destroy_id(p->client) ||
	    rdma_destroy_id(p->listener))
		err(1, "destroy on %s", p->device);
}

int main(int argc, char **argv)
{
	struct rdma_cm_event *ev;

	if (argc != 1 + 2 * PLACES)
		errx(2, "ADDRESS DEVICE ADDRESS DEVICE");
	alarm(100);
	channel = rdma_create_event_channel();
	if (!channel)
		err(1, "event channel");
	for (int i = 0; i < PLACES; i++)
		open_listener(&places[i], argv[1 + 2 * i], argv[2 + 2 * i]);
	for (int i = 0; i < PLACES; i++)
		open_client(&places[i]);
	while (!all_established()) {
		if (rdma_get_cm_event(channel, &ev))
			err(1, "next event");
		take(ev);
		rdma_ack_cm_event(ev);
	}
	for (int i = 0; i < PLACES; i++)
		exchange_messages(&places[i]);
	for (int i = 0; i < PLACES; i++)
		leave(&places[i]);
	rdma_destroy_event_channel(channel);
	return 0;
}
