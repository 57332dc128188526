/* SPDX-License-Identifier: BSD-3-Clause */
/* common.h -- what the tests of the register in etcd share. */
#ifndef SYSTEM_REGISTER_COMMON_H
#define SYSTEM_REGISTER_COMMON_H

#include <stdbool.h>

#include "etcd.h"
#include "mirror/register/etcd.h"
#include "mirror/register/register.h"

/* Long: what is to succeed waits for elections on a busy machine. Short: what cannot succeed. */
#define LONG_MS  20000
#define SHORT_MS 2000

/* Ends the program as skipped where there is no etcd. */
void common_need_etcd(void);
/* For set "orders"; fails the test. options: "" or "?ca=..." */
struct mirror_register *common_open(const struct cluster *c, const char *options,
				    unsigned limit_ms);
/* The first record, however long that takes. */
void common_create(const struct cluster *c, struct register_entry *now);
/* Swaps until it is known that it happened, as a primary does; fails the test after a minute. */
void common_swap(struct mirror_register *r, struct register_entry *now,
		 const struct mirror_record *next);
/* One step of seq by common_swap(). */
void common_step(struct mirror_register *r, struct register_entry *now);
/* The record by a fresh look, again and again until there is an answer. */
void common_get(struct mirror_register *r, struct register_entry *now);
/* Any request of the gateway; the answer must come. body: an object, which is freed. */
void common_post(struct mirror_register *r, const char *path, json_t *body);

#endif
