/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/types.h"

#include <stdio.h>
#include <string.h>

struct mirror_uuid_text mirror_uuid_text(const struct mirror_uuid *uuid)
{
	struct mirror_uuid_text t;

	for (unsigned i = 0; i < sizeof(uuid->bytes); i++)
		snprintf(t.text + (size_t)i * 2, 3, "%02x", uuid->bytes[i]);
	return t;
}

bool mirror_epoch_is_equal(struct mirror_epoch a, struct mirror_epoch b)
{
	return a.number == b.number && a.nonce == b.nonce;
}

uint8_t mirror_config_find(const struct mirror_config *config, const char *name)
{
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (config->members[slot].id && !strcmp(config->members[slot].name, name))
			return slot;
	return MIRROR_NO_SLOT;
}

mirror_mask mirror_config_members(const struct mirror_config *config)
{
	mirror_mask mask = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (config->members[slot].id)
			mask |= MIRROR_BIT(slot);
	return mask;
}
