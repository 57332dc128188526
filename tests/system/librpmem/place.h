/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h -- a target on this machine for tests of librpmem: a folder with pool sets, rpmemd
 * started by a replacement for ssh, and a local pool.
 *
 * PLACE_OPTIONS are more options of rpmemd; tests that run at the same time differ in
 * PLACE_VARIANT. Everything lies in a folder of its own below the working directory, which is on a
 * real file system, so pools are of class "file".
 */
#ifndef LIBRPMEM_TEST_PLACE_H
#define LIBRPMEM_TEST_PLACE_H

#include <librpmem.h>
#include <sys/types.h>

#include "system/lib/check.h"

#define PLACE_POOL (8 * MIB)

/*
 * Call this first in main(). The call sets the environment; the library reads the environment when
 * it is loaded, so the program is executed once more. Ends the process with SKIPPED if that is
 * impossible.
 */
void place_main(char **argv);

/* Call this for each test: it makes "pool.set" with one part of PLACE_POOL, and the local pool. */
int place_setup(void **state);
int place_teardown(void **state);
/* The same with a pool: created on this machine before the test, and closed after the test. */
extern RPMEMpool *place_pool;
int place_setup_pool(void **state);
int place_teardown_pool(void **state);

extern char place_dir[512]; /* absolute; the folder "pools" in it has the pool sets */
extern unsigned char *place_local;

/* Add a pool set with one part; options as the file spells them ("" or "OPTION NOHDRS\n"). */
void place_add_set(const char *name, const char *options, size_t size);
/* The path of a file among the pool sets; static. */
const char *place_path(const char *name);
/* Map the content of a pool set's part for reading. */
const unsigned char *place_map(const char *name, size_t *size);

/* Expect a line with this text in the log. */
void place_expect_log(const char *words);
/* Run a shell script with these lines instead of ssh; NULL: the replacement for ssh again. */
void place_use_ssh(const char *lines);

/* The process number of the last started daemon, once that number exists. */
pid_t place_daemon(void);
/* Returns this process's only child, which runs as ssh. */
pid_t place_child(void);
/* Wait until the process is gone, or is not a child any more. */
void place_wait_gone(pid_t pid);

extern const struct rpmem_pool_attr place_attr;
/* These calls must succeed. Lanes: 8. */
RPMEMpool *place_create(const char *target);
RPMEMpool *place_open(const char *target);
/* Must return 0; the message has the library's text. */
#define RPMEM_OK(call)                                                                             \
	do {                                                                                       \
		if (call)                                                                          \
			fail_msg("%s: %s", #call, rpmem_errormsg());                               \
	} while (0)
/* The call must return -1 with that errno. */
#define RPMEM_FAILS(call, error)                                                                   \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_int_equal(call, -1);                                                        \
		if (errno != (error))                                                              \
			fail_msg("%s: errno %d, not %d: %s", #call, errno, error,                  \
				 rpmem_errormsg());                                                \
	} while (0)

#endif
