/* SPDX-License-Identifier: BSD-3-Clause */
/* member_fixture.h -- one copy, and short names for the calls of its member, for a test file. */
#ifndef TEST_MEMBER_FIXTURE_H
#define TEST_MEMBER_FIXTURE_H

#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <string.h>

#include "mirror/core/member.h"

extern struct two_layers store;
extern struct meta meta;
extern struct member member;
extern struct mirror_uuid boot;
extern struct mirror_record rec;
extern struct member_verdict v;
extern struct member_report report;

int member_setup(void **state);
int member_teardown(void **state);
/* Restart the daemon. If `boot` was changed before, the host has restarted, too. */
void restart(void);
/* Expect this result of the last call. A refusal must have a text. */
void expect(enum member_reason reason);
void promise(uint64_t number);
void connect_with(enum member_kind kind, uint64_t epoch);
void ask(void);
/* Show the member this record of the register. */
void see(uint64_t epoch, enum mirror_phase phase, mirror_mask insync, uint64_t seq);

#endif
