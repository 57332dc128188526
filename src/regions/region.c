/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "regions/server_impl.h"
#include "service/peer.h"

static int region_open(const struct server *s, struct region *r, const struct mapfile_opts *opts,
		       struct error *err)
{
	int rc = mapfile_open(&r->data, opts, err);

	if (rc)
		return rc;
	if (r->data.cached)
		server_note(
			s, LOG_LVL_WARNING,
			"region '%s': %s of %s stay in the page cache, because another program has "
			"mapped them: if an earlier write to the disk failed, they are not on the "
			"disk; end that program and serve the file again to be sure",
			r->name, text_size(r->data.cached).text, r->path);
	rc = mapfile_open_scratch(&r->scratch, opts->path, SERVER_SCRATCH, err);
	if (rc)
		mapfile_discard(&r->data);
	return rc;
}

static int region_open_file(const struct server *s, struct region *r, struct error *err)
{
	const struct server_opts *opts = s->opts;
	struct mapfile_opts file = {.path = r->path,
				    .size = opts->size,
				    .create = opts->create,
				    .from_medium = true,
				    .is_private = opts->secret != NULL,
				    .scratch = SERVER_SCRATCH,
				    .watch = opts->watch};

	return region_open(s, r, &file, err);
}

static int region_open_memory(struct region *r, const struct server_file *memory, struct error *err)
{
	void *scratch = mmap(NULL, SERVER_SCRATCH, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (scratch == MAP_FAILED)
		return error_set(err, ERROR_LOCAL, errno, "no memory for a scratch page: %s",
				 strerror(errno));
	r->scratch = (struct mapfile){.fd = -1, .addr = scratch, .size = SERVER_SCRATCH};
	r->data = (struct mapfile){.fd = -1, .addr = memory->addr, .size = memory->length};
	rc = rpma_utils_get_durability(r->data.addr, r->data.size, &r->data.durability, NULL, 0);
	if (!rc)
		return 0;
	mapfile_close(&r->scratch);
	return error_set(err, ERROR_LOCAL, rc, "the memory of region '%s' cannot be served: %s",
			 r->name, rpma_err_last());
}

int regions_open(struct server *s, struct error *err)
{
	const struct server_opts *opts = s->opts;
	int rc = 0;

	for (unsigned i = 0; i < opts->file_count && !rc; i++) {
		const struct server_file *file = &opts->files[i];
		struct region *r = &s->regions[i];

		*r = (struct region){.name = file->name,
				     .path = file->path ? file->path : "memory of this program",
				     .is_memory = !file->path};
		rc = r->is_memory ? region_open_memory(r, file, err) : region_open_file(s, r, err);
		if (!rc)
			s->region_count++;
	}
	return rc;
}

void regions_close(struct server *s, bool keep)
{
	for (unsigned i = 0; i < s->region_count; i++) {
		struct region *r = &s->regions[i];

		mapfile_close(&r->scratch);
		if (r->is_memory)
			continue;
		if (!keep && r->data.made)
			unlink(r->place.path);
		(keep ? mapfile_close : mapfile_discard)(&r->data);
	}
	s->region_count = 0;
}

static int region_usage(const struct region *r, enum hello_access access)
{
	/* Clients whose library has no native flush read the bytes back instead. */
	int write = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
		    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

	if (access == HELLO_READ)
		return RPMA_MR_USAGE_READ_SRC;
	return r->persists ? write | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : write;
}

int region_export_new(struct server *s, struct region *r, enum hello_access access,
		      struct region_export *e)
{
	const struct mapfile *map = access == HELLO_SCRATCH ? &r->scratch : &r->data;
	int rc = rpma_mr_reg(s->peer, map->addr, map->size, region_usage(r, access), &e->mr);

	if (!rc)
		rc = peer_describe_memory(e->mr, e->desc, sizeof(e->desc), &e->desc_len);
	e->size = map->size;
	if (rc)
		rpma_mr_dereg(&e->mr);
	return rc;
}

static int region_check_durability(const struct server *s, const struct region *r,
				   struct error *err)
{
	if (r->persists || s->opts->allow_volatile)
		return 0;
	if (r->is_memory)
		return error_set(
			err, ERROR_LOCAL, EMEDIUMTYPE,
			"the memory of region '%s' cannot be persisted: it is no shared mapping of "
			"a file with a medium behind it, or bytes that this RDMA device writes "
			"there are not written back",
			r->name);
	if (r->data.durability == RPMA_DURABILITY_VOLATILE)
		return error_set(
			err, ERROR_LOCAL, EMEDIUMTYPE,
			"%s is on a file system in volatile memory, nothing there survives "
			"a restart",
			r->path);
	return error_set(
		err, ERROR_LOCAL, EMEDIUMTYPE,
		"bytes that this RDMA device writes to %s are not written back to the medium; with "
		"RPMA_PROVIDER=softrnic they are",
		r->path);
}

/*
 * Register the region. The anchor gives peers no rights. Without a secret the clients prove
 * nothing, so the server also makes the registrations that its clients share. Each writer gets its
 * own registration, which is dropped when the writer disconnects.
 */
static int region_register(struct server *s, struct region *r, struct error *err)
{
	/* The software RNIC writes bytes back to the medium before it answers a Read. */
	int rc = peer_describe(r->persists, r->pcfg, sizeof(r->pcfg), &r->pcfg_len);

	if (!rc)
		rc = rpma_mr_reg(s->peer, r->data.addr, r->data.size, RPMA_MR_USAGE_WRITE_SRC,
				 &r->anchor);
	for (int access = HELLO_READ; access <= HELLO_SCRATCH && !rc && !s->opts->secret; access++)
		if (access != HELLO_WRITE)
			rc = region_export_new(s, r, (enum hello_access)access, &r->shared[access]);
	return rc ? error_set(err, ERROR_LOCAL, rc, "cannot register %s of memory: %s",
			      text_size(r->data.size).text, rpma_err_last())
		  : 0;
}

/*
 * The software RNIC writes back flushed bytes. Bytes that hardware wrote may still be in the CPU's
 * caches (DDIO), also on DAX, so they do not count as written back.
 */
static bool region_device_writes_back(const struct ibv_context *context)
{
	return !strncmp(context->device->name, "softrnic", 8);
}

int regions_register(struct server *s, struct ibv_context *context, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; i < s->region_count && !rc; i++) {
		struct region *r = &s->regions[i];

		r->persists = region_device_writes_back(context) &&
			      r->data.durability >= RPMA_DURABILITY_FILE;
		rc = region_check_durability(s, r, err);
		if (!rc)
			rc = region_register(s, r, err);
	}
	return rc;
}

void regions_unregister(struct server *s)
{
	for (unsigned i = 0; i < s->region_count; i++) {
		struct region *r = &s->regions[i];

		for (int access = HELLO_READ; access <= HELLO_SCRATCH; access++)
			rpma_mr_dereg(&r->shared[access].mr);
		rpma_mr_dereg(&r->anchor);
	}
}
