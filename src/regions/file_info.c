/* SPDX-License-Identifier: BSD-3-Clause */
/* Returns facts about an open file, also after its connection is closed. */
#include <stdio.h>
#include <string.h>

#include "regions/file_impl.h"

int rpma_file_size(struct rpma_file *file, uint64_t *size)
{
	if (!file || !size)
		return file_error_invalid(__func__, "file or size is NULL");
	*size = file->length; /* never changes */
	return 0;
}

int rpma_file_get_generation(struct rpma_file *file, uint64_t *generation)
{
	if (!file || !generation)
		return file_error_invalid(__func__, "file or generation is NULL");
	*generation = file->claim.generation; /* changes at most once, from 0 */
	return 0;
}

static void file_look_at_link(struct rpma_file *f)
{
	struct session_transport transport;

	if (f->failed && f->link[0])
		return; /* keep the link of the lost connection */
	if (f->failed)
		snprintf(f->link, sizeof(f->link), "rdma");
	if (f->failed)
		return;
	session_get_transport(&f->s, &transport);
	snprintf(f->link, sizeof(f->link), "%s", transport.link);
}

int rpma_file_get_info(struct rpma_file *file, struct rpma_file_info *info)
{
	if (!file || !info || info->size < sizeof(*info))
		return file_error_invalid(__func__, "file or info is NULL, or info->size is wrong");
	lock_enter(&file->lock);
	file_look_at_link(file);
	info->length = file->length;
	info->durability = file->durability;
	info->persists = file->persists;
	info->verifies = file->persists && file->caps & RPMA_CAP_VERIFY;
	info->holds = file_holds(&file->content);
	info->file_length = file->content.length;
	info->file_time_ns = file->content.time_ns;
	memcpy(info->file_digest, file->content.digest, sizeof(info->file_digest));
	snprintf(info->region, sizeof(info->region), "%s", file->target.region);
	address_show(&file->target.server, info->server);
	snprintf(info->device, sizeof(info->device), "%s", file->device);
	snprintf(info->link, sizeof(info->link), "%s", file->link);
	lock_leave(&file->lock);
	return 0;
}

int rpma_file_get_undecided(struct rpma_file *file, struct rpma_file_range *ranges, size_t *count)
{
	size_t room;

	if (!file || !count)
		return file_error_invalid(__func__, "file or count is NULL");
	room = ranges ? *count : 0;
	lock_enter(&file->lock);
	file_ranges_merge(&file->ranges, file->tickets + 1);
	for (size_t i = 0; i < file->ranges.count && i < room; i++)
		ranges[i] = (struct rpma_file_range){file->ranges.noted[i].from,
						     file->ranges.noted[i].to -
							     file->ranges.noted[i].from};
	*count = file->ranges.count;
	lock_leave(&file->lock);
	return 0;
}
