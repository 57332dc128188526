/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env.h -- reads the environment variables of librpmem(7). RPMEM_CMD, RPMEM_MAX_NLANES,
 * RPMEM_WORK_QUEUE_SIZE and the variables of the log are read when the library is loaded, the other
 * variables at each call. A malformed number is logged and counts as not set.
 */
#ifndef RPMEM_ENV_H
#define RPMEM_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* Read RPMEM_CMD, RPMEM_MAX_NLANES, RPMEM_WORK_QUEUE_SIZE and the variables of the log. A
 * constructor calls this when the library is loaded; tests call it again. */
void env_read(void);

/* Copy the next of the commands in RPMEM_CMD, which are used in turn. Returns false if the command
 * is longer than size. */
bool env_next_command(char *buf, size_t size);
unsigned env_max_lanes(void);
unsigned env_work_queue_size(void); /* at least 2 */

const char *env_ssh(void);
bool env_sockets_allowed(void);
bool env_verbs_allowed(void);
int env_timeout_ms(void);
/* Returns the time in microseconds for which a wait spins before it sleeps. */
unsigned env_spin_us(void);
/* Write the path of the secret's file. Returns false if neither RPMEM_SECRET_FILE nor HOME is
 * set. */
bool env_secret_file(char *buf, size_t size);

#endif
