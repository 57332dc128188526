/* SPDX-License-Identifier: BSD-3-Clause */
/* providers.c -- lists providers and devices, with the reason why each can or cannot be used. */
#include <stdlib.h>

#include "rpma/err.h"
#include "rpma/utils.h"

struct rpma_provider_list {
	struct provider_rows rows;
};

int rpma_provider_list_new(const char *addr, enum rpma_util_ibv_context_type type,
			   struct rpma_provider_list **list_ptr)
{
	struct rpma_provider_list *list;

	if (!list_ptr || !utils_is_context_type(type))
		return INVALID();
	list = malloc(sizeof(*list));
	if (!list)
		return NOMEM();
	if (provider_rows_init(&list->rows, addr, utils_role(type))) {
		free(list);
		return NOMEM();
	}
	*list_ptr = list;
	return 0;
}

int rpma_provider_list_delete(struct rpma_provider_list **list_ptr)
{
	if (!list_ptr)
		return INVALID();
	if (!*list_ptr)
		return 0;
	provider_rows_fini(&(*list_ptr)->rows);
	free(*list_ptr);
	*list_ptr = NULL;
	return 0;
}

/*
 * Fill only the members that the caller's structure has, which are at least those of the first
 * version.
 */
int rpma_provider_list_get(const struct rpma_provider_list *list, size_t index,
			   struct rpma_provider_info *info)
{
	const size_t least = offsetof(struct rpma_provider_info, why) + sizeof(info->why);
	const struct provider_row *row;

	if (!list || !info || index >= list->rows.count)
		return INVALID();
	if (info->size < least)
		return err_set(RPMA_E_INVAL, "rpma_provider_list_get: info->size is not "
					     "sizeof(struct rpma_provider_info)");
	row = &list->rows.row[index];
	memset((char *)info + sizeof(info->size), 0, info->size - sizeof(info->size));
	info->provider = row->provider;
	info->device = row->device[0] ? row->device : NULL;
	info->usable = row->usable;
	info->why = row->why;
	return 0;
}
