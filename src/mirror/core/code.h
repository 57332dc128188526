/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * code.h -- results of a request to the daemon: numbers of REQUESTS.md, and exit codes of the tool,
 * which scripts rely on. 0, 1 and 2 are as in every program here: done, failed, wrong usage.
 */
#ifndef MIRROR_CORE_CODE_H
#define MIRROR_CORE_CODE_H

enum code {
	CODE_DONE,
	CODE_CONFIG,
	CODE_USAGE,
	CODE_UNREACHABLE,
	CODE_QUORUM,
	CODE_NOT_INSYNC,
	CODE_EPOCH,
	CODE_SPLIT,
	CODE_TIMEOUT,
	CODE_IO,
	CODE_BUSY,
	CODE_END
};

/* "not-in-sync" */
const char *code_2str(enum code code);
/* The code of that name, which a daemon's answer has; CODE_END: there is none. */
enum code code_of_name(const char *name);

#endif
