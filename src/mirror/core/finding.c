/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/finding.h"

#include <string.h>

enum finding_wrong finding_judge(unsigned copies, unsigned differ, unsigned agree)
{
	if (2 * (copies - differ) > copies)
		return FINDING_MEMBER;
	return 2 * agree > copies ? FINDING_PRIMARY : FINDING_UNDECIDED;
}

const char *finding_wrong_2str(unsigned wrong)
{
	static const char *const words[FINDING_WRONG_END] = {"undecided", "primary", "member"};

	return wrong < FINDING_WRONG_END ? words[wrong] : "?";
}

bool findings_has_any(const struct findings *f)
{
	return f->count || f->more;
}

bool findings_has_wrong(const struct findings *f, enum finding_wrong wrong)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->list[i].wrong == wrong)
			return true;
	return false;
}

/* Remove the findings that name no member any more. */
static void findings_pack(struct findings *f)
{
	uint8_t kept = 0;

	for (unsigned i = 0; i < f->count; i++)
		if (f->list[i].members)
			f->list[kept++] = f->list[i];
	memset(f->list + kept, 0, sizeof(f->list) - kept * sizeof(f->list[0]));
	f->count = kept;
	if (!f->more_members)
		f->more = 0;
}

void findings_forget(struct findings *f, mirror_mask members)
{
	for (unsigned i = 0; i < f->count; i++)
		f->list[i].members &= (mirror_mask)~members;
	f->more_members &= (mirror_mask)~members;
	findings_pack(f);
}

bool findings_on_insync(struct findings *f, mirror_mask insync)
{
	bool any = false;

	for (unsigned i = 0; i < f->count; i++) {
		if (!f->list[i].is_due || !(f->list[i].members & insync))
			continue;
		f->list[i].members &= (mirror_mask)~insync;
		any = true;
	}
	findings_pack(f);
	return any;
}

void findings_add(struct findings *f, const struct finding *finding)
{
	for (unsigned i = 0; i < f->count; i++) {
		struct finding *known = &f->list[i];

		if (known->wrong == finding->wrong && known->is_due == finding->is_due &&
		    known->range.offset == finding->range.offset &&
		    known->range.len == finding->range.len) {
			known->members |= finding->members;
			return;
		}
	}
	if (f->count < FINDINGS_MAX) {
		f->list[f->count++] = *finding;
		return;
	}
	f->more += finding->range.len;
	f->more_members |= finding->members;
}

uint64_t findings_bytes(const struct findings *f)
{
	uint64_t bytes = f->more;

	for (unsigned i = 0; i < f->count; i++)
		bytes += f->list[i].range.len * (unsigned)__builtin_popcount(f->list[i].members);
	return bytes;
}
