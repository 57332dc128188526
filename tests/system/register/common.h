/* SPDX-License-Identifier: BSD-3-Clause */
/* common.h -- functions that the tests of the register in etcd share. */
#ifndef SYSTEM_REGISTER_COMMON_H
#define SYSTEM_REGISTER_COMMON_H

#include <stdbool.h>

#include "etcd.h"
#include "mirror/register/etcd.h"
#include "mirror/register/register.h"

/* LONG_MS: for calls that must succeed, and can wait for elections on a busy machine. SHORT_MS: for
 * calls that cannot succeed. */
#define LONG_MS  20000
#define SHORT_MS 2000

/* Exit as skipped if etcd is not installed. */
void common_need_etcd(void);
/* Open the register of the set "orders"; on failure the test fails. options: "" or "?ca=..." */
struct mirror_register *common_open(const struct cluster *c, const char *options,
				    unsigned limit_ms);
/* Create the first record, with the limit LONG_MS. The test fails if the register cannot do
 * this. */
void common_create(const struct cluster *c, struct register_entry *now);
/*
 * Replace *now by `next`. Repeat the swap until its result is known, for at most a minute. *now
 * gets the new entry. The test fails if the register has another record.
 */
void common_swap(struct mirror_register *r, struct register_entry *now,
		 const struct mirror_record *next);
/* Raise seq by one with common_swap(). */
void common_step(struct mirror_register *r, struct register_entry *now);
/* Repeat reading the record until there is an answer. */
void common_get(struct mirror_register *r, struct register_entry *now);
/* Send a request to etcd's gateway, which must answer. body: an object, which this call frees. */
void common_post(struct mirror_register *r, const char *path, json_t *body);

#endif
