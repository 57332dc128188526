/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c -- lists every device of every provider, and whether it can be used. */
#include "provider/provider.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/softrnic.h"

static struct provider_row *rows_add(struct provider_rows *rows, const struct provider *prov,
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

__attribute__((format(printf, 3, 4))) static void rows_set(struct provider_row *row, bool usable,
							   const char *fmt, ...)
{
	va_list args;

	row->usable = usable;
	va_start(args, fmt);
	vsnprintf(row->why, sizeof(row->why), fmt, args);
	va_end(args);
}

static const char *rows_role_verb(enum provider_role role)
{
	return role == PROVIDER_PASSIVE ? "owns" : "reaches";
}

/* Check a device of rdma-core without an address: it is usable if one of its ports is active. */
static void rows_check_ports(struct provider_row *row, struct ibv_context *ctx)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port;

	if (ibv_query_device(ctx, &dev)) {
		rows_set(row, false, "it cannot be queried: %s", strerror(errno));
		return;
	}
	for (unsigned int n = 1; n <= dev.phys_port_cnt; n++)
		if (!ibv_query_port(ctx, (uint8_t)n, &port) && port.state == IBV_PORT_ACTIVE) {
			rows_set(row, true, "its port %u is active", n);
			return;
		}
	rows_set(row, false, "none of its %u ports is active", dev.phys_port_cnt);
}

/* Check a device for an address: it is usable if rdma_cm chooses this device for the address. */
static void rows_check_addr(struct provider_row *row, const char *addr, enum provider_role role)
{
	struct ibv_context *found;
	const char *call = "";
	int err = provider_find_context(&provider_verbs, addr, role, &found, &call);

	if (err)
		rows_set(row, false, "no RDMA device %s %s (%s: %s)", rows_role_verb(role), addr,
			 call, strerror(err));
	else if (strcmp(found->device->name, row->device))
		rows_set(row, false, "another device, %s, %s %s", found->device->name,
			 rows_role_verb(role), addr);
	else
		rows_set(row, true, "it %s %s", rows_role_verb(role), addr);
}

static void rows_check_device(struct provider_row *row, struct ibv_device *device, const char *addr,
			      enum provider_role role)
{
	struct ibv_context *ctx = ibv_open_device(device);

	if (!ctx) {
		rows_set(row, false, "it cannot be opened: %s", strerror(errno));
		return;
	}
	if (softrnic_owns_context(ctx))
		rows_set(row, false, "it is the software RNIC, shown by the interposer");
	else if (addr)
		rows_check_addr(row, addr, role);
	else
		rows_check_ports(row, ctx);
	ibv_close_device(ctx);
}

static int rows_add_verbs(struct provider_rows *rows, const char *addr, enum provider_role role)
{
	int count = 0, err = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);
	struct provider_row *row;

	if (!devices || !count) {
		row = rows_add(rows, &provider_verbs, "");
		if (row)
			rows_set(row, false, "there is no RDMA device in this machine");
		err = row ? 0 : ENOMEM;
	}
	for (int i = 0; i < count && !err; i++) {
		row = rows_add(rows, &provider_verbs, ibv_get_device_name(devices[i]));
		if (row)
			rows_check_device(row, devices[i], addr, role);
		else
			err = ENOMEM;
	}
	if (devices)
		ibv_free_device_list(devices);
	return err;
}

static int rows_add_softrnic(struct provider_rows *rows, const char *addr, enum provider_role role)
{
	struct ibv_context *ctx = softrnic_context();
	int err = ctx ? 0 : errno;
	const char *call = "it cannot be started";
	struct provider_row *row = rows_add(rows, &provider_softrnic, ctx ? ctx->device->name : "");

	if (!row)
		return ENOMEM;
	if (!err && addr)
		err = provider_find_context(&provider_softrnic, addr, role, &ctx, &call);
	if (err)
		rows_set(row, false, "%s: %s", call, strerror(err));
	else
		rows_set(row, true, "%s", softrnic_why());
	return 0;
}

int provider_rows_init(struct provider_rows *rows, const char *addr, enum provider_role role)
{
	int err;

	*rows = (struct provider_rows){0};
	err = rows_add_verbs(rows, addr, role);
	if (!err)
		err = rows_add_softrnic(rows, addr, role);
	if (err)
		provider_rows_fini(rows);
	return err;
}

void provider_rows_fini(struct provider_rows *rows)
{
	free(rows->row);
	*rows = (struct provider_rows){0};
}
