/* SPDX-License-Identifier: BSD-3-Clause */
/* member_impl.h -- what the files of a member's rules share: verdicts, and checks that recur. */
#ifndef MIRROR_CORE_MEMBER_IMPL_H
#define MIRROR_CORE_MEMBER_IMPL_H

#include "mirror/core/member.h"

void member_yes(struct member_verdict *v);
void member_no(struct member_verdict *v, enum member_reason reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Yes if rc is 0, else MEMBER_IO. */
void member_done(struct member_verdict *v, int rc);

/* Is this the promised epoch, with no higher one being fenced for? Else the verdict is no. */
bool member_is_promised(const struct member *m, struct mirror_epoch epoch,
			struct member_verdict *v);
/* False: a living process maps the copy, and the verdict is no. */
bool member_is_free(const struct member *m, struct member_verdict *v);
/* False: a write-back failed, or the metadata cannot be written, and the verdict is no. */
bool member_is_good(const struct member *m, struct member_verdict *v);
/* Write the superblock if it differs. */
int member_set_super(struct member *m, const struct meta_super *super);
/* The metadata may be an old state: make the copy a target without a source. It is neither
 * promoted nor taken for good until it was compared as a whole. */
void member_distrust(struct meta_super *super);
bool member_has_bitmaps(const struct member *m);

/* Texts print epochs like this: "7.3f2a". */
struct member_epoch_text {
	char text[48];
};
struct member_epoch_text member_epoch_text(struct mirror_epoch epoch);

#endif
