/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h -- a complete use of librpma ("a life"), both sides in one thread, in which one call may
 * fail.
 *
 * It calls every public function that reaches the provider or allocates. A judge checks each
 * return. If a failure ends the life early, everything is still released. Each wait has a limit.
 */
#ifndef FAULT_LIFE_H
#define FAULT_LIFE_H

#include <stdbool.h>

#include "librpma.h"

enum life_verdict {
	LIFE_GO_ON,
	LIFE_AGAIN, /* make the same call once more */
	LIFE_OVER,  /* the life cannot go on: release everything */
};

struct life_judge {
	/* A public function returned. */
	enum life_verdict (*returned)(const char *function, int ret);
	/*
	 * A completion or an event reports a broken connection: is that permitted? If so, the life
	 * is over.
	 */
	void (*broke)(const char *what);
	/* An event did not come in time. */
	void (*hung)(const char *what);
};

/*
 * Before the first life, setup makes memory of a file and chooses a port. After the last life, the
 * memory and the port are given back.
 */
void life_setup(void);
void life_teardown(void);
/* Returns true if the life ran to its end. */
bool life_run(const struct life_judge *judge);

/*
 * The engine frees closed connections up to a second later, unless another event wakes the engine.
 * Here the event is a listener that is made and deleted. No request may fail meanwhile.
 */
void life_wake_engine(void);

/* Does a failed call leave its objects unchanged, so that the call can be repeated? */
bool life_can_repeat(const char *function);

#endif
