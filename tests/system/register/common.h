/* SPDX-License-Identifier: BSD-3-Clause */
/* common.h -- functions shared by the tests of the register in etcd. */
#ifndef SYSTEM_REGISTER_COMMON_H
#define SYSTEM_REGISTER_COMMON_H

#include <stdbool.h>

#include "etcd.h"
#include "mirror/register/etcd.h"
#include "mirror/register/register.h"

/*
 * Long: for calls that must succeed, and may wait for elections on a busy machine. Short: for calls
 * that cannot succeed.
 */
#define LONG_MS  20000
#define SHORT_MS 2000

/* Ends the program as skipped if etcd is not installed. */
void common_need_etcd(void);
/* Open the register of the set "orders"; on failure the test fails. options: "" or "?ca=..." */
struct mirror_register *common_open(const struct cluster *c, const char *options,
				    unsigned limit_ms);
/* Create the first record, however long that takes. */
void common_create(const struct cluster *c, struct register_entry *now);
/*
 * Repeat a swap, as a primary does, until the register shows that it happened. Fails the test after
 * a minute.
 */
void common_swap(struct mirror_register *r, struct register_entry *now,
		 const struct mirror_record *next);
/* Advance seq by one step with common_swap(). */
void common_step(struct mirror_register *r, struct register_entry *now);
/* Read the record again until there is an answer. */
void common_get(struct mirror_register *r, struct register_entry *now);
/* Send any request to the gateway; the answer must come. body: an object, which is freed. */
void common_post(struct mirror_register *r, const char *path, json_t *body);

#endif
