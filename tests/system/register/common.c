/* SPDX-License-Identifier: BSD-3-Clause */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "unit/mirror_register/records.h"
#include "unit/mirror_register/semantics.h"

#define SETTLE_NS (60 * NSEC_PER_SEC)

void common_need_etcd(void)
{
	if (cluster_is_possible())
		return;
	printf("skipped: etcd is not installed\n");
	exit(77);
}

struct mirror_register *common_open(const struct cluster *c, const char *options, unsigned limit_ms)
{
	struct mirror_register *r;
	struct error err;
	char uri[1000];

	snprintf(uri, sizeof(uri), "%s%s", c->uri, options);
	if (register_open(uri, "orders", limit_ms, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

void common_create(const struct cluster *c, struct register_entry *now)
{
	struct mirror_register *r = common_open(c, "", LONG_MS);

	semantics_create(r, now);
	register_close(r);
}

void common_swap(struct mirror_register *r, struct register_entry *now,
		 const struct mirror_record *next)
{
	uint64_t end = clock_now_ns() + SETTLE_NS;
	struct register_entry after;
	enum register_result result;
	struct error err = {0};

	do {
		result = register_swap(r, now, next, NULL, &after, &err);
		/* If the request was not sent or has no answer, the nonce in the record shows
		 * whether the swap took effect. */
	} while ((result == REGISTER_UNKNOWN || result == REGISTER_FAILED) && clock_now_ns() < end);
	if (result != REGISTER_DONE)
		fail_msg("%s: %s", register_result_str(result), err.text);
	*now = after;
}

void common_step(struct mirror_register *r, struct register_entry *now)
{
	struct mirror_record next = now->record;

	record_next(&next);
	common_swap(r, now, &next);
}

void common_get(struct mirror_register *r, struct register_entry *now)
{
	uint64_t end = clock_now_ns() + SETTLE_NS;
	struct error err;

	while (register_get(r, now, &err))
		if (clock_now_ns() > end)
			fail_msg("%s", err.text);
}

void common_post(struct mirror_register *r, const char *path, json_t *body)
{
	struct etcd_reply reply = {0};
	enum etcd_outcome outcome =
		etcd_call(etcd_of(r), path, body, clock_now_ns() + SETTLE_NS, &reply);

	json_decref(body);
	if (outcome != ETCD_ANSWERED)
		fail_msg("%s: %s", path, reply.text);
	json_decref(reply.json);
}
