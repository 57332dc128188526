/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/control.h"

#include <errno.h>
#include <stdio.h>

void control_init(struct control *c, const struct control_service *service, void *arg)
{
	*c = (struct control){.service = service, .arg = arg};
}

static enum wire_status control_no_pool(struct error *err)
{
	error_set(err, ERROR_ARGUMENT, EINVAL, "no pool is open in this session");
	return WIRE_FATAL;
}

static enum wire_status control_check_request(const struct control *c,
					      const struct wire_pool_request *req,
					      struct error *err)
{
	if (c->asked) {
		error_set(err, ERROR_ARGUMENT, EBUSY, "a session serves one pool only");
		return WIRE_FATAL;
	}
	if (!req->name[0]) {
		error_set(err, ERROR_ARGUMENT, EINVAL, "the name of the pool set is empty");
		return WIRE_BADNAME;
	}
	if (!req->pool_size) {
		error_set(err, ERROR_ARGUMENT, EINVAL, "a pool of 0 bytes is asked for");
		return WIRE_BADSIZE;
	}
	if (!req->lanes) {
		error_set(err, ERROR_ARGUMENT, EINVAL, "0 lanes are asked for");
		return WIRE_BADNLANES;
	}
	return WIRE_OK;
}

static bool control_open(struct control *c, const struct wire_frame *frame,
			 struct wire_answer *answer, struct error *err)
{
	bool create = frame->type == WIRE_CREATE;
	struct wire_pool_request req;

	if (!wire_pool_request_decode(frame->body, frame->len, &req))
		return false;
	answer->status = (uint8_t)control_check_request(c, &req, err);
	if (answer->status)
		return true;
	c->asked = true;
	answer->status = (uint8_t)c->service->open(c->arg, &req, create, &answer->pool, err);
	if (answer->status)
		return true;
	c->is_open = true;
	c->created = create;
	c->size = req.pool_size;
	c->lanes = answer->pool.lanes;
	return true;
}

static bool control_set_attr(struct control *c, const struct wire_frame *frame,
			     struct wire_answer *answer, struct error *err)
{
	struct wire_set_attr m;

	if (!wire_set_attr_decode(frame->body, frame->len, &m))
		return false;
	answer->status =
		(uint8_t)(c->is_open
				  ? c->service->set_attr(c->arg, m.has_attr ? &m.attr : NULL, err)
				  : control_no_pool(err));
	return true;
}

static bool control_lanes(struct control *c, const struct wire_frame *frame,
			  struct wire_answer *answer, struct error *err)
{
	struct wire_lanes m;

	if (!wire_lanes_decode(frame->body, frame->len, &m))
		return false;
	if (!c->is_open) {
		answer->status = (uint8_t)control_no_pool(err);
	} else if (!m.count || m.first >= c->lanes || m.count > c->lanes - m.first) {
		error_set(err, ERROR_ARGUMENT, EINVAL,
			  "%u lanes from %u on are not among the %u granted", m.count, m.first,
			  c->lanes);
		answer->status = WIRE_BADNLANES;
	} else {
		answer->status = (uint8_t)c->service->lanes(c->arg, &m, &answer->lanes.port, err);
	}
	return true;
}

static bool control_deep(struct control *c, const struct wire_frame *frame,
			 struct wire_answer *answer, struct error *err)
{
	struct wire_deep m;

	if (!wire_deep_decode(frame->body, frame->len, &m))
		return false;
	if (!c->is_open) {
		answer->status = (uint8_t)control_no_pool(err);
	} else if (m.offset > c->size || m.length > c->size - m.offset) {
		error_set(err, ERROR_ARGUMENT, EINVAL, "the range is not within the pool");
		answer->status = WIRE_BADSIZE;
	} else {
		answer->status = (uint8_t)c->service->deep(c->arg, &m, err);
	}
	return true;
}

static bool control_close(struct control *c, const struct wire_frame *frame,
			  struct wire_answer *answer, struct error *err)
{
	struct wire_close m;
	bool remove;

	if (!wire_close_decode(frame->body, frame->len, &m) || c->is_over)
		return false;
	remove = m.flags & WIRE_CLOSE_REMOVE;
	if (remove && c->is_open && !c->created) {
		error_set(err, ERROR_ARGUMENT, EINVAL, "this session did not create the pool");
		answer->status = WIRE_FATAL;
		return true;
	}
	if (c->is_open)
		answer->status = (uint8_t)c->service->close(c->arg, remove, err);
	c->is_open = false;
	c->asked = c->is_over = true;
	return true;
}

static bool control_remove(struct control *c, const struct wire_frame *frame,
			   struct wire_answer *answer, struct error *err)
{
	struct wire_remove m;

	if (!wire_remove_decode(frame->body, frame->len, &m))
		return false;
	if (c->asked) {
		error_set(err, ERROR_ARGUMENT, EBUSY, "this session is for another pool");
		answer->status = WIRE_FATAL;
	} else {
		answer->status = (uint8_t)c->service->remove(c->arg, &m, err);
	}
	return true;
}

bool control_on_frame(struct control *c, const struct wire_frame *frame, struct wire_answer *answer)
{
	static bool (*const handlers[WIRE_TYPE_END])(struct control *, const struct wire_frame *,
						     struct wire_answer *, struct error *) = {
		[WIRE_CREATE] = control_open,       [WIRE_OPEN] = control_open,
		[WIRE_SET_ATTR] = control_set_attr, [WIRE_LANES] = control_lanes,
		[WIRE_DEEP] = control_deep,         [WIRE_CLOSE] = control_close,
		[WIRE_REMOVE] = control_remove,
	};
	struct error err = {.kind = ERROR_NONE};

	*answer = (struct wire_answer){.request = frame->type, .status = WIRE_OK};
	if (frame->type >= WIRE_TYPE_END || !handlers[frame->type])
		return false;
	if (!handlers[frame->type](c, frame, answer, &err))
		return false;
	/* A result of librpma is negative, and not an errno. */
	answer->error = err.cause > 0 ? (uint32_t)err.cause : 0;
	snprintf(answer->text, sizeof(answer->text), "%s", err.text);
	return true;
}
