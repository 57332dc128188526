/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/register/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "mirror/core/version.h"
#include "mirror/core/words.h"

struct value_text {
	char *text;
	size_t len;
	bool full;
};

static void __attribute__((format(printf, 2, 3)))
value_add(struct value_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->text + t->len, VALUE_MAX - t->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= VALUE_MAX - t->len)
		t->full = true;
	else
		t->len += (size_t)n;
}

/* value_check() has checked that there are no control characters. */
static void value_add_string(struct value_text *t, const char *key, const char *text)
{
	value_add(t, "\"%s\":\"", key);
	for (; *text; text++)
		value_add(t, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	value_add(t, "\"");
}

static void value_add_number(struct value_text *t, const char *key, uint64_t number)
{
	value_add(t, ",\"%s\":%" PRIu64, key, number);
}

static void value_add_bool(struct value_text *t, const char *key, bool is_true)
{
	value_add(t, ",\"%s\":%s", key, is_true ? "true" : "false");
}

static void value_add_epoch(struct value_text *t, struct mirror_epoch epoch, uint64_t seq)
{
	value_add(t, "{\"epoch\":%" PRIu64 ",\"nonce\":\"%016" PRIx64 "\",\"seq\":%" PRIu64,
		  epoch.number, epoch.nonce, seq);
}

static void value_add_members(struct value_text *t, const struct mirror_config *config)
{
	const char *comma = "";

	value_add(t, ",\"members\":[");
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct mirror_member *m = &config->members[slot];

		if (!m->id)
			continue;
		value_add(t, "%s{\"slot\":%u,\"id\":\"%016" PRIx64 "\",", comma, slot, m->id);
		value_add_string(t, "name", m->name);
		value_add(t, ",");
		value_add_string(t, "host", m->host);
		value_add_number(t, "port", m->port);
		value_add(t, ",");
		value_add_string(t, "path", m->path);
		value_add(t, "}");
		comma = ",";
	}
	value_add(t, "]");
}

static void value_add_config(struct value_text *t, const struct mirror_config *config)
{
	value_add(t, "\"config\":{");
	value_add_string(t, "set", config->set);
	value_add(t, ",\"uuid\":\"");
	for (unsigned i = 0; i < sizeof(config->uuid.bytes); i++)
		value_add(t, "%02x", config->uuid.bytes[i]);
	value_add(t, "\"");
	value_add_number(t, "number", config->number);
	value_add_number(t, "size", config->size);
	value_add(t, ",\"address\":\"%016" PRIx64 "\"", config->address);
	value_add_number(t, "min_copies", config->min_copies);
	value_add(t, ",");
	value_add_string(t, "lonely", words_lonely[config->lonely]);
	value_add_number(t, "lease_ms", config->lease_ms);
	value_add_number(t, "replica_timeout_ms", config->replica_timeout_ms);
	value_add_number(t, "slow_ms", config->slow_ms);
	value_add_number(t, "holdoff_ms", config->holdoff_ms);
	value_add_number(t, "blocked_ms", config->blocked_ms);
	value_add_bool(t, "local_error_continues", config->local_error_continues);
	value_add_members(t, config);
	value_add(t, "%s}", version_value_tail(config->format));
}

static void value_add_insync(struct value_text *t, mirror_mask insync)
{
	const char *comma = "";

	value_add(t, ",\"insync\":[");
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (!(insync & MIRROR_BIT(slot)))
			continue;
		value_add(t, "%s%u", comma, slot);
		comma = ",";
	}
	value_add(t, "]");
}

static void value_add_view(struct value_text *t, const struct mirror_view *view)
{
	value_add(t, ",\"view\":");
	value_add_epoch(t, view->epoch, view->seq);
	value_add(t, ",");
	value_add_string(t, "phase", words_phase[view->phase]);
	if (view->primary == MIRROR_NO_SLOT)
		value_add(t, ",\"primary\":null");
	else
		value_add_number(t, "primary", view->primary);
	value_add_bool(t, "clean", view->clean);
	value_add_bool(t, "forced", view->forced);
	value_add_insync(t, view->insync);
	value_add(t, "}");
}

int value_encode(const struct mirror_record *record, char *text, struct error *err)
{
	struct value_text t = {.text = text};
	int rc = value_check(record, err);

	if (rc)
		return rc;
	value_add(&t, "{\"format\":%" PRIu32 ",", record->config.format);
	value_add_config(&t, &record->config);
	value_add_view(&t, &record->view);
	value_add(&t, ",\"nonce\":\"%016" PRIx64 "\",\"history\":[", record->nonce);
	for (uint32_t i = 0; i < record->history_count; i++) {
		const struct mirror_ended *ended = &record->history[i];

		value_add(&t, "%s", i ? "," : "");
		value_add_epoch(&t, ended->epoch, ended->seq);
		if (ended->insync)
			value_add_insync(&t, ended->insync);
		value_add(&t, "}");
	}
	value_add(&t, "]}");
	if (t.full)
		return error_set(err, ERROR_ARGUMENT, EMSGSIZE,
				 "the record is longer than %u bytes", VALUE_MAX);
	return 0;
}
