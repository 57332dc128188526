/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: the text of a pool set file. An accepted text obeys the rules of the format. */
#include "fuzz/fuzz.h"

#include <limits.h>
#include <string.h>

#include "poolset/settext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct settext set;
	struct error err = {0};

	if (settext_parse(&set, "fuzz", (const char *)data, len, &err)) {
		EXPECT(err.kind == ERROR_LOCAL && !strncmp(err.text, "fuzz:", 5));
	} else {
		EXPECT(set.nparts > 0 && set.nparts <= SETTEXT_PARTS_MAX);
		EXPECT(set.nreplicas > set.nremotes);
		EXPECT((set.nreplicas > 1) == (set.replica_line > 0));
		for (unsigned i = 0; i < set.nparts; i++) {
			EXPECT(set.parts[i].path[0] == '/' && strlen(set.parts[i].path) < PATH_MAX);
			EXPECT(set.parts[i].replica < set.nreplicas && set.parts[i].line > 1);
		}
	}
	settext_fini(&set);
	return 0;
}
