/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERSIST_HELPERS_H
#define PERSIST_HELPERS_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "softrnic/persist/persist.h"
#include "softrnic/persist/region.h"

#define PAGE ((size_t)4096)
#define MIB  ((size_t)1 << 20)

/* Make a file of that size, unlinked if name is NULL. Returns the file's descriptor. */
int file_create(const char *name, size_t size);
/* Map the file, shared and writable. */
unsigned char *map_file(int fd, size_t size);
/* Is the current directory on a file system that can persist data? */
bool here_is_persistent(void);

unsigned char *map_anonymous(size_t size);

struct persist_region *region_of(void *addr, size_t len);

/* A file with content, mapped and registered. */
struct backed {
	int fd;
	unsigned char *p;
	size_t size;
	struct persist_region *region;
};

void backed_init(struct backed *m, const char *name, size_t size);
void backed_fini(struct backed *m);

/* A job for whose end a test can wait. */
struct flush {
	struct persist_job job;
	sem_t ended;
	int status;
};

void flush_start(struct flush *f, struct persist_region *region, void *addr, size_t len);
/* Like flush_start(), by persist_submit_here(). */
void flush_start_here(struct flush *f, struct persist_region *region, void *addr, size_t len,
		      bool *here);
/* Returns the status; -ETIMEDOUT if the job does not end within that time. */
int flush_wait(struct flush *f, int timeout_ms);
/* Start a job and wait, for at most 20 seconds. */
int flush(struct persist_region *region, void *addr, size_t len);
/* Like flush_start() for a digest, which is stored at d. */
void digest_start(struct flush *f, struct persist_region *region, void *addr, size_t len,
		  uint32_t alg, struct vext_digest *d);
int digest(struct persist_region *region, void *addr, size_t len, uint32_t alg,
	   struct vext_digest *d);
/* Check that the digest is that of these bytes, by that algorithm and from that source. */
void assert_digest(const struct vext_digest *d, uint32_t alg, enum vext_digest_source source,
		   const void *bytes, size_t len);
/*
 * Skips the test under ThreadSanitizer, which confuses a thread of the child with a parent's thread
 * whose stack it uses again.
 */
void need_threads_after_fork(void);
/* Calls fork() as the engine does. */
pid_t persist_fork(void);
/*
 * Run fn in a child, with or without privileges. Returns 0, or fn's result, which may be a line
 * number. If this process has no privileges there is no difference.
 */
int in_child(int (*fn)(void *arg), void *arg, bool privileged);
/* An assertion for such a function. */
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			return __LINE__;                                                           \
	} while (0)
/* Returns the number of dirty KiB of the mapping at addr. */
long dirty_kib(const void *addr);
/* The number of this process's threads that have that name. */
int threads_named(const char *name);

/*
 * A replacement for DAX: ordinary memory in a region of class DAX. The write-back of cache lines is
 * real, only the medium is not.
 */
struct fake_dax {
	struct file file;
	struct range range;
	struct persist_region region;
};

void fake_dax_init(struct fake_dax *d, void *addr, size_t len);

#endif
