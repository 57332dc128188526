/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h -- what an initiator may ask for, and when: one pool, opened or created once, then
 * attributes, lanes and deep flushes of it until it is closed.
 *
 * Pure but for the service that it calls: a frame goes in, an answer comes out.
 */
#ifndef RPMEMD_CONTROL_H
#define RPMEMD_CONTROL_H

#include "base/error.h"
#include "rpmem/wire/frame.h"

/* What is done for the initiator. Each call returns WIRE_OK or the code of its failure, with the
 * cause and the words in *err. Arguments are checked: of a pool that is open, and within it. */
struct control_service {
	/* *answer is zeroed but for what control.c sets;
	 * words in err with WIRE_OK are a warning. */
	enum wire_status (*open)(void *arg, const struct wire_pool_request *req, bool create,
				 struct wire_pool_answer *answer, struct error *err);
	/* attr NULL: for a pool without headers */
	enum wire_status (*set_attr)(void *arg, const struct wire_attr *attr, struct error *err);
	enum wire_status (*lanes)(void *arg, const struct wire_lanes *lanes, uint16_t *port,
				  struct error *err);
	enum wire_status (*deep)(void *arg, const struct wire_deep *range, struct error *err);
	/* The pool is closed also on failure. */
	enum wire_status (*close)(void *arg, bool remove, struct error *err);
	enum wire_status (*remove)(void *arg, const struct wire_remove *what, struct error *err);
};

struct control {
	const struct control_service *service;
	void *arg;
	bool asked;   /* for a pool; there is no second one */
	bool is_open; /* the pool */
	bool is_over; /* CLOSE was answered */
	bool created;
	uint64_t size;
	uint32_t lanes;
};

void control_init(struct control *c, const struct control_service *service, void *arg);
/* False: not a request; the session is to end without an answer. */
bool control_on_frame(struct control *c, const struct wire_frame *frame,
		      struct wire_answer *answer);

#endif
