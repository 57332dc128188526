/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * code.h -- results of a request to the daemon: the numbers in REQUESTS.md and the exit codes of
 * the tool. Scripts rely on these numbers. 0, 1 and 2 mean the same as in every program of this
 * project: done, failed, wrong usage.
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

/* Returns the code's name, for instance "not-in-sync". */
const char *code_2str(enum code code);
/* Returns the code with this name, which a daemon has sent, or CODE_END. */
enum code code_of_name(const char *name);

#endif
