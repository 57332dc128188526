/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "info.h"
#include "service/mapfile.h"

#define SAMPLE 4096u

static void info_print_path(const char *path, const struct stat *st,
			    enum rpma_durability durability, const char *why, bool json)
{
	const char *class = rpma_utils_durability_2str(durability);

	if (!json) {
		printf("%s: durability %s\n%s\n", path, class, why);
		return;
	}
	cli_json_string("{\"path\":", path);
	if (S_ISREG(st->st_mode))
		printf(",\"size\":%" PRIu64, (uint64_t)st->st_size);
	printf(",\"durability\":\"%s\",\"why\":", class);
	cli_json_string("", why);
	puts("}");
}

static int info_classify_path(const char *path, const struct stat *st, const struct mapfile *map,
			      bool json)
{
	enum rpma_durability durability;
	char why[512];
	int rc = rpma_utils_get_durability(map->addr, map->size, &durability, why, sizeof(why));

	if (rc)
		return cli_fail(CLI_FILE, "%s: %s", path, rpma_err_last());
	info_print_path(path, st, durability, why, json);
	return CLI_OK;
}

/* Report on a new file in the folder. */
static int info_try_folder(const char *path, const struct stat *st, bool json)
{
	char inside[4096];
	struct mapfile map;
	struct error err;
	int rc, len = snprintf(inside, sizeof(inside), "%s/new", path);

	if (len < 0 || (size_t)len >= sizeof(inside))
		return cli_fail(CLI_FILE, "%s: %s", path, strerror(ENAMETOOLONG));
	if (mapfile_open_scratch(&map, inside, SAMPLE, &err))
		return cli_report(&err, "");
	rc = info_classify_path(path, st, &map, json);
	mapfile_close(&map);
	return rc;
}

static int info_try_file(const char *path, const struct stat *st, bool json)
{
	struct mapfile map;
	struct error err;
	int rc;

	if (!S_ISREG(st->st_mode))
		return cli_fail(CLI_FILE, "%s is neither a file nor a folder", path);
	if (st->st_size == 0)
		return cli_fail(CLI_FILE, "%s is empty; ask about its folder instead", path);
	if (mapfile_open_readonly(&map, path, &err))
		return cli_report(&err, "");
	rc = info_classify_path(path, st, &map, json);
	mapfile_close(&map);
	return rc;
}

int info_path(const char *path, bool json)
{
	struct stat st;

	if (stat(path, &st))
		return cli_fail(CLI_FILE, "%s: %s", path, strerror(errno));
	return S_ISDIR(st.st_mode) ? info_try_folder(path, &st, json)
				   : info_try_file(path, &st, json);
}
