/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports about this machine: its providers, and the capabilities of the chosen provider towards a
 * peer of the same kind.
 */
#include <stdio.h>

#include "cli.h"
#include "info.h"

#define LOOPBACK   "127.0.0.1"
#define TIMEOUT_MS 10000

/* Connects the process to itself, because capabilities belong to a connection. */
struct loop {
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct rpma_conn *near, *far;
};

static int info_open_loopback(struct loop *l, char *port, size_t size)
{
	struct ibv_context *context;
	uint16_t number;
	int rc = rpma_utils_get_ibv_context(LOOPBACK, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context);

	if (!rc)
		rc = rpma_peer_new(context, &l->peer);
	if (!rc)
		rc = rpma_ep_listen(l->peer, LOOPBACK, "0", &l->ep);
	if (!rc)
		rc = rpma_ep_get_port(l->ep, &number);
	if (!rc)
		snprintf(port, size, "%u", number);
	return rc;
}

static int info_connect_loopback(struct loop *l, const char *port)
{
	struct rpma_conn_req *req;
	enum rpma_conn_event event;
	int rc = rpma_conn_req_new(l->peer, LOOPBACK, port, NULL, &req);

	if (!rc)
		rc = rpma_conn_req_connect(&req, NULL, &l->near);
	if (!rc)
		rc = rpma_ep_next_conn_req_timeout(l->ep, NULL, TIMEOUT_MS, &req);
	if (!rc)
		rc = rpma_conn_req_connect(&req, NULL, &l->far);
	if (!rc)
		rc = rpma_conn_next_event_timeout(l->near, TIMEOUT_MS, &event);
	if (!rc && event != RPMA_CONN_ESTABLISHED)
		rc = RPMA_E_UNKNOWN;
	return rc;
}

static int info_query_loopback(uint32_t *caps)
{
	struct loop l = {0};
	char port[8];
	int rc = info_open_loopback(&l, port, sizeof(port));

	if (!rc)
		rc = info_connect_loopback(&l, port);
	if (!rc)
		rc = rpma_conn_get_remote_caps(l.near, caps);
	if (l.near)
		rpma_conn_disconnect(l.near);
	rpma_conn_delete(&l.near);
	rpma_conn_delete(&l.far);
	rpma_ep_shutdown(&l.ep);
	rpma_peer_delete(&l.peer);
	return rc;
}

static void info_print_row(const struct rpma_provider_info *row)
{
	printf("%-10s %-12s %-7s %s\n", row->provider, row->device ? row->device : "-",
	       row->usable ? "yes" : "no", row->why);
}

static void info_print_row_json(const struct rpma_provider_info *row)
{
	cli_json_string("{\"provider\":", row->provider);
	printf(",\"device\":");
	if (row->device)
		cli_json_string("", row->device);
	else
		printf("null");
	printf(",\"usable\":%s,\"why\":", row->usable ? "true" : "false");
	cli_json_string("", row->why);
	putchar('}');
}

static int info_print_rows(bool json)
{
	struct rpma_provider_list *list;
	struct rpma_provider_info row = {.size = sizeof(row)};
	int rc = rpma_provider_list_new(NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, &list);

	if (rc)
		return cli_fail(CLI_FILE, "cannot list the providers: %s", rpma_err_last());
	if (json)
		printf("{\"version\":\"%s\",\"providers\":[", RPMA_TOOL_VERSION);
	else
		printf("%-10s %-12s %-7s %s\n", "provider", "device", "usable", "why");
	for (size_t i = 0; !rpma_provider_list_get(list, i, &row); i++) {
		if (json)
			fputs(i ? "," : "", stdout);
		(json ? info_print_row_json : info_print_row)(&row);
	}
	rpma_provider_list_delete(&list);
	return CLI_OK;
}

int info_here(bool json)
{
	uint32_t caps = 0;
	int rc = info_print_rows(json);

	if (rc)
		return rc;
	/* If no provider serves loopback, print no capabilities: the providers' rows already give
	 * the reason. */
	rc = info_query_loopback(&caps);
	fputs(json ? "],\"capabilities\":[" : "capabilities: ", stdout);
	if (!rc)
		info_print_capabilities(caps, json);
	else if (!json)
		puts("none at " LOOPBACK);
	if (json)
		puts("]}");
	return CLI_OK;
}
