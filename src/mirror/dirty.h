/* SPDX-License-Identifier: BSD-3-Clause */
/* dirty.h -- lists the pages of an isolated mapping to which the application has ever stored. */
#ifndef MIRROR_DIRTY_H
#define MIRROR_DIRTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "librpmirror.h"

struct dirty_scan {
	int fd; /* descriptor of the process's page table */
	const uint8_t *base;
	size_t size, at; /* size of the mapping, and position of the scan in it */
	size_t page;
};

/* Begin a scan. Returns false if this process may not read its page table. */
bool dirty_begin(struct dirty_scan *scan, const uint8_t *base, size_t size);
/* Get the next runs of pages, at most `max`. Returns their number, 0 at the end, or -errno. */
int dirty_next(struct dirty_scan *scan, struct rpmirror_range *v, unsigned max);
void dirty_end(struct dirty_scan *scan);

#endif
