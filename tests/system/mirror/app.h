/* SPDX-License-Identifier: BSD-3-Clause */
/* app.h -- declarations shared by the parts of mirror_app (app_main.c). */
#ifndef SYSTEM_MIRROR_APP_H
#define SYSTEM_MIRROR_APP_H

#include <librpmirror.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern struct rpmirror *app_set;
extern uint8_t *app_addr;
extern size_t app_len;

void app_answer(int rc);
uint64_t *app_word(uint64_t offset);

/* Commands for unreadable pages (app_pages.c). False: the line is another command. */
bool app_pages_do(const char *line);

/* Commands for descriptors that the application closes (app_files.c). False: the line is another
 * command. */
bool app_files_do(const char *line);

#endif
