/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * finding.h -- blocks in which copies differ that should be equal, and which copy is wrong; pure.
 *
 * A comparison of copies (mirror/compare.h) finds them. Findings that it does not repair are kept
 * in the metadata of the primary's copy, until a later comparison finds the copies equal or the
 * member has returned with the bytes that it lacked.
 */
#ifndef MIRROR_CORE_FINDING_H
#define MIRROR_CORE_FINDING_H

#include "mirror/core/types.h"

/* Which copy of the block is wrong: the copies vote. */
enum finding_wrong {
	FINDING_UNDECIDED, /* no value of the block has a majority */
	FINDING_PRIMARY,   /* a majority agrees on another value than the primary's */
	FINDING_MEMBER,    /* a majority agrees with the primary */
	FINDING_WRONG_END
};

/*
 * `copies` were compared, among them the primary's. `differ` of them differ from the primary's in
 * this block, and the largest group of these that agree with each other has `agree` copies.
 */
enum finding_wrong finding_judge(unsigned copies, unsigned differ, unsigned agree);
/* "undecided", "primary", "member" */
const char *finding_wrong_2str(unsigned wrong);

struct finding {
	mirror_mask members; /* members whose copies differ there from the primary's; 0: free */
	uint8_t wrong;       /* enum finding_wrong */
	bool is_due;         /* these members are excluded, and get the range before they return */
	struct mirror_range range;
};

#define FINDINGS_MAX 8

struct findings {
	uint64_t time_s; /* CLOCK_REALTIME of the comparison; 0: no comparison yet */
	/* epoch in which this copy was the primary's, and was compared */
	struct mirror_epoch epoch;
	bool is_whole; /* with all others, as a whole */
	uint8_t count;
	struct finding list[FINDINGS_MAX];
	uint64_t more; /* bytes that the list has no room for, */
	mirror_mask more_members;
};

bool findings_has_any(const struct findings *f);
/* Does any finding have this verdict? */
bool findings_has_wrong(const struct findings *f, enum finding_wrong wrong);
/* These members' copies were compared anew, or are new. */
void findings_forget(struct findings *f, mirror_mask members);
/* These members are in-sync, so they have the ranges that were due. False: nothing has changed. */
bool findings_on_insync(struct findings *f, mirror_mask insync);
/* A finding of the same range for another member is merged into one. */
void findings_add(struct findings *f, const struct finding *finding);
/* Of all members together. */
uint64_t findings_bytes(const struct findings *f);

#endif
