/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERSIST_HELPERS_H
#define PERSIST_HELPERS_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>

#include "softrnic/persist/persist.h"

#define PAGE ((size_t)4096)
#define MIB  ((size_t)1 << 20)

/* A file of that size, already unlinked when name is NULL; its descriptor. */
int file_create(const char *name, size_t size);
/* Shared and writable. */
unsigned char *map_file(int fd, size_t size);
/* Is the current directory on a file system that can persist anything? */
bool here_is_persistent(void);

struct persist_region *region_of(void *addr, size_t len);

/* A job whose end can be waited for. */
struct flush {
	struct persist_job job;
	sem_t ended;
	int status;
};

void flush_start(struct flush *f, struct persist_region *region, void *addr, size_t len);
/* The status; -ETIMEDOUT when it does not end within that time. */
int flush_wait(struct flush *f, int timeout_ms);
/* Start and wait, for at most 20 seconds. */
int flush(struct persist_region *region, void *addr, size_t len);
/* How much of the mapping that begins at addr is dirty, in KiB. */
long dirty_kib(const void *addr);
/* Threads of this process that have that name. */
int threads_named(const char *name);

#endif
