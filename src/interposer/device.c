/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c -- the list of devices: rdma-core's, and behind them the software RNIC. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interposer/words.h"
#include "softrnic/softrnic.h"

/* What is handed out begins behind `hard`, where programs see an array of pointers. */
struct device_list {
	void *hard; /* rdma-core's own list, which must be given back */
	void *entry[];
};

/* Accepts NULL. What is left to give back is rdma-core's own list, or NULL. */
static void *list_free(void *entries)
{
	struct device_list *list;
	void *hard;

	if (!entries)
		return NULL;
	list = (struct device_list *)((char *)entries - offsetof(struct device_list, entry));
	hard = list->hard;
	free(list);
	return hard;
}

/* rdma-core's n entries, then ours, then NULL. Takes over `hard` only on success. */
static void *list_new(void *const *hard, int n, void *ours, int *num)
{
	struct device_list *list = calloc(1, sizeof(*list) + sizeof(list->entry[0]) * (n + 2u));

	if (!list)
		return NULL;
	list->hard = (void *)hard;
	if (n)
		memcpy(list->entry, hard, sizeof(list->entry[0]) * (unsigned)n);
	list->entry[n] = ours;
	if (num)
		*num = n + (ours ? 1 : 0);
	return list->entry;
}

static bool device_is_soft(const struct ibv_device *device)
{
	const struct ibv_context *ctx = softrnic_context();

	return ctx && ctx->device == device;
}

/* A function of rdma-core's own copy, with the type of the public one. */
#define HARD(name) ((__typeof__(name) *)hard_symbol(#name))

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_context *ctx = softrnic_context();
	struct ibv_device **hard = NULL;
	void *list;
	int n = 0;

	if (hard_words())
		hard = HARD(ibv_get_device_list)(&n);
	list = list_new((void *const *)hard, hard ? n : 0, ctx ? ctx->device : NULL, num);
	if (!list && hard)
		HARD(ibv_free_device_list)(hard);
	return list;
}

void ibv_free_device_list(struct ibv_device **entries)
{
	void *hard = list_free(entries);

	if (hard)
		HARD(ibv_free_device_list)(hard);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct ibv_device_attr attr;

	if (!device_is_soft(device))
		return hard_words() ? HARD(ibv_get_device_guid)(device) : 0;
	softrnic_query_device(softrnic_context(), &attr);
	return attr.node_guid;
}

/* The kernel's number of the device; ours has none. */
int ibv_get_device_index(struct ibv_device *device)
{
	if (!device_is_soft(device) && hard_words())
		return HARD(ibv_get_device_index)(device);
	return -1;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	WORDS_SCOPE w = device_is_soft(device) || !hard_words() ? &soft_words : hard_words();

	return w->hard ? HARD(ibv_open_device)(device) : softrnic_context();
}

struct ibv_context *ibv_import_device(int fd)
{
	WORDS_SCOPE w = hard_words() ? hard_words() : &soft_words;

	return w->hard ? HARD(ibv_import_device)(fd) : REFUSE_NUL(EOPNOTSUPP);
}

struct ibv_context **rdma_get_devices(int *num)
{
	struct ibv_context *ctx = softrnic_context(), **hard = NULL;
	void *list;
	int n = 0;

	if (hard_words())
		hard = HARD(rdma_get_devices)(&n);
	list = list_new((void *const *)hard, hard ? n : 0, ctx, num);
	if (!list && hard)
		HARD(rdma_free_devices)(hard);
	return list;
}

void rdma_free_devices(struct ibv_context **entries)
{
	void *hard = list_free(entries);

	if (hard)
		HARD(rdma_free_devices)(hard);
}
