/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h -- a target on this machine for tests of librpmem: a folder with pool sets, rpmemd
 * started by a replacement for ssh, and a local pool.
 *
 * PLACE_OPTIONS are more options of rpmemd; tests that run at the same time have different values
 * of PLACE_VARIANT. All files are in a new folder below the working directory, which is on a real
 * file system, so pools have the class "file".
 */
#ifndef LIBRPMEM_TEST_PLACE_H
#define LIBRPMEM_TEST_PLACE_H

#include <librpmem.h>
#include <sys/types.h>

#include "system/lib/check.h"

#define PLACE_POOL (8 * MIB)

/*
 * Call this first in main(). It sets environment variables and executes the program again, because
 * the library reads them when it is loaded. If that is impossible, the process exits with SKIPPED.
 */
void place_main(char **argv);

/* Set-up of each test: make "pool.set" with one part of PLACE_POOL, and the local pool. */
int place_setup(void **state);
int place_teardown(void **state);
/* Like place_setup(), and also create the pool before the test and close it after the test. */
extern RPMEMpool *place_pool;
int place_setup_pool(void **state);
int place_teardown_pool(void **state);

extern char place_dir[512]; /* absolute path; the folder "pools" in it has the pool sets */
extern unsigned char *place_local;

/* Add a pool set with one part. `options` is text of the set file: "", or for instance the line
 * "OPTION NOHDRS" with its newline. */
void place_add_set(const char *name, const char *options, size_t size);
/* Returns the path of a file among the pool sets, in a static buffer. */
const char *place_path(const char *name);
/* Map the content of a pool set's part for reading. */
const unsigned char *place_map(const char *name, size_t *size);

/* Expect a line with this text in the log. */
void place_expect_log(const char *words);
/* Run a shell script with these lines instead of ssh; NULL: run the usual replacement for ssh
 * again. */
void place_use_ssh(const char *lines);

/* Returns the process id of the daemon that was started last. Waits until the id is known. */
pid_t place_daemon(void);
/* Returns the only child of this process, which runs as ssh. */
pid_t place_child(void);
/* Wait until the process has exited, or is no longer a child of this process. */
void place_wait_gone(pid_t pid);

extern const struct rpmem_pool_attr place_attr;
/* Create or open the pool, with 8 lanes. The call must succeed. */
RPMEMpool *place_create(const char *target);
RPMEMpool *place_open(const char *target);
/* The call must return 0; a failure prints the library's text. */
#define RPMEM_OK(call)                                                                             \
	do {                                                                                       \
		if (call)                                                                          \
			fail_msg("%s: %s", #call, rpmem_errormsg());                               \
	} while (0)
/* The call must return -1 with this errno. */
#define RPMEM_FAILS(call, error)                                                                   \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_int_equal(call, -1);                                                        \
		if (errno != (error))                                                              \
			fail_msg("%s: errno %d, not %d: %s", #call, errno, error,                  \
				 rpmem_errormsg());                                                \
	} while (0)

#endif
