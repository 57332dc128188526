/* SPDX-License-Identifier: BSD-3-Clause */
/* pwrite and fdatasync of `size` bytes, each time a page or more further on in the file. */
#include <unistd.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/file.h"
#include "lib/result.h"
#include "lib/span.h"
#include "limit_impl.h"

void limit_disk(const struct bench_case *c)
{
	struct span span = span_of(c);
	struct samples *s = samples_new();
	char *buf = limit_buffer(c->size);
	int fd = file_open(c->where, span.size);
	uint64_t warm = clock_now_ns() + case_warmup_ns(c), begin = 0, then = 0, now;
	struct result r = {0};

	while (!begin || then - begin < case_ns(c)) {
		if (pwrite(fd, buf, c->size, (off_t)span_next(&span)) != (ssize_t)c->size ||
		    fdatasync(fd))
			die_errno("write the file");
		buf[0]++;
		now = clock_now_ns();
		if (begin)
			samples_add(s, now - then);
		else if (now > warm)
			begin = now;
		then = now;
	}
	close(fd);
	r.count = s->total;
	r.ns = then - begin;
	result_print(c, &r, s);
	samples_delete(s);
}
