/* SPDX-License-Identifier: BSD-3-Clause */
/* dirty.h -- which pages of an isolated mapping the application has ever stored to. */
#ifndef MIRROR_DIRTY_H
#define MIRROR_DIRTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "librpmirror.h"

struct dirty_scan {
	int fd; /* of the process's page table */
	const uint8_t *base;
	size_t size, at; /* of the mapping; the place of the scan in it */
	size_t page;
};

/* False: this process may not look. */
bool dirty_begin(struct dirty_scan *scan, const uint8_t *base, size_t size);
/* The next runs of pages, at most `max`; 0: none is left; -errno. */
int dirty_next(struct dirty_scan *scan, struct rpmirror_range *v, unsigned max);
void dirty_end(struct dirty_scan *scan);

#endif
