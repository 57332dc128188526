/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c -- every device of every provider, and whether it would do. */
#include "provider/provider.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/softrnic.h"

static struct provider_row *row_add(struct provider_rows *rows, const struct provider *prov,
				    const char *device)
{
	size_t size = (rows->count + 1) * sizeof(*rows->row);
	struct provider_row *all = realloc(rows->row, size);
	struct provider_row *row;

	if (!all)
		return NULL;
	rows->row = all;
	row = &all[rows->count++];
	*row = (struct provider_row){.provider = prov->name};
	snprintf(row->device, sizeof(row->device), "%s", device);
	return row;
}

__attribute__((format(printf, 3, 4))) static void row_set(struct provider_row *row, bool usable,
							  const char *fmt, ...)
{
	va_list args;

	row->usable = usable;
	va_start(args, fmt);
	vsnprintf(row->why, sizeof(row->why), fmt, args);
	va_end(args);
}

static const char *does(enum provider_role role)
{
	return role == PROVIDER_PASSIVE ? "owns" : "reaches";
}

/* A device of rdma-core does in general when one of its ports is up. */
static void judge_ports(struct provider_row *row, struct ibv_context *ctx)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port;

	if (ibv_query_device(ctx, &dev)) {
		row_set(row, false, "it cannot be queried: %s", strerror(errno));
		return;
	}
	for (unsigned int n = 1; n <= dev.phys_port_cnt; n++)
		if (!ibv_query_port(ctx, (uint8_t)n, &port) && port.state == IBV_PORT_ACTIVE) {
			row_set(row, true, "its port %u is active", n);
			return;
		}
	row_set(row, false, "none of its %u ports is active", dev.phys_port_cnt);
}

/* And for an address when it is the one that rdma_cm finds for it. */
static void judge_for_addr(struct provider_row *row, const char *addr, enum provider_role role)
{
	struct ibv_context *found;
	const char *call = "";
	int err = provider_find_context(&provider_verbs, addr, role, &found, &call);

	if (err)
		row_set(row, false, "no RDMA device %s %s (%s: %s)", does(role), addr, call,
			strerror(err));
	else if (strcmp(found->device->name, row->device))
		row_set(row, false, "another device, %s, %s %s", found->device->name, does(role),
			addr);
	else
		row_set(row, true, "it %s %s", does(role), addr);
}

static void judge_device(struct provider_row *row, struct ibv_device *device, const char *addr,
			 enum provider_role role)
{
	struct ibv_context *ctx = ibv_open_device(device);

	if (!ctx) {
		row_set(row, false, "it cannot be opened: %s", strerror(errno));
		return;
	}
	if (softrnic_owns_context(ctx))
		row_set(row, false, "it is the software RNIC in disguise");
	else if (addr)
		judge_for_addr(row, addr, role);
	else
		judge_ports(row, ctx);
	ibv_close_device(ctx);
}

static int add_verbs(struct provider_rows *rows, const char *addr, enum provider_role role)
{
	int count = 0, err = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);
	struct provider_row *row;

	if (!devices || !count) {
		row = row_add(rows, &provider_verbs, "");
		if (row)
			row_set(row, false, "there is no RDMA device in this machine");
		err = row ? 0 : ENOMEM;
	}
	for (int i = 0; i < count && !err; i++) {
		row = row_add(rows, &provider_verbs, ibv_get_device_name(devices[i]));
		if (row)
			judge_device(row, devices[i], addr, role);
		else
			err = ENOMEM;
	}
	if (devices)
		ibv_free_device_list(devices);
	return err;
}

static int add_softrnic(struct provider_rows *rows, const char *addr, enum provider_role role)
{
	struct ibv_context *ctx = softrnic_context();
	int err = ctx ? 0 : errno;
	const char *call = "it cannot be started";
	struct provider_row *row = row_add(rows, &provider_softrnic, ctx ? ctx->device->name : "");

	if (!row)
		return ENOMEM;
	if (!err && addr)
		err = provider_find_context(&provider_softrnic, addr, role, &ctx, &call);
	if (err)
		row_set(row, false, "%s: %s", call, strerror(err));
	else
		row_set(row, true, "%s", softrnic_why());
	return 0;
}

int provider_rows_init(struct provider_rows *rows, const char *addr, enum provider_role role)
{
	int err;

	*rows = (struct provider_rows){0};
	err = add_verbs(rows, addr, role);
	if (!err)
		err = add_softrnic(rows, addr, role);
	if (err)
		provider_rows_fini(rows);
	return err;
}

void provider_rows_fini(struct provider_rows *rows)
{
	free(rows->row);
	*rows = (struct provider_rows){0};
}
