/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/region.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/safecopy.h"
#include "softrnic/persist/procfs.h"

struct region_survey {
	struct persist_region *region;
	uintptr_t next;   /* end of the mappings found so far */
	unsigned weakest; /* rank of the weakest range so far, see range_rank() */
	unsigned kinds;   /* set of the classes found, one bit each */
};

/*
 * Does a file lie behind the mapping? The first System V segment has the inode number 0 but a path.
 */
static bool region_vma_has_file(const struct vma *vma)
{
	return vma->ino || vma->path[0] == '/';
}

/* The rank of a range: the durability class decides first. Within a class a range without an own
 * mapping (ownmap.h) has the lower rank. */
static unsigned range_rank(const struct range *r, int own)
{
	return 2 * (unsigned)r->cls + !own;
}

/* `own` is 0, or the error that explains why the file has no own mapping. */
static void region_explain(struct persist_region *region, const struct vma *vma,
			   const struct range *r, const char *fs, int own)
{
	char *why = region->why;
	size_t size = sizeof(region->why);

	if (!region_vma_has_file(vma))
		snprintf(why, size, "volatile: anonymous memory");
	else if (!vma->shared)
		snprintf(why, size, "volatile: private mapping of %s", vma->path);
	else if (r->cls == VEXT_DURABILITY_VOLATILE)
		snprintf(why, size, "volatile: shared mapping of %s (%s)", vma->path, fs);
	else if (r->cls == VEXT_DURABILITY_DAX)
		snprintf(why, size, "dax: %s mapping of %s (%s)",
			 r->file->medium.cls == VEXT_DURABILITY_DAX ? "shared" : "MAP_SYNC",
			 vma->path, fs);
	else if (own)
		snprintf(why, size,
			 "file, errors shared: shared mapping of %s (%s), which cannot be opened "
			 "for writing: %s",
			 vma->path, fs, strerror(-own));
	else
		snprintf(why, size, "file: shared mapping of %s (%s)", vma->path, fs);
}

static bool range_continues(const struct range *a, const struct range *b)
{
	return a->cls == b->cls && a->file == b->file && a->syncs == b->syncs && a->own == b->own &&
	       (!a->file || a->offset + (a->end - a->start) == b->offset);
}

/* The region takes over the range's reference to its file. */
static int region_append(struct persist_region *region, const struct range *r)
{
	struct range *last = region->count ? &region->ranges[region->count - 1] : NULL;

	if (last && range_continues(last, r)) {
		last->end = r->end;
		file_put(r->file);
		return 0;
	}
	if (region->count == region->room) {
		size_t room = region->room ? 2 * region->room : 1;
		struct range *grown = reallocarray(region->ranges, room, sizeof(*grown));

		if (!grown) {
			file_put(r->file);
			return -ENOMEM;
		}
		region->ranges = grown;
		region->room = room;
	}
	region->ranges[region->count++] = *r;
	return 0;
}

/* Private mappings never count, because a program's own data lie in such mappings. */
static bool region_vma_can_stall(const struct vma *vma, const struct file *file)
{
	return vma->shared && region_vma_has_file(vma) && file &&
	       file->medium.cls != VEXT_DURABILITY_DAX;
}

static int region_add_vma(void *arg, const struct vma *vma)
{
	struct region_survey *s = arg;
	struct persist_region *region = s->region;
	struct range r = {.start = s->next, .cls = VEXT_DURABILITY_VOLATILE};
	char fs[32] = "";
	int err, own = 0;

	if (vma->start > s->next)
		return -EFAULT;
	r.end = vma->end < region->end ? vma->end : region->end;
	if (vma->shared && region_vma_has_file(vma)) {
		err = file_get(vma, &r.file, fs);
		if (err)
			return err;
	}
	if (r.file) {
		r.offset = vma->offset + (r.start - vma->start);
		r.cls = r.file->medium.may_dax && vma_is_sync(vma->start) ? VEXT_DURABILITY_DAX
									  : r.file->medium.cls;
		r.syncs = vma_syncs(vma);
	}
	if (r.cls == VEXT_DURABILITY_FILE)
		own = file_own(r.file, r.offset + (r.end - r.start), vma->writable);
	if (own == -ENOMEM) {
		file_put(r.file);
		return own;
	}
	if (r.cls == VEXT_DURABILITY_FILE && !own)
		r.own = r.file->own_epoch;
	if (!region->count || range_rank(&r, own) < s->weakest) {
		s->weakest = range_rank(&r, own);
		region_explain(region, vma, &r, fs, own);
	}
	s->kinds |= 1u << r.cls;
	region->can_stall = region->can_stall || region_vma_can_stall(vma, r.file);
	s->next = r.end;
	return region_append(region, &r);
}

static int region_scan(struct region_survey *s)
{
	struct persist_region *region = s->region;
	int r = region->end < region->start ? -EFAULT : 0;

	s->next = region->start;
	if (!r && region->start < region->end)
		r = vma_for_each(region->start, region->end, region_add_vma, s);
	if (!r && s->next < region->end)
		r = -EFAULT;
	return r;
}

int persist_region_new(void *addr, size_t len, struct persist_region **out)
{
	struct persist_region *region = calloc(1, sizeof(*region));
	struct region_survey s = {.region = region};
	int r;

	if (!region)
		return -ENOMEM;
	atomic_init(&region->refs, 1);
	region->start = (uintptr_t)addr;
	region->end = region->start + len;
	r = region_scan(&s);
	if (!r)
		r = safecopy_setup();
	if (r) {
		persist_region_put(region);
		return r;
	}
	LOG_INFO("region %p+%zu: %s%s", addr, len, region->why,
		 s.kinds & (s.kinds - 1) ? ", and other memory" : "");
	*out = region;
	return 0;
}

static void region_put_files(struct persist_region *region)
{
	for (size_t i = 0; i < region->count; i++)
		file_put(region->ranges[i].file);
	free(region->ranges);
}

struct persist_region *persist_region_get(struct persist_region *region)
{
	if (region)
		atomic_fetch_add(&region->refs, 1);
	return region;
}

void persist_region_put(struct persist_region *region)
{
	if (!region || atomic_fetch_sub(&region->refs, 1) > 1)
		return;
	region_put_files(region);
	free(region);
}

const struct range *region_range_at(const struct persist_region *region, uintptr_t addr)
{
	size_t low = 0, high = region->count;

	assert(addr >= region->start && addr < region->end);
	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (region->ranges[mid].start <= addr)
			low = mid;
		else
			high = mid;
	}
	return &region->ranges[low];
}

bool persist_region_is_volatile(const struct persist_region *region)
{
	for (size_t i = 0; i < region->count; i++)
		if (region->ranges[i].cls != VEXT_DURABILITY_VOLATILE)
			return false;
	return true;
}

enum vext_durability persist_region_class(const struct persist_region *region, const void *addr,
					  size_t len)
{
	uintptr_t pos = (uintptr_t)addr, end = pos + len;
	enum vext_durability weakest = VEXT_DURABILITY_DAX;

	if (end <= pos || pos < region->start || end > region->end)
		return VEXT_DURABILITY_VOLATILE;
	while (pos < end && weakest != VEXT_DURABILITY_VOLATILE) {
		const struct range *r = region_range_at(region, pos);

		if (r->cls < weakest)
			weakest = r->cls;
		pos = r->end;
	}
	return weakest;
}

bool persist_region_can_stall(const struct persist_region *region)
{
	return region->can_stall;
}

bool range_has_own(const struct range *r)
{
	return r->own == r->file->own_epoch;
}

bool range_is_lasting(const struct range *r, uintptr_t start, uintptr_t end)
{
	const struct file *f = r->file;

	return r->cls == VEXT_DURABILITY_FILE && (f->medium.fd >= 0 || !f->medium.has_end) &&
	       range_has_own(r) &&
	       file_own_at(f, r->offset + (start - r->start), r->offset + (end - r->start));
}

bool persist_region_is_detachable(const struct persist_region *region, const void *addr, size_t len)
{
	uintptr_t pos = (uintptr_t)addr, end = pos + len;

	if (end < pos || pos < region->start || end > region->end)
		return false;
	while (pos < end) {
		const struct range *r = region_range_at(region, pos);

		if (r->cls != VEXT_DURABILITY_VOLATILE &&
		    !range_is_lasting(r, pos, r->end < end ? r->end : end))
			return false;
		pos = r->end;
	}
	return true;
}

/* The own mapping may be shorter than the range. Pages behind its end have no marks. */
void persist_region_expect_store(const struct persist_region *region, const void *addr, size_t len)
{
	const struct range *r = region_range_at(region, (uintptr_t)addr);
	struct ownmap *own = r->cls == VEXT_DURABILITY_FILE ? atomic_load(&r->file->own) : NULL;

	if (own)
		folio_split(&own->stored, addr, r->offset + ((uintptr_t)addr - r->start), len);
}

bool persist_region_has_failed(const struct persist_region *region)
{
	for (size_t i = 0; i < region->count; i++) {
		const struct file *f = region->ranges[i].file;

		if (f && atomic_load(&f->error))
			return true;
	}
	return false;
}

int persist_classify(const void *addr, size_t len, enum vext_durability *cls, char *why,
		     size_t size)
{
	struct persist_region region = {.start = (uintptr_t)addr, .end = (uintptr_t)addr + len};
	struct region_survey s = {.region = &region};
	int r = region_scan(&s);

	if (!r) {
		*cls = persist_region_class(&region, addr, len);
		snprintf(why, size, "%s", region.why);
	}
	region_put_files(&region);
	return r;
}
