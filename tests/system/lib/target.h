/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.h -- a target on the public API: regions, an endpoint, and any number of connections,
 * served by one thread. It accepts with the descriptors of its regions as private data, and echoes
 * every message.
 *
 * Functions return 0 or a librpma error.
 */
#ifndef SYSTEM_TARGET_H
#define SYSTEM_TARGET_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define TARGET_REGIONS_MAX 12
#define TARGET_MSG_SIZE    64
#define TARGET_DESC_SIZE   21

struct target;

struct target_watch {
	struct target *target;
	void (*ready)(struct target_watch *w);
};

struct target_region {
	uint8_t *ptr; /* NULL: unmapped */
	size_t size;
	struct rpma_mr_local *mr;       /* NULL: deregistered */
	uint8_t desc[TARGET_DESC_SIZE]; /* peers also get it after the deregistration */
};

struct target {
	struct rpma_peer *peer, *stranger; /* two protection domains */
	struct rpma_ep *ep;
	char port[8];
	int epfd;
	struct target_watch on_request;
	struct target_region region[TARGET_REGIONS_MAX];
	int n_regions;
	struct list conns;
	unsigned n_conns, n_accepted, n_lost;
	uint8_t *msgs; /* a slot for each connection's message */
	struct rpma_mr_local *msgs_mr;
	uint8_t *slot_taken;
};

int target_open(struct target *t);
void target_close(struct target *t);

/*
 * Add memory from mmap(), which the target unmaps at its end. strange: the memory is in a
 * protection domain that no connection has.
 */
int target_add(struct target *t, void *ptr, size_t size, int usage, bool strange);
int target_add_anon(struct target *t, size_t size, int usage, bool strange);
int target_add_file(struct target *t, const char *path, size_t size, int usage);

int target_dereg(struct target *t, int i);
/* Register another range in place of region i. The caller keeps the memory. */
int target_replace(struct target *t, int i, void *ptr, size_t size, int usage);

/* Serve events for that time; the target may watch another descriptor, too. */
void target_step(struct target *t, int timeout_ms);
int target_watch(struct target *t, int fd, struct target_watch *w);

#endif
