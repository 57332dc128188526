/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: a session of rpmemd, as frames in any order. Each frame consists of a byte for the
 * service's result, the type, the body's length in two bytes, and the body. The service gets only
 * calls that are valid in its state, whichever calls fail.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "rpmemd/control.h"

struct shadow {
	bool asked, is_open, created;
	uint64_t size;
	uint32_t lanes;
	enum wire_status result;
};

static enum wire_status shadow_open(void *arg, const struct wire_pool_request *req, bool create,
				    struct wire_pool_answer *answer, struct error *err)
{
	struct shadow *s = arg;

	EXPECT(!s->asked && req->name[0] && strlen(req->name) <= WIRE_NAME_MAX);
	EXPECT(req->pool_size && req->lanes);
	s->asked = true;
	if (s->result)
		return s->result;
	s->is_open = true;
	s->created = create;
	s->size = req->pool_size;
	s->lanes = answer->lanes = req->lanes < 1024 ? req->lanes : 1024;
	return WIRE_OK;
}

static enum wire_status shadow_set_attr(void *arg, const struct wire_attr *attr, struct error *err)
{
	struct shadow *s = arg;

	EXPECT(s->is_open);
	return s->result;
}

static enum wire_status shadow_lanes(void *arg, const struct wire_lanes *lanes, uint16_t *port,
				     struct error *err)
{
	struct shadow *s = arg;

	EXPECT(s->is_open && lanes->count);
	EXPECT((uint64_t)lanes->first + lanes->count <= s->lanes);
	return s->result;
}

static enum wire_status shadow_deep(void *arg, const struct wire_deep *range, struct error *err)
{
	struct shadow *s = arg;

	EXPECT(s->is_open);
	EXPECT(range->offset <= s->size && range->length <= s->size - range->offset);
	return s->result;
}

static enum wire_status shadow_close(void *arg, bool remove, struct error *err)
{
	struct shadow *s = arg;

	EXPECT(s->is_open && (!remove || s->created));
	s->is_open = false;
	return s->result;
}

static enum wire_status shadow_remove(void *arg, const struct wire_remove *what, struct error *err)
{
	struct shadow *s = arg;

	EXPECT(!s->asked);
	return s->result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct control_service service = {shadow_open, shadow_set_attr, shadow_lanes,
						       shadow_deep, shadow_close,    shadow_remove};
	struct shadow shadow = {.asked = false};
	struct wire_answer answer;
	struct control control;
	uint8_t buf[WIRE_BODY_MAX];

	control_init(&control, &service, &shadow);
	while (len >= 4 && !control.is_over) {
		size_t n = (size_t)(data[2] | data[3] << 8);
		struct wire_frame frame = {.type = data[1], .body = data + 4};

		frame.len = n < len - 4 ? n : len - 4;
		shadow.result = (enum wire_status)(data[0] % WIRE_STATUS_END);
		if (!control_on_frame(&control, &frame, &answer))
			break;
		EXPECT(answer.request == frame.type && answer.status < WIRE_STATUS_END);
		EXPECT(wire_answer_encode(&answer, buf) <= sizeof(buf));
		EXPECT(control.is_open == shadow.is_open);
		data += 4 + frame.len;
		len -= 4 + frame.len;
	}
	return 0;
}
