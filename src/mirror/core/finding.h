/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * finding.h -- findings: blocks that differ between copies that should be equal, with a verdict
 * about which copy is wrong; pure.
 *
 * A comparison of copies (mirror/compare.h) makes the findings. The metadata of the primary's copy
 * keep each finding that the comparison does not repair, until a later comparison finds the copies
 * equal or the member has got the bytes that it lacked.
 */
#ifndef MIRROR_CORE_FINDING_H
#define MIRROR_CORE_FINDING_H

#include "mirror/core/types.h"

/* The verdict on a block: which copy is wrong, according to a majority of the copies. */
enum finding_wrong {
	FINDING_UNDECIDED, /* no value of the block has a majority */
	FINDING_PRIMARY,   /* a majority agrees on another value than the primary's */
	FINDING_MEMBER,    /* a majority agrees with the primary */
	FINDING_WRONG_END
};

/*
 * Returns the verdict on a block. copies: number of compared copies, including the primary's.
 * differ: number of copies that differ from the primary's in this block. agree: size of the
 * largest group of equal copies among those that differ.
 */
enum finding_wrong finding_judge(unsigned copies, unsigned differ, unsigned agree);
/* Returns "undecided", "primary" or "member". */
const char *finding_wrong_2str(unsigned wrong);

struct finding {
	/* members whose copies differ from the primary's in this range; 0: the entry is free */
	mirror_mask members;
	uint8_t wrong; /* enum finding_wrong */
	/* these members are excluded, and have to get the range before they return */
	bool is_due;
	struct mirror_range range;
};

#define FINDINGS_MAX 8

struct findings {
	uint64_t time_s; /* time of the comparison by CLOCK_REALTIME; 0: no comparison was made */
	/* epoch in which the comparison was made, with this copy as the primary's */
	struct mirror_epoch epoch;
	bool is_whole; /* the comparison covered the whole file and all other copies */
	uint8_t count;
	struct finding list[FINDINGS_MAX];
	uint64_t more; /* bytes of the findings that do not fit into the list */
	mirror_mask more_members;
};

bool findings_has_any(const struct findings *f);
/* Returns true if a finding has this verdict. */
bool findings_has_wrong(const struct findings *f, enum finding_wrong wrong);
/* Forget the findings of these members, whose copies are new, or were compared again. */
void findings_forget(struct findings *f, mirror_mask members);
/* Forget findings of members that are in-sync, because these members have got the ranges that were
 * due. Returns false if no finding has changed. */
bool findings_on_insync(struct findings *f, mirror_mask insync);
/* Add a finding. If another member already has a finding of the same range, the two are merged. */
void findings_add(struct findings *f, const struct finding *finding);
/* Returns the bytes of all findings, summed over all members. */
uint64_t findings_bytes(const struct findings *f);

#endif
