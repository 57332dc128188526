/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a client is let in, and what it hears when it is not. */
#include <inttypes.h>
#include <string.h>

#include "note_limit.h"
#include "serve.h"

enum hello_status serve_judge(const struct serve *s, const struct rpma_conn_private_data *pdata,
			      struct hello_request *req)
{
	if (!hello_request_decode(pdata, req))
		return HELLO_BAD_REQUEST;
	if (req->version != HELLO_VERSION)
		return HELLO_BAD_VERSION;
	if (req->access < HELLO_READ || req->access > HELLO_LIST)
		return HELLO_BAD_REQUEST;
	if (s->has_secret && !req->has_secret)
		return HELLO_SECRET_NEEDED;
	if (!s->has_secret && req->has_secret)
		return HELLO_SECRET_UNUSED;
	return s->has_secret ? HELLO_PROVE : HELLO_OK;
}

static uint64_t count_from(const struct serve *s, const char *addr)
{
	const struct serve_client *client;
	uint64_t count = 0;

	for (client = s->first; client; client = client->next)
		count += client->state == SERVE_SERVED && !strcmp(client->addr, addr);
	return count;
}

static enum hello_status find_region(struct serve *s, const char *name,
				     struct serve_region **region)
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
		*region = &s->regions[0]; /* the answer names it */
	return HELLO_NO_REGION;
}

enum hello_status serve_judge_wish(struct serve *s, const struct hello_request *req,
				   const char *addr, struct serve_region **region)
{
	enum hello_status status;

	if (req->access == HELLO_LIST)
		return HELLO_OK;
	status = find_region(s, req->region, region);
	if (status != HELLO_OK)
		return status;
	if (s->clients >= s->opts->max_clients)
		return HELLO_BUSY;
	if (count_from(s, addr) >= s->opts->max_per_address)
		return HELLO_BUSY_ADDRESS;
	return req->access == HELLO_WRITE ? serve_name_judge(*region) : HELLO_OK;
}

void serve_log_refusal(enum hello_status status, uint64_t id, const char *addr,
		       const struct hello_request *req)
{
	static const char *const reasons[HELLO_STATUS_COUNT] = {
		[HELLO_BAD_VERSION] = "speaks another version of the protocol",
		[HELLO_NO_REGION] = "wants an unknown region",
		[HELLO_BUSY] = "is one more than --max-clients",
		[HELLO_BAD_REQUEST] = "does not greet like a client of rpma",
		[HELLO_SECRET_NEEDED] = "offers no secret",
		[HELLO_SECRET_UNUSED] = "offers a secret, and there is no --secret-file",
		[HELLO_SECRET_WRONG] = "does not know the secret",
		[HELLO_CHOOSE] = "names none of the regions",
		[HELLO_BUSY_ADDRESS] = "is one more than --max-per-address",
		[HELLO_FILE_REMOVED] = "wants to write to a file that was removed or renamed",
		[HELLO_FILE_REPLACED] = "wants to write to a file that was replaced",
		[HELLO_FILE_TRUNCATED] = "wants to write to a file that was truncated",
		[HELLO_FILE_UNKNOWN] = "wants to write to a file that cannot be looked at",
	};
	static struct note_limit limits[HELLO_STATUS_COUNT];

	note_limited(&limits[status], "refused client %" PRIu64 " from %s: it %s%s%s", id, addr,
		     reasons[status], status == HELLO_NO_REGION ? ": " : "",
		     status == HELLO_NO_REGION ? req->region : "");
}

void serve_make_reply(enum hello_status status, const struct serve_region *region,
		      const struct serve_export *e, struct hello_reply *reply)
{
	*reply = (struct hello_reply){.version = HELLO_VERSION, .status = (uint8_t)status};
	if (region) {
		memcpy(reply->region, region->name, strlen(region->name));
		reply->durability = (uint8_t)region->data.durability;
	}
	if (status != HELLO_OK || !e)
		return;
	reply->size = e->size;
	reply->mr_len = e->desc_len;
	memcpy(reply->mr, e->desc, e->desc_len);
	reply->pcfg_len = region->pcfg_len;
	memcpy(reply->pcfg, region->pcfg, region->pcfg_len);
}
