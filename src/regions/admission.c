/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether a client is admitted, and which reason the client and the server's owner get for
 * a refusal. */
#include <inttypes.h>
#include <string.h>

#include "regions/server_impl.h"

enum hello_status admission_check_request(const struct server *s,
					  const struct rpma_conn_private_data *pdata,
					  struct hello_request *req)
{
	if (!hello_request_decode(pdata, req))
		return HELLO_BAD_REQUEST;
	if (req->version != HELLO_VERSION)
		return HELLO_BAD_VERSION;
	if (req->access < HELLO_READ || req->access > HELLO_LIST)
		return HELLO_BAD_REQUEST;
	if (s->opts->secret && !req->has_secret)
		return HELLO_SECRET_NEEDED;
	if (!s->opts->secret && req->has_secret)
		return HELLO_SECRET_UNUSED;
	return s->opts->secret ? HELLO_PROVE : HELLO_OK;
}

static enum hello_status admission_find_region(struct server *s, const char *name,
					       struct region **region)
{
	if (!name[0] && s->region_count > 1)
		return HELLO_CHOOSE;
	for (unsigned i = 0; i < s->region_count; i++) {
		if (name[0] && strcmp(name, s->regions[i].name))
			continue;
		*region = &s->regions[i];
		return HELLO_OK;
	}
	if (s->region_count == 1)
		*region = &s->regions[0]; /* the answer has the name of the region */
	return HELLO_NO_REGION;
}

enum hello_status admission_check(struct server *s, const struct hello_request *req,
				  const char *addr, struct region **region)
{
	enum hello_status status;

	if (req->access == HELLO_LIST)
		return HELLO_OK;
	status = admission_find_region(s, req->region, region);
	if (status != HELLO_OK)
		return status;
	if (s->arrivals.count[ARRIVAL_ADMITTED] >= s->opts->max_clients)
		return HELLO_BUSY;
	if (clients_count_from(s, addr) >= s->opts->max_per_address)
		return HELLO_BUSY_ADDRESS;
	return req->access == HELLO_WRITE ? name_check(s, *region) : HELLO_OK;
}

void admission_note_refusal(struct server *s, enum hello_status status, const struct client *client)
{
	static const char *const reasons[HELLO_STATUS_COUNT] = {
		[HELLO_BAD_VERSION] = "uses another version of the protocol",
		[HELLO_NO_REGION] = "requests an unknown region",
		[HELLO_BUSY] = "exceeds the number of clients that may be served at a time",
		[HELLO_BAD_REQUEST] = "sends a malformed request",
		[HELLO_SECRET_NEEDED] = "offers no secret",
		[HELLO_SECRET_UNUSED] = "offers a secret, and this server has none",
		[HELLO_SECRET_WRONG] = "does not know the secret",
		[HELLO_CHOOSE] = "names no region, and the server has several",
		[HELLO_BEING_WRITTEN] = "wants to write to a range that another client writes",
		[HELLO_BUSY_ADDRESS] =
			"exceeds the number of clients that may be served from one address",
		[HELLO_FILE_REMOVED] = "wants to write to a file that was removed or renamed",
		[HELLO_FILE_REPLACED] = "wants to write to a file that was replaced",
		[HELLO_FILE_TRUNCATED] = "wants to write to a file that was truncated",
		[HELLO_FILE_UNKNOWN] = "wants to write to a file that cannot be checked",
		[HELLO_FILE_UNRECORDED] = "wants to write, but its claim cannot be recorded",
	};

	s->refused++;
	server_note_limited(s, LOG_LVL_WARNING, &s->refusals[status],
			    "refused client %" PRIu64 " from %s: it %s%s%s", client->id,
			    client->addr, reasons[status], status == HELLO_NO_REGION ? ": " : "",
			    status == HELLO_NO_REGION ? client->request.region : "");
}

void admission_make_reply(enum hello_status status, const struct region *region,
			  const struct region_export *e, struct hello_reply *reply)
{
	*reply = (struct hello_reply){.version = HELLO_VERSION, .status = (uint8_t)status};
	if (region) {
		memcpy(reply->region, region->name, strlen(region->name));
		reply->durability = (uint8_t)region->data.durability;
	}
	if (status != HELLO_OK || !e)
		return;
	reply->size = e->size;
	reply->content = region->content;
	reply->mr_len = e->desc_len;
	memcpy(reply->mr, e->desc, e->desc_len);
	reply->pcfg_len = region->pcfg_len;
	memcpy(reply->pcfg, region->pcfg, region->pcfg_len);
}
