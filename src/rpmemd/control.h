/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h -- handles an initiator's requests in their order: the first request opens or creates a
 * pool, and there is only one such request. The other requests concern attributes, lanes and deep
 * flushes of that pool, until the pool is closed.
 *
 * Pure, except for the service that it calls: the caller passes a frame and gets an answer.
 */
#ifndef RPMEMD_CONTROL_H
#define RPMEMD_CONTROL_H

#include "base/error.h"
#include "rpmem/wire/frame.h"

/*
 * The functions that do the work for the initiator. Each returns WIRE_OK, or the code of its
 * failure with the cause and the text in *err. The caller has checked the arguments: the pool is
 * open, and a range is within the pool.
 */
struct control_service {
	/*
	 * *answer is zero except for members that control.c sets. With WIRE_OK a text in err is a
	 * warning.
	 */
	enum wire_status (*open)(void *arg, const struct wire_pool_request *req, bool create,
				 struct wire_pool_answer *answer, struct error *err);
	/* attr NULL: the pool has no headers. */
	enum wire_status (*set_attr)(void *arg, const struct wire_attr *attr, struct error *err);
	enum wire_status (*lanes)(void *arg, const struct wire_lanes *lanes, uint16_t *port,
				  struct error *err);
	enum wire_status (*deep)(void *arg, const struct wire_deep *range, struct error *err);
	/* After the call the pool is closed, even if the call failed. */
	enum wire_status (*close)(void *arg, bool remove, struct error *err);
	enum wire_status (*remove)(void *arg, const struct wire_remove *what, struct error *err);
};

struct control {
	const struct control_service *service;
	void *arg;
	bool asked;   /* a pool was already requested; another request for a pool is refused */
	bool is_open; /* the pool is open */
	bool is_over; /* CLOSE was answered */
	bool created;
	uint64_t size;
	uint32_t lanes;
};

void control_init(struct control *c, const struct control_service *service, void *arg);
/* Returns false if the frame is not a request; the session then ends without an answer. */
bool control_on_frame(struct control *c, const struct wire_frame *frame,
		      struct wire_answer *answer);

#endif
