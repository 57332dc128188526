/* SPDX-License-Identifier: BSD-3-Clause */
/* code.h -- results of a request to the daemon: numbers of REQUESTS.md, and exit codes of the
 * tool, which scripts rely on. */
#ifndef MIRROR_CORE_CODE_H
#define MIRROR_CORE_CODE_H

enum code {
	CODE_DONE,
	CODE_USAGE,
	CODE_CONFIG,
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

#endif
