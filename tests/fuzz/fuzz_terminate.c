/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any Terminate, in either layout. A decoded Terminate keeps its meaning when it is encoded
 * in the RFC's layout. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/terminate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t once[TERM_MAX_LEN], twice[TERM_MAX_LEN];
	struct terminate t, back;
	int n;

	if (terminate_decode(data, len, &t)) {
		EXPECT(len < TERM_CTRL_LEN);
		return 0;
	}
	EXPECT(term_str(terminate_error(&t)));
	EXPECT(t.has_ddp || !t.has_read_req);
	t.siw_layout = false;
	n = terminate_encode(once, sizeof(once), &t);
	EXPECT(n >= TERM_CTRL_LEN && (size_t)n <= len);
	EXPECT(terminate_decode(once, (size_t)n, &back) == 0);
	EXPECT(!back.siw_layout);
	EXPECT(terminate_error(&back) == terminate_error(&t));
	EXPECT(back.has_segment_len == t.has_segment_len && back.has_ddp == t.has_ddp);
	EXPECT(back.has_read_req == t.has_read_req);
	EXPECT(terminate_encode(twice, sizeof(twice), &back) == n);
	EXPECT(memcmp(once, twice, (size_t)n) == 0);
	return 0;
}
