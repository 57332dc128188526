/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli.h"
#include "client.h"
#include "info.h"

static const struct {
	uint32_t cap;
	const char *name;
} capabilities[] = {
	{RPMA_CAP_SOFTRNIC, "softrnic"},   {RPMA_CAP_FLUSH, "flush"},
	{RPMA_CAP_FLUSH_ALL, "flush-all"}, {RPMA_CAP_ATOMIC_WRITE, "atomic-write"},
	{RPMA_CAP_VERIFY, "verify"},       {RPMA_CAP_QUERY, "query"},
	{RPMA_CAP_IMM, "immediate-data"},  {RPMA_CAP_ATOMICS, "atomics"},
};

void info_print_capabilities(uint32_t caps, bool json)
{
	const char *between = "";

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		if (!(caps & capabilities[i].cap))
			continue;
		printf(json ? "%s\"%s\"" : "%s%s", between, capabilities[i].name);
		between = json ? "," : ", ";
	}
	if (!json)
		puts(caps ? "" : "only those of every RDMA device");
}

static void info_print_server_text(const struct session *s, bool proved, uint32_t caps,
				   const struct hello_list *list)
{
	struct session_transport via;

	session_get_transport(s, &via);
	printf("server %s, %s\ncapabilities: ", s->server,
	       proved ? "which has proved the secret" : "without a secret");
	info_print_capabilities(caps, false);
	printf("link %s\n", via.link);
	if (via.shm)
		printf("shared memory: %s\n", via.shm);
	for (unsigned i = 0; i < list->count; i++) {
		const struct hello_entry *e = &list->entries[i];

		printf("region '%s': %s, durability %s\n", e->region, text_size(e->size).text,
		       rpma_utils_durability_2str(e->durability));
	}
}

static void info_print_server_json(const struct session *s, bool proved, uint32_t caps,
				   const struct hello_list *list)
{
	struct session_transport via;

	session_get_transport(s, &via);
	cli_json_string("{\"server\":", s->server);
	printf(",\"link\":\"%s\",\"shared_memory\":", via.link);
	cli_json_string("", via.shm ? via.shm : "");
	printf(",\"secret\":%s,\"capabilities\":[", proved ? "true" : "false");
	info_print_capabilities(caps, true);
	printf("],\"regions\":[");
	for (unsigned i = 0; i < list->count; i++) {
		const struct hello_entry *e = &list->entries[i];

		printf("%s{\"region\":", i ? "," : "");
		cli_json_string("", e->region);
		printf(",\"size\":%" PRIu64 ",\"durability\":\"%s\"}", e->size,
		       rpma_utils_durability_2str(e->durability));
	}
	puts("]}");
}

int info_server(const struct remote_opts *opts)
{
	struct hello_list list;
	struct session s;
	uint32_t caps = 0;
	int rc = client_open(&s, opts, HELLO_LIST, 2);

	if (rc)
		return rc;
	rc = client_list(&s, &list);
	if (!rc && rpma_conn_get_remote_caps(s.conn, &caps))
		rc = cli_fail(CLI_TRANSFER, "%s: its capabilities are unknown", s.server);
	if (!rc)
		(opts->json ? info_print_server_json
			    : info_print_server_text)(&s, opts->secret_file, caps, &list);
	session_close(&s);
	return rc;
}
