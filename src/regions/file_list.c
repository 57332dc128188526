/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists the regions of a server, and the files in them. */
#include <stdio.h>
#include <string.h>

#include "regions/file_impl.h"

_Static_assert((int)RPMA_FILE_HOLDS_BYTES == (int)HELLO_CONTENT_RAW, "the same numbers");
_Static_assert((int)RPMA_FILE_HOLDS_PARTIAL == (int)HELLO_CONTENT_PARTIAL, "the same numbers");
_Static_assert((int)RPMA_FILE_HOLDS_WHOLE == (int)HELLO_CONTENT_WHOLE, "the same numbers");
_Static_assert(RPMA_FILE_REGIONS_MAX == HELLO_ENTRY_MAX, "as many as a list has");

enum rpma_file_holds file_holds(const struct hello_content *content)
{
	return (enum rpma_file_holds)content->state;
}

static void list_fill(const struct hello_entry *e, struct rpma_file_region *region)
{
	*region = (struct rpma_file_region){.length = e->size,
					    .durability = (enum rpma_durability)e->durability,
					    .holds = file_holds(&e->content),
					    .file_length = e->content.length,
					    .file_time_ns = e->content.time_ns};
	snprintf(region->name, sizeof(region->name), "%s", e->region);
	memcpy(region->file_digest, e->content.digest, sizeof(region->file_digest));
}

/* Copy the regions of that name ("": all) as far as the array has room. Returns the number of all
 * matching regions. */
static size_t list_choose(const struct hello_list *list, const char *name,
			  struct rpma_file_region *regions, size_t room)
{
	size_t found = 0;

	for (unsigned i = 0; i < list->count; i++) {
		if (name[0] && strcmp(name, list->entries[i].region) != 0)
			continue;
		if (regions && found < room)
			list_fill(&list->entries[i], &regions[found]);
		found++;
	}
	return found;
}

static int list_ask(const struct address *server, const struct rpma_file_options *options,
		    struct hello_list *list, struct error *err)
{
	struct session_opts opts = {.server = *server,
				    .region = "",
				    .access = HELLO_LIST,
				    .depth = 2,
				    .timeout_ms = file_options_timeout(options),
				    .retry_ms = options->reconnect_ms};
	struct session s;
	int rc = session_open_with_file(&s, &opts, options->secret_file, err);

	if (rc)
		return rc;
	rc = session_list(&s, list, err);
	session_close(&s);
	return rc;
}

int rpma_file_list(const char *target, const struct rpma_file_options *options,
		   struct rpma_file_region *regions, size_t *count)
{
	struct hello_list list;
	struct target parsed;
	struct error err;
	size_t found;
	int rc;

	if (!target || !count)
		return file_error_invalid(__func__, "target or count is NULL");
	options = file_options_or_defaults(options);
	if (!file_options_are_valid(options))
		return file_error_invalid(__func__, "a member of options is wrong");
	rc = target_parse(target, &parsed, &err);
	if (!rc)
		rc = list_ask(&parsed.server, options, &list, &err);
	if (rc)
		return file_error_of(&err);
	found = list_choose(&list, parsed.region, regions, *count);
	if (!found && parsed.region[0]) {
		char server[ADDRESS_TEXT];

		return file_error(RPMA_FILE_E_REFUSED, "%s does not serve a region '%s'",
				  address_show(&parsed.server, server), parsed.region);
	}
	*count = found;
	return 0;
}
