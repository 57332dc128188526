/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/text.h"
#include "cli.h"
#include "liblog.h"
#include "serve.h"

static int open_one(struct serve_region *r, const struct mapfile_wish *wish)
{
	int rc = mapfile_open(&r->data, wish);

	if (rc)
		return rc;
	rc = mapfile_open_scratch(&r->scratch, wish->path, SERVE_SCRATCH);
	if (rc)
		mapfile_discard(&r->data);
	return rc;
}

int serve_regions_open(struct serve *s)
{
	const struct serve_opts *opts = s->opts;
	int rc = CLI_OK;

	for (unsigned i = 0; i < opts->file_count && !rc; i++) {
		struct mapfile_wish wish = {opts->files[i], opts->size, opts->create};
		struct serve_region *r = &s->regions[i];

		*r = (struct serve_region){.name = opts->names[i], .path = opts->files[i]};
		rc = open_one(r, &wish);
		if (!rc)
			s->region_count++;
	}
	if (rc)
		serve_regions_close(s, false);
	return rc;
}

void serve_regions_close(struct serve *s, bool keep)
{
	for (unsigned i = 0; i < s->region_count; i++) {
		mapfile_close(&s->regions[i].scratch);
		if (keep)
			mapfile_close(&s->regions[i].data);
		else
			mapfile_discard(&s->regions[i].data);
	}
	s->region_count = 0;
}

static int usage_of(const struct serve_region *r, enum hello_access access)
{
	/* Clients whose library knows no flush read back instead. */
	int write = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
		    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

	if (access == HELLO_READ)
		return RPMA_MR_USAGE_READ_SRC;
	return r->persists ? write | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : write;
}

int serve_export_new(struct serve *s, struct serve_region *r, enum hello_access access,
		     struct serve_export *e)
{
	const struct mapfile *map = access == HELLO_SCRATCH ? &r->scratch : &r->data;
	size_t len = 0;
	int rc = rpma_mr_reg(s->peer, map->addr, map->size, usage_of(r, access), &e->mr);

	if (!rc)
		rc = rpma_mr_get_descriptor_size(e->mr, &len);
	if (!rc && len > sizeof(e->desc))
		rc = RPMA_E_NOSUPP;
	if (!rc)
		rc = rpma_mr_get_descriptor(e->mr, e->desc);
	e->size = map->size;
	e->desc_len = (uint8_t)len;
	if (rc)
		rpma_mr_dereg(&e->mr);
	return rc;
}

/* Tells clients whose library flushes by reading back that this is enough here: the software
 * RNIC writes back before it answers a read. */
static int describe_peer(struct serve_region *r)
{
	struct rpma_peer_cfg *pcfg;
	size_t len = 0;
	int rc = rpma_peer_cfg_new(&pcfg);

	if (rc)
		return rc;
	rpma_peer_cfg_set_direct_write_to_pmem(pcfg, r->persists);
	rpma_peer_cfg_get_descriptor_size(pcfg, &len);
	if (len <= sizeof(r->pcfg)) {
		rpma_peer_cfg_get_descriptor(pcfg, r->pcfg);
		r->pcfg_len = (uint8_t)len;
	}
	rpma_peer_cfg_delete(&pcfg);
	return 0;
}

static int check_durability(const struct serve *s, const struct serve_region *r)
{
	if (r->persists || s->opts->allow_volatile)
		return CLI_OK;
	if (r->data.durability == RPMA_DURABILITY_VOLATILE)
		return cli_fail(CLI_FILE,
				"%s is on a file system in volatile memory, nothing there survives "
				"a restart; --allow-volatile serves it nevertheless",
				r->path);
	return cli_fail(CLI_FILE,
			"nobody writes back what this RDMA device puts into %s; "
			"RPMA_PROVIDER=softrnic does, --allow-volatile serves it nevertheless",
			r->path);
}

/* Its registrations give a remote end no right; the shared ones are for servers without a secret,
 * where there is nothing to wait for. */
static int register_one(struct serve *s, struct serve_region *r)
{
	int rc = describe_peer(r);

	if (!rc)
		rc = rpma_mr_reg(s->peer, r->data.addr, r->data.size, RPMA_MR_USAGE_WRITE_SRC,
				 &r->anchor);
	for (int access = HELLO_READ; access <= HELLO_SCRATCH && !rc && !s->has_secret; access++)
		rc = serve_export_new(s, r, (enum hello_access)access, &r->shared[access]);
	return rc ? cli_fail(CLI_FILE, "cannot register %s of memory: %s",
			     text_size(r->data.size).text, liblog_reason(rc))
		  : CLI_OK;
}

/*
 * The software RNIC writes back what it was asked to flush. What hardware wrote may rest in
 * the CPU's caches (DDIO), on DAX as well: that nobody promises here.
 */
static bool device_writes_back(const struct ibv_context *context)
{
	return !strncmp(context->device->name, "softrnic", 8);
}

int serve_regions_register(struct serve *s, struct ibv_context *context)
{
	int rc = CLI_OK;

	for (unsigned i = 0; i < s->region_count && !rc; i++) {
		struct serve_region *r = &s->regions[i];

		r->persists =
			device_writes_back(context) && r->data.durability >= RPMA_DURABILITY_FILE;
		rc = check_durability(s, r);
		if (!rc)
			rc = register_one(s, r);
	}
	return rc;
}

void serve_regions_unregister(struct serve *s)
{
	for (unsigned i = 0; i < s->region_count; i++) {
		struct serve_region *r = &s->regions[i];

		for (int access = HELLO_READ; access <= HELLO_SCRATCH; access++)
			rpma_mr_dereg(&r->shared[access].mr);
		rpma_mr_dereg(&r->anchor);
	}
}
