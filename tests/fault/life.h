/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h -- a complete use of librpma ("a life"), both sides in one thread, in which one call can
 * fail.
 *
 * A life calls every public function that reaches the provider or allocates. A judge checks the
 * result of each call. If a failure ends the life early, all objects are still released. Each wait
 * has a limit.
 */
#ifndef FAULT_LIFE_H
#define FAULT_LIFE_H

#include <stdbool.h>

#include "librpma.h"

enum life_verdict {
	LIFE_GO_ON,
	LIFE_AGAIN, /* make the same call again */
	LIFE_OVER,  /* the life cannot continue: release all objects */
};

struct life_judge {
	/* Called with the result of a public function. */
	enum life_verdict (*returned)(const char *function, int ret);
	/* Called when a completion or an event reports a broken connection. The judge fails the
	 * test if no injected failure can be the cause. The life is then over. */
	void (*broke)(const char *what);
	/* Called when an event did not arrive in time. */
	void (*hung)(const char *what);
};

/* life_setup() maps the memory, if possible of a file, and chooses a port before the first life;
 * life_teardown() releases both after the last one. */
void life_setup(void);
void life_teardown(void);
/* Returns true if the life ran to its end. */
bool life_run(const struct life_judge *judge);

/*
 * Make and delete a listener. This wakes the engine, which then frees closed connections. Without
 * an event it frees them up to a second later. No request must be armed to fail during this call.
 */
void life_wake_engine(void);

/* Returns true if a failed call of this function leaves its objects unchanged, so that the caller
 * can repeat the call. */
bool life_can_repeat(const char *function);

#endif
