/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/code.h"

const char *code_2str(enum code code)
{
	static const char *const names[] = {
		[CODE_DONE] = "done",       [CODE_USAGE] = "usage",
		[CODE_CONFIG] = "config",   [CODE_UNREACHABLE] = "unreachable",
		[CODE_QUORUM] = "quorum",   [CODE_NOT_INSYNC] = "not-in-sync",
		[CODE_EPOCH] = "epoch",     [CODE_SPLIT] = "split",
		[CODE_TIMEOUT] = "timeout", [CODE_IO] = "io",
		[CODE_BUSY] = "busy",
	};

	return names[code];
}
