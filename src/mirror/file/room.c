/* SPDX-License-Identifier: BSD-3-Clause */
/* room.c -- extends the files of a copy before the set's size grows. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"
#include "mirror/core/killpoint.h"
#include "mirror/file/metafile.h"

/* Make the file at least `size` bytes long. *was gets the former length. */
static int room_extend(int fd, const char *path, uint64_t size, uint64_t *was, struct error *err)
{
	struct newfile_opts opts = {.path = path, .size = size};
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", path, strerror(errno));
	*was = (uint64_t)st.st_size;
	rc = newfile_reserve(fd, &opts, err);
	return rc ? rc : newfile_settle(fd, path, err);
}

/* Free the reserved blocks. A failure is harmless, because nothing uses these blocks. */
static void room_give_back(int fd, uint64_t was)
{
	struct stat st;

	if (!fstat(fd, &st) && (uint64_t)st.st_size > was && ftruncate(fd, (off_t)was))
		return;
}

static int room_cut(const struct metafile_room *room, struct error *err)
{
	struct stat st;

	if (fstat(room->data_fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", room->data, strerror(errno));
	if ((uint64_t)st.st_size > room->keep && ftruncate(room->data_fd, (off_t)room->keep))
		return error_set(err, ERROR_LOCAL, errno, "%s cannot be cut to %llu bytes: %s",
				 room->data, (unsigned long long)room->keep, strerror(errno));
	return 0;
}

int metafile_make_room(const struct metafile_room *room, struct error *err)
{
	uint64_t data_was = room->keep, meta_was = UINT64_MAX;
	int rc = room_cut(room, err);

	if (!rc)
		rc = room_extend(room->data_fd, room->data, room->size, &data_was, err);
	killpoint(KILLPOINT_grow_room_data);
	if (!rc)
		rc = room_extend(room->meta_fd, room->meta, meta_size_for(room->size), &meta_was,
				 err);
	if (rc) {
		room_give_back(room->data_fd, data_was);
		room_give_back(room->meta_fd, meta_was);
	}
	return rc;
}
