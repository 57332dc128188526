/* SPDX-License-Identifier: BSD-3-Clause */
/* ours -- measures librpma over softrnic. See README.md. */
#include "ours_impl.h"

#include <stdlib.h>

#include "lib/die.h"

static const struct {
	const char *work;
	void (*run)(const struct bench_case *c);
} works[] = {
	{"write_flush", ours_onesided},  {"write", ours_onesided}, {"read", ours_onesided},
	{"atomic_write", ours_onesided}, {"batch", ours_onesided}, {"send", ours_send},
	{"visible", ours_visible},
};

int main(int argc, char **argv)
{
	struct bench_case c;

	case_parse(&c, "ours", argc, argv);
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		if (case_is_work(&c, works[i].work)) {
			works[i].run(&c);
			return EXIT_SUCCESS;
		}
	}
	die("work=%s: there are write_flush, write, read, atomic_write, batch, send, visible",
	    c.work);
}
