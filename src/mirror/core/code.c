/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/code.h"

#include <string.h>

static const char *const code_names[] = {
	[CODE_DONE] = "done",       [CODE_CONFIG] = "config",
	[CODE_USAGE] = "usage",     [CODE_UNREACHABLE] = "unreachable",
	[CODE_QUORUM] = "quorum",   [CODE_NOT_INSYNC] = "not-in-sync",
	[CODE_EPOCH] = "epoch",     [CODE_SPLIT] = "split",
	[CODE_TIMEOUT] = "timeout", [CODE_IO] = "io",
	[CODE_BUSY] = "busy",
};

const char *code_2str(enum code code)
{
	return code_names[code];
}

enum code code_of_name(const char *name)
{
	enum code code = CODE_DONE;

	while (code < CODE_END && strcmp(code_names[code], name) != 0)
		code++;
	return code;
}
