/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "poolset/parts.h"

/* Options of the removal, and the first obstacle. */
struct removal {
	struct parts parts;
	bool is_forced;
	struct error first;
};

/* Record an obstacle. With force the removal continues. */
static int removal_obstacle(struct removal *r, const struct error *err)
{
	if (r->first.kind == ERROR_NONE)
		r->first = *err;
	return r->is_forced ? 0 : (int)err->kind;
}

/* The header must be intact. may_be_zero: an all-zero header is permitted as well. */
static int removal_check_header(struct part *part, bool may_be_zero, bool *is_good,
				struct error *err)
{
	uint8_t page[HEADER_BYTES];
	int rc = part_read_header(part, page, err);

	if (!rc)
		*is_good = header_is_zero(page) ? may_be_zero : header_is_intact(page);
	return rc;
}

/*
 * A set may name any file. So a file is removed only if it has the size in the set file and, where
 * a header belongs, an intact or an all-zero header. With force one of the two conditions is
 * sufficient, so that a corrupt pool can be removed. A file that is named directly needs an intact
 * header in any case.
 */
static int removal_check_part(const struct removal *r, struct part *part, struct error *err)
{
	bool has_header = part->has_header, has_size, is_part;
	uint64_t size;
	int rc = part_get_size(part, &size, err);

	has_size = !rc && size == part->size;
	if (!rc && has_header)
		rc = removal_check_header(part, has_size && !r->parts.is_plain, &has_header, err);
	if (rc)
		return rc;
	is_part = has_size && (has_header || !part->has_header);
	if (r->is_forced)
		is_part = has_header || (has_size && !r->parts.is_plain);
	return is_part ? 0
		       : error_set(
				 err, ERROR_LOCAL, EINVAL,
				 "%s is not removed: it is no part of this pool, or a corrupt one",
				 part->path);
}

/* Lock and check all parts before the first removal, so that a pool in use stays complete. */
static int removal_open_parts(struct removal *r)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < r->parts.count; i++) {
		struct part *part = &r->parts.list[i];
		struct error err;

		rc = part_open(part, &err);
		if (rc && err.cause == EWOULDBLOCK) {
			r->first = err;
			return rc;
		}
		if (!rc)
			rc = removal_check_part(r, part, &err);
		if (rc) {
			part_close(part);
			rc = removal_obstacle(r, &err);
		}
	}
	return rc;
}

static int removal_remove_parts(struct removal *r)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < r->parts.count; i++) {
		struct error err;

		if (r->parts.list[i].fd >= 0 && part_remove(&r->parts.list[i], &err))
			rc = removal_obstacle(r, &err);
	}
	return rc;
}

static int removal_remove_set(struct removal *r)
{
	struct part set = {.path = r->parts.name, .fd = r->parts.set_fd};
	struct error err;

	if (r->parts.is_plain || !part_remove(&set, &err))
		return 0;
	return removal_obstacle(r, &err);
}

static int removal_run(struct removal *r, unsigned flags)
{
	struct error err;
	int rc = 0;

	if (r->parts.nremotes) {
		error_set(&err, ERROR_LOCAL, EINVAL,
			  "%s:%u: a set with a remote replica is not removed", r->parts.name,
			  r->parts.replica_line);
		r->first = err;
		return ERROR_LOCAL;
	}
	rc = removal_open_parts(r);
	if (!rc)
		rc = removal_remove_parts(r);
	if (!rc && (flags & POOLSET_REMOVE_SET))
		rc = removal_remove_set(r);
	return rc;
}

int poolset_remove(const struct poolset_place *place, unsigned flags, struct error *err)
{
	struct removal r = {.is_forced = flags & POOLSET_REMOVE_FORCE};
	int rc = parts_load(&r.parts, place, &r.first);

	if (!rc) {
		rc = removal_run(&r, flags);
		parts_fini(&r.parts);
	}
	if (err)
		*err = r.first;
	return r.is_forced ? 0 : rc;
}
