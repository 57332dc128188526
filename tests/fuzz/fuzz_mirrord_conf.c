/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any text as the file rpmirrord.conf. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirrord/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct conf conf;
	struct error err;

	conf_init(&conf);
	if (conf_parse(&conf, (const char *)data, len, "fuzz", &err) || conf_check(&conf, &err)) {
		EXPECT(err.kind == ERROR_ARGUMENT && err.text[0]);
		return 0;
	}
	EXPECT(conf.set_count <= CONF_SETS_MAX);
	for (unsigned i = 0; i < conf.set_count; i++) {
		EXPECT(conf.sets[i].data[0] == '/' && conf.sets[i].member[0]);
		EXPECT(strlen(conf.sets[i].name) <= MIRROR_SET_MAX);
	}
	return 0;
}
