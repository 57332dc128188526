/* SPDX-License-Identifier: BSD-3-Clause */
/* providers.c -- what could be used, and why or why not. */
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
		return RPMA_E_INVAL;
	list = malloc(sizeof(*list));
	if (!list)
		return RPMA_E_NOMEM;
	if (provider_rows_init(&list->rows, addr, utils_role(type))) {
		free(list);
		return RPMA_E_NOMEM;
	}
	*list_ptr = list;
	return 0;
}

int rpma_provider_list_delete(struct rpma_provider_list **list_ptr)
{
	if (!list_ptr)
		return RPMA_E_INVAL;
	if (!*list_ptr)
		return 0;
	provider_rows_fini(&(*list_ptr)->rows);
	free(*list_ptr);
	*list_ptr = NULL;
	return 0;
}

int rpma_provider_list_get(const struct rpma_provider_list *list, size_t index,
			   struct rpma_provider_info *info)
{
	const struct provider_row *row;

	if (!list || !info || index >= list->rows.count)
		return RPMA_E_INVAL;
	row = &list->rows.row[index];
	*info = (struct rpma_provider_info){
		.provider = row->provider,
		.device = row->device[0] ? row->device : NULL,
		.usable = row->usable,
		.why = row->why,
	};
	return 0;
}
