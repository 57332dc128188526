/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.h -- a target on the public API: it has regions, an endpoint, and any number of
 * connections, which one thread serves. When it accepts a connection, it sends the descriptors of
 * its regions as private data. It echoes every message.
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
	uint8_t *ptr; /* NULL: the target has unmapped it */
	size_t size;
	struct rpma_mr_local *mr;       /* NULL: the region is deregistered */
	uint8_t desc[TARGET_DESC_SIZE]; /* descriptor; peers get it even after the deregistration */
};

struct target {
	struct rpma_peer *peer, *stranger; /* peers of two protection domains */
	struct rpma_ep *ep;
	char port[8];
	int epfd;
	struct target_watch on_request;
	struct target_region region[TARGET_REGIONS_MAX];
	int n_regions;
	struct list conns;
	unsigned n_conns, n_accepted, n_lost;
	uint8_t *msgs; /* a slot for the message of each connection */
	struct rpma_mr_local *msgs_mr;
	uint8_t *slot_taken;
};

int target_open(struct target *t);
void target_close(struct target *t);

/* Add memory that mmap() returned, which the target unmaps at its end. If `strange`, register it in
 * a protection domain that no connection uses. */
int target_add(struct target *t, void *ptr, size_t size, int usage, bool strange);
int target_add_anon(struct target *t, size_t size, int usage, bool strange);
int target_add_file(struct target *t, const char *path, size_t size, int usage);

int target_dereg(struct target *t, int i);
/* Register other memory as region i. The caller keeps the memory. */
int target_replace(struct target *t, int i, void *ptr, size_t size, int usage);

/* target_step() handles events for this time. target_watch() adds another descriptor to these
 * events. */
void target_step(struct target *t, int timeout_ms);
int target_watch(struct target *t, int fd, struct target_watch *w);

#endif
