/* SPDX-License-Identifier: BSD-3-Clause */
/* limit -- measures the layers below librpma: sockets, memory and the disk. See README.md. */
#include "limit_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/die.h"

static const struct {
	const char *work;
	void (*run)(const struct bench_case *c);
} limits[] = {
	{"pingpong", limit_pingpong},     {"watch", limit_watch},
	{"stream", limit_stream},         {"memcpy", limit_memcpy},
	{"memcpy2", limit_memcpy2},       {"cacheline", limit_cacheline},
	{"ranges", limit_ranges},         {"disk", limit_disk},
	{"persist", limit_persist},       {"mirrored", limit_mirrored},
	{"wake_futex", limit_wake_futex}, {"wake_socket", limit_wake_socket},
};

char *limit_buffer(size_t len)
{
	char *buf = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (buf == MAP_FAILED)
		die_errno("memory");
	memset(buf, 0x5a, len);
	return buf;
}

int main(int argc, char **argv)
{
	struct bench_case c;

	case_parse(&c, "limit", argc, argv);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (case_is_work(&c, limits[i].work)) {
			limits[i].run(&c);
			return EXIT_SUCCESS;
		}
	}
	die("work=%s: there are pingpong, watch, stream, memcpy, memcpy2, cacheline, ranges, disk, "
	    "persist, mirrored, wake_futex, wake_socket",
	    c.work);
}
