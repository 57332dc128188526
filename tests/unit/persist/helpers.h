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

/* Make a file of this size. If name is NULL, the file has no name. Returns its descriptor. */
int file_create(const char *name, size_t size);
/* Map the file, shared and writable. */
unsigned char *map_file(int fd, size_t size);
/* Returns true if the current directory is on a file system that can persist data. */
bool here_is_persistent(void);

unsigned char *map_anonymous(size_t size);

struct persist_region *region_of(void *addr, size_t len);

/* A file with content that is mapped and registered. */
struct backed {
	int fd;
	unsigned char *p;
	size_t size;
	struct persist_region *region;
};

void backed_init(struct backed *m, const char *name, size_t size);
void backed_fini(struct backed *m);

/* A job that a test can wait for. */
struct flush {
	struct persist_job job;
	sem_t ended;
	int status;
};

void flush_start(struct flush *f, struct persist_region *region, void *addr, size_t len);
/* Like flush_start(), but with persist_submit_here(). */
void flush_start_here(struct flush *f, struct persist_region *region, void *addr, size_t len,
		      bool *here);
/* Wait for the end of the job. Returns the job's status, or -ETIMEDOUT if the time has passed. */
int flush_wait(struct flush *f, int timeout_ms);
/* Submit a flush, and wait at most 20 seconds for it. */
int flush(struct persist_region *region, void *addr, size_t len);
/* Like flush_start() for a digest, which is stored in *d. */
void digest_start(struct flush *f, struct persist_region *region, void *addr, size_t len,
		  uint32_t alg, struct vext_digest *d);
int digest(struct persist_region *region, void *addr, size_t len, uint32_t alg,
	   struct vext_digest *d);
/* Check that the digest is the one of these bytes, with this algorithm and source. */
void assert_digest(const struct vext_digest *d, uint32_t alg, enum vext_digest_source source,
		   const void *bytes, size_t len);
/*
 * Skip the test under ThreadSanitizer: if a thread of the child reuses the stack of a parent's
 * thread, ThreadSanitizer takes the two threads for one.
 */
void need_threads_after_fork(void);
/* Call fork() as the engine does. */
pid_t persist_fork(void);
/*
 * Run fn in a child, with or without privileges. Returns 0, or fn's result, which may be a line
 * number. If this process has no privileges, the child has none in either case.
 */
int in_child(int (*fn)(void *arg), void *arg, bool privileged);
/* An assertion for a function that runs in a child. */
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			return __LINE__;                                                           \
	} while (0)
/* Returns the number of dirty KiB of the mapping at addr. */
long dirty_kib(const void *addr);
/* Returns how many threads of this process have this name. */
int threads_named(const char *name);

/*
 * Stands for DAX: ordinary memory in a region of class DAX. The cache lines are really written
 * back, but the memory is volatile.
 */
struct fake_dax {
	struct file file;
	struct range range;
	struct persist_region region;
};

void fake_dax_init(struct fake_dax *d, void *addr, size_t len);

#endif
