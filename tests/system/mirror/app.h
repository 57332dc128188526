/* SPDX-License-Identifier: BSD-3-Clause */
/* app.h -- declarations that the parts of mirror_app share (app_main.c describes the program). */
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

/* Execute a command about unreadable pages (app_pages.c). Returns false if the line is another
 * command. */
bool app_pages_do(const char *line);

/* Execute a command about descriptors that the application closes (app_files.c). Returns false if
 * the line is another command. */
bool app_files_do(const char *line);

#endif
