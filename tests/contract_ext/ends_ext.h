/* SPDX-License-Identifier: BSD-3-Clause */
/* ends_ext.h -- includes ends.h, and adds helpers for the calls that are new after librpma 1.3. */
#ifndef CONTRACT_EXT_ENDS_EXT_H
#define CONTRACT_EXT_ENDS_EXT_H

#include "ends.h"

/* Returns the connection's counter of this name, which must exist. */
static inline uint64_t ends_counter(const struct rpma_conn *conn, const char *name)
{
	struct rpma_counter counters[64];
	size_t n = 64;

	OK(rpma_conn_get_counters(conn, counters, &n));
	for (size_t i = 0; i < n && i < 64; i++)
		if (!strcmp(counters[i].name, name))
			return counters[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

static inline bool ends_has_cap(const struct rpma_conn *conn, uint32_t cap)
{
	uint32_t caps;

	OK(rpma_conn_get_remote_caps(conn, &caps));
	return (caps & cap) == cap;
}

/* A file in the current directory, mapped and registered at the server. */
struct ends_file {
	char name[64];
	int fd;
	size_t size;
	bool is_on_medium; /* true if the file system writes pages back to a medium */
	uint8_t *map;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
};
void ends_file_open(struct ends_file *f, struct ends *d, size_t size);
void ends_file_close(struct ends_file *f);
/* Assert that the file contains these bytes: on the medium if there is one, otherwise in memory. */
void ends_file_expect(const struct ends_file *f, const void *bytes, size_t len, size_t at);
bool ends_file_is_direct(const struct ends_file *f);

#endif
