/* SPDX-License-Identifier: BSD-3-Clause */
/* member_impl.h -- verdicts and checks that the files member*.c share. */
#ifndef MIRROR_CORE_MEMBER_IMPL_H
#define MIRROR_CORE_MEMBER_IMPL_H

#include "mirror/core/member.h"

void member_yes(struct member_verdict *v);
void member_no(struct member_verdict *v, enum member_reason reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Set the verdict: MEMBER_YES if rc is 0, else MEMBER_NO with MEMBER_IO. */
void member_done(struct member_verdict *v, int rc);

/* Returns true if this is the promised epoch, and fencing for a higher epoch has not begun.
 * Otherwise the verdict is MEMBER_NO. */
bool member_is_promised(const struct member *m, struct mirror_epoch epoch,
			struct member_verdict *v);
/* Returns false, with the verdict MEMBER_NO, if a living process maps the copy. */
bool member_is_free(const struct member *m, struct member_verdict *v);
/* Returns false, with the verdict MEMBER_NO, if a write-back failed or the metadata cannot be
 * written. */
bool member_is_good(const struct member *m, struct member_verdict *v);
/* Write the superblock if it differs. */
int member_set_super(struct member *m, const struct meta_super *super);
/* Distrust the metadata, which may be an old state: the copy becomes the target of a resync that
 * has not begun. Until the copy was compared as a whole, it is not promoted and does not count as
 * good. */
void member_distrust(struct meta_super *super);
bool member_has_bitmaps(const struct member *m);

/* An epoch as text: "7.3f2a". */
struct member_epoch_text {
	char text[48];
};
struct member_epoch_text member_epoch_text(struct mirror_epoch epoch);

#endif
