/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "class.h"
#include "cli.h"
#include "liblog.h"
#include "serve.h"

static int export_one(struct serve *s, enum hello_access access, const struct mapfile *map,
		      int usage)
{
	struct serve_export *e = &s->exports[access];
	size_t len = 0;
	int rc = rpma_mr_reg(s->peer, map->addr, map->size, usage, &e->mr);

	if (!rc)
		rc = rpma_mr_get_descriptor_size(e->mr, &len);
	if (!rc && len > sizeof(e->desc))
		rc = RPMA_E_NOSUPP;
	if (!rc)
		rc = rpma_mr_get_descriptor(e->mr, e->desc);
	if (rc)
		return cli_fail(CLI_FILE, "cannot register %s of memory: %s",
				cli_show_size(map->size).text, liblog_reason(rc));
	e->size = map->size;
	e->desc_len = (uint8_t)len;
	return CLI_OK;
}

/* Tells clients whose library flushes by reading back that this is enough here: the software
 * RNIC writes back before it answers a read. */
static int describe_peer(struct serve *s, bool persists)
{
	struct rpma_peer_cfg *pcfg;
	size_t len = 0;
	int rc = rpma_peer_cfg_new(&pcfg);

	if (rc)
		return cli_fail(CLI_FILE, "%s", rpma_err_2str(rc));
	rpma_peer_cfg_set_direct_write_to_pmem(pcfg, persists);
	rpma_peer_cfg_get_descriptor_size(pcfg, &len);
	if (len <= sizeof(s->pcfg)) {
		rpma_peer_cfg_get_descriptor(pcfg, s->pcfg);
		s->pcfg_len = (uint8_t)len;
	}
	rpma_peer_cfg_delete(&pcfg);
	return CLI_OK;
}

static int check_durability(const struct serve *s, bool persists)
{
	if (persists || s->opts->allow_volatile)
		return CLI_OK;
	if (s->data.durability == HELLO_VOLATILE)
		return cli_fail(CLI_FILE,
				"%s is on a file system in volatile memory, nothing there survives "
				"a restart; --allow-volatile serves it nevertheless",
				s->opts->file.path);
	return cli_fail(CLI_FILE,
			"nobody writes back what this RDMA device puts into %s; "
			"RPMA_PROVIDER=softrnic does, --allow-volatile serves it nevertheless",
			s->opts->file.path);
}

int serve_export_all(struct serve *s, struct ibv_context *context)
{
	bool persists = class_device_persists(context, s->data.durability);
	int flush = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	int write;
	int rc = check_durability(s, persists);

	if (persists)
		flush |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	write = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | flush;
	if (!rc)
		rc = describe_peer(s, persists);
	if (!rc)
		rc = export_one(s, HELLO_READ, &s->data, RPMA_MR_USAGE_READ_SRC);
	if (!rc)
		rc = export_one(s, HELLO_WRITE, &s->data, write);
	if (!rc)
		rc = export_one(s, HELLO_SCRATCH, &s->scratch, write);
	return rc;
}

void serve_unexport_all(struct serve *s)
{
	for (size_t i = 0; i < sizeof(s->exports) / sizeof(s->exports[0]); i++)
		rpma_mr_dereg(&s->exports[i].mr);
}
