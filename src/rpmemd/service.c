/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

/* Returns the status for an error about a pool that another room (poolset, service) or librpma has
 * reported; WIRE_OK for ERROR_NONE. */
static enum wire_status service_status(const struct error *err)
{
	if (err->kind == ERROR_NONE)
		return WIRE_OK;
	if (err->cause == EFBIG)
		return WIRE_BADSIZE;
	/* An error without an errno must not become WIRE_OK. */
	return err->cause > 0 ? wire_status_of_errno(err->cause) : WIRE_FATAL;
}

static void service_attr_from_wire(const struct wire_attr *from, struct poolset_attr *to)
{
	memcpy(to->signature, from->signature, sizeof(to->signature));
	to->major = from->major;
	to->compat = from->compat_features;
	to->incompat = from->incompat_features;
	to->ro_compat = from->ro_compat_features;
	memcpy(to->poolset_uuid, from->poolset_uuid, sizeof(to->poolset_uuid));
	memcpy(to->uuid, from->uuid, sizeof(to->uuid));
	memcpy(to->next_uuid, from->next_uuid, sizeof(to->next_uuid));
	memcpy(to->prev_uuid, from->prev_uuid, sizeof(to->prev_uuid));
	memcpy(to->user_flags, from->user_flags, sizeof(to->user_flags));
}

static void service_attr_to_wire(const struct poolset_attr *from, struct wire_attr *to)
{
	memcpy(to->signature, from->signature, sizeof(to->signature));
	to->major = from->major;
	to->compat_features = from->compat;
	to->incompat_features = from->incompat;
	to->ro_compat_features = from->ro_compat;
	memcpy(to->poolset_uuid, from->poolset_uuid, sizeof(to->poolset_uuid));
	memcpy(to->uuid, from->uuid, sizeof(to->uuid));
	memcpy(to->next_uuid, from->next_uuid, sizeof(to->next_uuid));
	memcpy(to->prev_uuid, from->prev_uuid, sizeof(to->prev_uuid));
	memcpy(to->user_flags, from->user_flags, sizeof(to->user_flags));
}

static enum wire_status service_open_pool(struct service *s, const struct wire_pool_request *req,
					  bool create, struct wire_pool_answer *answer,
					  struct error *err)
{
	struct poolset_place place = {s->settings->poolset_dir, req->name};
	struct poolset_attr attr;
	int rc;

	if (create) {
		service_attr_from_wire(&req->attr, &attr);
		rc = poolset_create(&place, req->pool_size, req->has_attr ? &attr : NULL, &s->pool,
				    err);
	} else {
		rc = poolset_open(&place, req->pool_size, &attr, &s->pool, err);
	}
	if (rc)
		return service_status(err);
	s->created = create;
	s->size = req->pool_size;
	answer->has_headers = poolset_memory(s->pool)->has_headers;
	if (!create && answer->has_headers)
		service_attr_to_wire(&attr, &answer->attr);
	return WIRE_OK;
}

/* If the memory is volatile and the settings permit this, `warning` gets a text. */
static enum wire_status service_judge_memory(struct service *s, const char *name,
					     struct error *warning)
{
	const struct poolset_memory *memory = poolset_memory(s->pool);
	char why[256];

	if (rpma_utils_get_durability(memory->base, memory->size, &s->durability, why,
				      sizeof(why))) {
		error_set(warning, ERROR_LOCAL, EIO, "cannot find out what is behind pool %s: %s",
			  name, rpma_err_last());
		return WIRE_FATAL;
	}
	persist_init(&s->persist, memory->base, memory->size, memory->is_direct);
	if (s->durability != RPMA_DURABILITY_VOLATILE)
		return WIRE_OK;
	if (s->without_ssh && !s->settings->allow_volatile) {
		error_set(warning, ERROR_LOCAL, EMEDIUMTYPE,
			  "pool %s is in volatile memory (%s), and allow-volatile is not set", name,
			  why);
		return WIRE_PROVNOSUP;
	}
	error_set(warning, ERROR_NONE, 0,
		  "pool %s is in volatile memory (%s): nothing in it survives a restart", name,
		  why);
	LOG_WARNING("%s", warning->text);
	return WIRE_OK;
}

/* Use the words of PMDK's rpmemd, because programs look for them in the log. */
static void service_note_policy(const struct service *s, enum wire_method method)
{
	static const char *const methods[] = {
		[WIRE_METHOD_NATIVE] = "Native Flush of librpma",
		[WIRE_METHOD_APPLIANCE] = "Appliance Persistency Method",
		[WIRE_METHOD_GENERAL] = "General Purpose Server Persistency Method",
	};
	const char *flush = s->persist.is_direct ? "pmem_persist" : "pmem_msync";

	LOG_NOTICE("persistency policy:");
	LOG_NOTICE("  persist method: %s", methods[method]);
	LOG_NOTICE("  persist flush: %s", method == WIRE_METHOD_GENERAL ? flush : "none");
}

static void service_grant_lanes(const struct service *s, const struct wire_pool_request *req,
				struct wire_pool_answer *answer, struct error *warning)
{
	unsigned wanted = req->lanes < s->settings->max_lanes ? req->lanes : s->settings->max_lanes;

	answer->lanes = data_lanes_possible(wanted, (enum wire_method)answer->method);
	if (answer->lanes == wanted)
		return;
	LOG_WARNING("%u of %u lanes granted: the limit on open files allows no more (ulimit -n)",
		    answer->lanes, wanted);
	error_set(warning, ERROR_NONE, 0,
		  "%s%s%u of %u lanes granted: rpmemd's limit on open files allows no more",
		  warning->text, warning->text[0] ? "; " : "", answer->lanes, wanted);
}

static enum wire_status service_open_data(struct service *s, const struct wire_pool_request *req,
					  struct wire_pool_answer *answer, struct error *err)
{
	struct data_opts opts = {.device = &s->device,
				 .ports = s->settings->ports,
				 .key = s->lane_key,
				 .base = poolset_memory(s->pool)->base,
				 .size = s->size,
				 .nthreads = s->settings->nthreads,
				 .connect_ms = DATA_CONNECT_MS,
				 .deserted_ms = DATA_DESERTED_MS,
				 .persist = &s->persist};
	int rc = device_open(&s->device, s->addr, err);

	if (rc)
		return WIRE_PROVNOSUP;
	answer->method = (uint8_t)device_method(&s->device, s->settings, s->durability,
						(enum wire_method)req->method);
	answer->durability = (uint8_t)s->durability;
	service_note_policy(s, (enum wire_method)answer->method);
	service_grant_lanes(s, req, answer, err);
	opts.method = (enum wire_method)answer->method;
	opts.lanes = answer->lanes;
	s->watch = watch_start(s->pool);
	rc = s->watch ? data_new(&opts, &s->data, err)
		      : error_set(err, ERROR_LOCAL, ENOMEM, "not enough memory to watch the parts");
	if (!rc)
		rc = data_expect(s->data, 0, 1, &answer->port, err);
	return rc ? WIRE_FATAL_CONN : WIRE_OK;
}

/* Close the pool. If *err already has an error, that error stays the result. */
static enum wire_status service_close_pool(struct service *s, bool remove, struct error *err)
{
	struct error closed = {.kind = ERROR_NONE};

	data_delete(&s->data);
	watch_stop(s->watch);
	s->watch = NULL;
	device_close(&s->device);
	persist_fini(&s->persist);
	if (s->pool)
		(remove ? poolset_discard : poolset_close)(s->pool, &closed);
	s->pool = NULL;
	if (closed.kind)
		LOG_ERROR("%s", closed.text);
	if (closed.kind && err)
		*err = closed;
	return service_status(&closed);
}

static enum wire_status service_on_open(void *arg, const struct wire_pool_request *req, bool create,
					struct wire_pool_answer *answer, struct error *err)
{
	struct service *s = arg;
	enum wire_status status;

	if (!s->without_ssh)
		wire_random(s->lane_key.bytes, sizeof(s->lane_key.bytes));
	status = service_open_pool(s, req, create, answer, err);
	if (!status)
		status = service_judge_memory(s, req->name, err);
	if (!status)
		status = service_open_data(s, req, answer, err);
	if (status) {
		LOG_ERROR("pool %s was not %s: %s", req->name, create ? "created" : "opened",
			  err->text);
		service_close_pool(s, create, NULL);
		return status;
	}
	snprintf(answer->addr, sizeof(answer->addr), "%s", s->addr);
	if (!s->without_ssh)
		memcpy(answer->lane_key, s->lane_key.bytes, sizeof(answer->lane_key));
	LOG_NOTICE("pool %s %s: %s, durability %s, method %u, %u lanes", req->name,
		   create ? "created" : "opened", text_size(s->size).text,
		   rpma_utils_durability_2str(s->durability), answer->method, answer->lanes);
	return WIRE_OK;
}

static enum wire_status service_on_set_attr(void *arg, const struct wire_attr *attr,
					    struct error *err)
{
	struct service *s = arg;
	struct poolset_attr ours;

	if (attr)
		service_attr_from_wire(attr, &ours);
	if (poolset_set_attr(s->pool, attr ? &ours : NULL, err)) {
		LOG_ERROR("the attributes were not set: %s", err->text);
		return service_status(err);
	}
	LOG_INFO("the attributes were set");
	return WIRE_OK;
}

static enum wire_status service_on_lanes(void *arg, const struct wire_lanes *lanes, uint16_t *port,
					 struct error *err)
{
	struct service *s = arg;
	int rc = data_expect(s->data, lanes->first, lanes->count, port, err);

	if (!rc)
		return WIRE_OK;
	return rc == ERROR_ARGUMENT ? WIRE_BADNLANES : WIRE_FATAL_CONN;
}

static enum wire_status service_on_deep(void *arg, const struct wire_deep *range, struct error *err)
{
	struct service *s = arg;
	int rc = persist_deep(&s->persist, range->offset, range->length);

	if (!rc)
		return WIRE_OK;
	error_set(err, ERROR_LOCAL, -rc, "a deep flush failed, which is final for the pool: %s",
		  strerror(-rc));
	LOG_ERROR("%s", err->text);
	return WIRE_FATAL;
}

static enum wire_status service_on_close(void *arg, bool remove, struct error *err)
{
	struct service *s = arg;
	bool has_lost = !remove && watch_look(s->watch, err);
	enum wire_status status = service_close_pool(s, remove, has_lost ? NULL : err);

	LOG_NOTICE("the pool was closed%s", remove ? " and removed" : "");
	if (!has_lost)
		return status;
	LOG_ERROR("%s", err->text);
	return WIRE_FATAL;
}

static enum wire_status service_on_remove(void *arg, const struct wire_remove *what,
					  struct error *err)
{
	struct service *s = arg;
	struct poolset_place place = {s->settings->poolset_dir, what->name};
	unsigned flags = 0;

	if (what->flags & WIRE_REMOVE_FORCE)
		flags |= POOLSET_REMOVE_FORCE;
	if (what->flags & WIRE_REMOVE_POOL_SET)
		flags |= POOLSET_REMOVE_SET;
	if (poolset_remove(&place, flags, err)) {
		LOG_ERROR("pool %s was not removed: %s", what->name, err->text);
		return service_status(err);
	}
	LOG_NOTICE("pool %s was removed", what->name);
	return WIRE_OK;
}

const struct control_service service_calls = {
	.open = service_on_open,
	.set_attr = service_on_set_attr,
	.lanes = service_on_lanes,
	.deep = service_on_deep,
	.close = service_on_close,
	.remove = service_on_remove,
};

void service_end(struct service *s)
{
	bool unused = s->created && s->data && !data_was_connected(s->data);

	if (!s->pool)
		return;
	service_close_pool(s, unused, NULL);
	LOG_NOTICE("the initiator is gone; the pool was closed%s",
		   unused ? " and, as it was new and not used, removed" : "");
}
