/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/register/register.h"

#include <errno.h>
#include <string.h>

#include "base/poll.h"
#include "mirror/register/alive.h"
#include "mirror/register/backend.h"

#define REGISTER_PEEK_MS 500

#define REGISTER_ETCD "etcd://"

const char *register_next_address(const char *uri, const char **at, size_t *len)
{
	const char *found;

	if (strncmp(uri, REGISTER_ETCD, strlen(REGISTER_ETCD)) != 0)
		return NULL;
	if (*at == uri)
		*at += strlen(REGISTER_ETCD);
	*at += strspn(*at, ",");
	found = *at;
	*len = strcspn(found, ",?");
	*at += *len;
	return *len ? found : NULL;
}

int register_open(const char *uri, const char *set, unsigned limit_ms, struct mirror_register **r,
		  struct error *err)
{
	int rc;

	if (!value_is_name(set, MIRROR_SET_MAX))
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "'%.80s' cannot be a set's name: letters, digits and ._- only",
				 set);
	if (strlen(uri) > REGISTER_URI_MAX)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "the register's uri is too long");
	if (!strncmp(uri, "file:", 5))
		rc = file_register_open(uri + 5, r, err);
	else if (!strncmp(uri, REGISTER_ETCD, strlen(REGISTER_ETCD)))
		rc = etcd_register_open(uri, set, r, err);
	else
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "'%s' is no register: it is file:PATH or etcd://HOST:PORT,...",
				 uri);
	if (rc)
		return rc;
	strcpy((*r)->set, set);
	(*r)->limit_ms = limit_ms;
	return 0;
}

void register_close(struct mirror_register *r)
{
	if (r)
		r->ops->close(r);
}

static uint64_t register_deadline(const struct mirror_register *r)
{
	return clock_now_ns() + r->limit_ms * NSEC_PER_MS;
}

static int register_read_record(const struct mirror_register *r, const struct backend_value *value,
				struct register_entry *now, struct error *err)
{
	if (!value->revision) {
		error_set(err, ERROR_ARGUMENT, ENOENT, "there is no set '%s' in the register",
			  r->set);
		return -ENOENT;
	}
	if (value_decode(value->text, value->len, &now->record, err))
		return -EPROTO;
	if (strcmp(now->record.config.set, r->set) != 0) {
		error_set(err, ERROR_ARGUMENT, EPROTO,
			  "the register's record for set '%s' is that of set '%s'", r->set,
			  now->record.config.set);
		return -EPROTO;
	}
	now->revision = value->revision;
	return 0;
}

int register_get(struct mirror_register *r, struct register_entry *now, struct error *err)
{
	int rc = r->ops->read(r, register_deadline(r), BACKEND_OF_ALL, &r->now, err);

	return rc ? rc : register_read_record(r, &r->now.key[BACKEND_RECORD], now, err);
}

/* Put the text of a record into an expected or a new value. */
static int register_set_record(struct backend_value *value, const struct mirror_record *record,
			       uint64_t revision, struct error *err)
{
	if (value_encode(record, value->text, err))
		return -EINVAL;
	value->len = strlen(value->text);
	value->revision = revision;
	return 0;
}

static void register_set_alive(struct backend_value *value, const struct register_alive *alive)
{
	value->revision = alive->is_set ? alive->revision : 0;
	alive_encode(alive->epoch, alive->counter, value->text);
	value->len = strlen(value->text);
}

/*
 * Send a change. If its comparison fails, find out whether the change was made nevertheless: a
 * request without an answer is sent again, by this file or by etcd_http.c, and may then find the
 * value that it wrote before. The value's nonce proves that this handle wrote it.
 */
static enum register_result register_send(struct mirror_register *r, const struct backend_txn *txn,
					  enum backend_key key, uint64_t *revision,
					  struct error *err)
{
	enum register_result result =
		r->ops->txn(r, register_deadline(r), txn, revision, &r->now, err);
	const struct backend_value *now = &r->now.key[key];

	if (result == REGISTER_CHANGED && txn->change[key] == BACKEND_PUT && now->revision &&
	    now->len == strlen(txn->put[key]) && !memcmp(now->text, txn->put[key], now->len)) {
		*revision = now->revision;
		return REGISTER_DONE;
	}
	return result;
}

/* The common part of swap and create. If the comparison fails and the present value is absent or
 * is no record, *now has revision 0. */
static enum register_result register_put_record(struct mirror_register *r,
						const struct backend_txn *txn,
						const struct mirror_record *next,
						struct register_entry *now, struct error *err)
{
	uint64_t revision = 0;
	enum register_result result = register_send(r, txn, BACKEND_RECORD, &revision, err);

	if (result == REGISTER_DONE) {
		if (&now->record != next)
			now->record = *next;
		now->revision = revision;
	} else if (result == REGISTER_CHANGED &&
		   register_read_record(r, &r->now.key[BACKEND_RECORD], now, err)) {
		now->revision = 0;
	}
	return result;
}

enum register_result register_swap(struct mirror_register *r, const struct register_entry *expected,
				   const struct mirror_record *next,
				   const struct register_alive *promotion,
				   struct register_entry *now, struct error *err)
{
	struct backend_value *record = &r->expect[BACKEND_RECORD];
	struct backend_value *put = &r->put[BACKEND_RECORD];
	struct backend_txn txn = {.expect = {[BACKEND_RECORD] = record},
				  .change = {[BACKEND_RECORD] = BACKEND_PUT},
				  .put = {[BACKEND_RECORD] = put->text}};

	if (register_set_record(record, &expected->record, expected->revision, err) ||
	    register_set_record(put, next, 0, err))
		return REGISTER_FAILED;
	if (promotion) {
		register_set_alive(&r->expect[BACKEND_ALIVE], promotion);
		alive_encode(next->view.epoch, 0, r->put[BACKEND_ALIVE].text);
		txn.expect[BACKEND_ALIVE] = &r->expect[BACKEND_ALIVE];
		txn.change[BACKEND_ALIVE] = BACKEND_PUT;
		txn.put[BACKEND_ALIVE] = r->put[BACKEND_ALIVE].text;
	}
	return register_put_record(r, &txn, next, now, err);
}

enum register_result register_create(struct mirror_register *r, const struct mirror_record *first,
				     struct register_entry *now, struct error *err)
{
	struct backend_value *put = &r->put[BACKEND_RECORD];
	struct backend_txn txn = {
		.expect = {[BACKEND_RECORD] = &r->expect[BACKEND_RECORD]},
		.change = {[BACKEND_RECORD] = BACKEND_PUT, [BACKEND_ALIVE] = BACKEND_DELETE},
		.put = {[BACKEND_RECORD] = put->text}};

	r->expect[BACKEND_RECORD].revision = 0;
	if (register_set_record(put, first, 0, err))
		return REGISTER_FAILED;
	return register_put_record(r, &txn, first, now, err);
}

enum register_result register_delete(struct mirror_register *r,
				     const struct register_entry *expected, struct error *err)
{
	struct backend_value *record = &r->expect[BACKEND_RECORD];
	struct backend_txn txn = {.expect = {[BACKEND_RECORD] = record},
				  .change = {BACKEND_DELETE, BACKEND_DELETE}};
	enum register_result result;
	uint64_t revision;

	if (register_set_record(record, &expected->record, expected->revision, err))
		return REGISTER_FAILED;
	result = register_send(r, &txn, BACKEND_RECORD, &revision, err);
	if (result == REGISTER_CHANGED && !r->now.key[BACKEND_RECORD].revision)
		return REGISTER_DONE;
	return result;
}

static int register_read_alive(const struct mirror_register *r, struct register_alive *now,
			       struct error *err)
{
	const struct backend_value *value = &r->now.key[BACKEND_ALIVE];

	*now = (struct register_alive){.is_set = value->revision != 0, .revision = value->revision};
	if (!now->is_set || !alive_decode(value->text, value->len, &now->epoch, &now->counter))
		return 0;
	error_set(err, ERROR_ARGUMENT, EPROTO,
		  "the alive key of set '%s' is not what rpmirror writes", r->set);
	return -EPROTO;
}

int register_alive_get(struct mirror_register *r, struct register_alive *now, struct error *err)
{
	int rc = r->ops->read(r, register_deadline(r), BACKEND_OF_ALL, &r->now, err);

	return rc ? rc : register_read_alive(r, now, err);
}

int register_alive_peek(struct mirror_register *r, struct register_alive *now, struct error *err)
{
	unsigned ms = r->limit_ms < REGISTER_PEEK_MS ? r->limit_ms : REGISTER_PEEK_MS;
	int rc = r->ops->read(r, clock_now_ns() + ms * NSEC_PER_MS, BACKEND_OF_ONE, &r->now, err);

	return rc ? rc : register_read_alive(r, now, err);
}

static bool register_alive_is_of(const struct register_alive *alive, struct mirror_epoch epoch)
{
	return alive->is_set && mirror_epoch_is_equal(alive->epoch, epoch);
}

/* Renew the alive key. Only one daemon writes for an epoch. So a key with the epoch's nonce was
 * written by this daemon, perhaps by a renewal that seemed lost. The renewal then continues once
 * from that counter. */
static enum register_result register_alive_renew(struct mirror_register *r,
						 struct mirror_epoch epoch,
						 struct register_alive *now, struct error *err)
{
	struct backend_txn txn = {.expect = {[BACKEND_ALIVE] = &r->expect[BACKEND_ALIVE]},
				  .change = {[BACKEND_ALIVE] = BACKEND_PUT},
				  .put = {[BACKEND_ALIVE] = r->put[BACKEND_ALIVE].text}};
	enum register_result result;
	uint64_t revision = 0;

	register_set_alive(&r->expect[BACKEND_ALIVE], now);
	alive_encode(epoch, now->counter + 1, r->put[BACKEND_ALIVE].text);
	result = register_send(r, &txn, BACKEND_ALIVE, &revision, err);
	if (result == REGISTER_DONE) {
		now->revision = revision;
		now->counter++;
	} else if (result == REGISTER_CHANGED && register_read_alive(r, now, err)) {
		return REGISTER_FAILED;
	}
	return result;
}

enum register_result register_alive_put(struct mirror_register *r, struct mirror_epoch epoch,
					struct register_alive *now, struct error *err)
{
	enum register_result result;

	if (!now->is_set && register_alive_get(r, now, err))
		return REGISTER_UNKNOWN;
	if (!register_alive_is_of(now, epoch))
		return REGISTER_CHANGED;
	result = register_alive_renew(r, epoch, now, err);
	if (result == REGISTER_CHANGED && register_alive_is_of(now, epoch))
		result = register_alive_renew(r, epoch, now, err);
	return result;
}

enum register_result register_alive_clear(struct mirror_register *r, struct mirror_epoch epoch,
					  struct error *err)
{
	struct backend_txn txn = {.expect = {[BACKEND_ALIVE] = &r->expect[BACKEND_ALIVE]},
				  .change = {[BACKEND_ALIVE] = BACKEND_DELETE}};
	struct register_alive now;
	enum register_result result;
	uint64_t revision;

	if (register_alive_get(r, &now, err))
		return REGISTER_UNKNOWN;
	/* Try twice, because a renewal of this epoch may have come between the read and the
	 * change. */
	for (int attempt = 0; attempt < 2; attempt++) {
		if (!now.is_set)
			return REGISTER_DONE;
		if (!register_alive_is_of(&now, epoch))
			return REGISTER_CHANGED;
		register_set_alive(&r->expect[BACKEND_ALIVE], &now);
		result = register_send(r, &txn, BACKEND_ALIVE, &revision, err);
		if (result != REGISTER_CHANGED)
			return result;
		if (register_read_alive(r, &now, err))
			return REGISTER_FAILED;
	}
	return now.is_set ? REGISTER_CHANGED : REGISTER_DONE;
}

bool register_watch(struct mirror_register *r, uint64_t revision, unsigned timeout_ms, int wake_fd)
{
	return r->ops->watch(r, revision, timeout_ms, wake_fd);
}

void register_health(struct mirror_register *r, struct register_health *health)
{
	*health = (struct register_health){0};
	r->ops->health(r, health);
}

const char *register_result_str(enum register_result result)
{
	static const char *const names[] = {"done", "changed", "unknown", "failed"};

	return names[result];
}
