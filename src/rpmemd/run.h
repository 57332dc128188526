/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h -- runs a session over a pair of descriptors, from the greeting to its end. */
#ifndef RPMEMD_RUN_H
#define RPMEMD_RUN_H

#include "rpmemd/direct.h"
#include "rpmemd/endpoint.h"
#include "rpmemd/settings.h"

/* The exit codes are those of PMDK's rpmemd. */
enum run_exit {
	RUN_CLOSED = 0,
	RUN_ENDED = 1,      /* the session ended without a CLOSE, or did not start */
	RUN_MALFORMED = 255 /* the input is not the protocol, or the command line was wrong */
};

struct run_opts {
	const struct settings *settings;
	const struct endpoint *endpoint;
	int in, out;
	const struct direct_start
		/* result of the initiator's proof; NULL: ssh has authenticated the initiator */
		*start;
	int signal_fd; /* when readable, end the session as if the initiator had gone */
};

enum run_exit run_session(const struct run_opts *opts);
/* Instead of running a session, report that the start-up failed, for the reason in err. */
void run_report_failure(int out, const struct error *err);

#endif
