/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "poolset/place.h"
#include "poolset/settext.h"

/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
#define INSPECT_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Open the file. Returns -1 if the file is not regular, or cannot be read. */
static int inspect_open(const struct poolset_place *place, struct error *err)
{
	struct stat st;
	int fd;

	if (place_open(place, INSPECT_FLAGS, &fd, err))
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	error_set(err, ERROR_LOCAL, EINVAL, "%s is not a file", place->name);
	close(fd);
	return -1;
}

bool poolset_is_set(const struct poolset_place *place)
{
	char begin[SETTEXT_SIGNATURE_LEN];
	struct error err;
	int fd = inspect_open(place, &err);
	bool is_one = fd >= 0 && read(fd, begin, sizeof(begin)) == sizeof(begin) &&
		      !memcmp(begin, SETTEXT_SIGNATURE, sizeof(begin));

	if (fd >= 0)
		close(fd);
	return is_one;
}

static int inspect_read(int fd, const char *name, char **text, size_t *len, struct error *err)
{
	ssize_t n = 1;

	*len = 0;
	*text = malloc(SETTEXT_BYTES_MAX + 1);
	if (!*text)
		return error_set(err, ERROR_LOCAL, ENOMEM, "%s: not enough memory", name);
	while (n > 0 && *len <= SETTEXT_BYTES_MAX) {
		n = read(fd, *text + *len, SETTEXT_BYTES_MAX + 1 - *len);
		*len += n > 0 ? (size_t)n : 0;
	}
	if (n >= 0)
		return 0;
	return error_set(err, ERROR_LOCAL, errno, "cannot read %s: %s", name, strerror(errno));
}

static int inspect_parse(const struct poolset_place *place, struct settext *set, struct error *err)
{
	int fd = inspect_open(place, err), rc;
	char *text = NULL;
	size_t len;

	*set = (struct settext){0};
	if (fd < 0)
		return err->kind;
	rc = inspect_read(fd, place->name, &text, &len, err);
	if (!rc)
		rc = settext_parse(set, place->name, text, len, err);
	free(text);
	close(fd);
	return rc;
}

/* Only the first reason is reported. */
static void __attribute__((format(printf, 2, 3)))
inspect_complain(struct poolset_state *state, const char *fmt, ...)
{
	va_list ap;

	if (!state->is_usable)
		return;
	state->is_usable = false;
	va_start(ap, fmt);
	vsnprintf(state->why, sizeof(state->why), fmt, ap);
	va_end(ap);
}

/* Read the kernel's list of locks: taking a lock for a test would disturb other processes. */
static bool inspect_is_locked(const struct stat *st)
{
	FILE *locks = fopen("/proc/locks", "re");
	unsigned dev_major, dev_minor;
	bool is_locked = false;
	uint64_t inode;
	char line[256];

	while (locks && !is_locked && fgets(line, sizeof(line), locks))
		is_locked = sscanf(line, "%*s FLOCK %*s %*s %*d %x:%x:%" SCNu64, &dev_major,
				   &dev_minor, &inode) == 3 &&
			    dev_major == major(st->st_dev) && dev_minor == minor(st->st_dev) &&
			    inode == st->st_ino;
	if (locks)
		fclose(locks);
	return is_locked;
}

static void inspect_header(const char *path, struct poolset_state *state)
{
	uint8_t page[HEADER_BYTES];
	int fd = open(path, INSPECT_FLAGS);

	if (fd < 0 || pread(fd, page, sizeof(page), 0) != sizeof(page))
		inspect_complain(state, "cannot read %s: %s", path, strerror(errno));
	else if (header_is_zero(page))
		inspect_complain(state, "%s has no header: its creation was interrupted", path);
	else if (!header_is_intact(page))
		inspect_complain(state, "the header of %s is damaged", path);
	if (fd >= 0)
		close(fd);
}

static void inspect_part(const struct settext_part *part, bool has_header,
			 struct poolset_state *state)
{
	struct stat st;

	state->parts++;
	state->size += part->size;
	if (stat(part->path, &st)) {
		state->missing += errno == ENOENT;
		if (errno != ENOENT)
			inspect_complain(state, "%s: %s", part->path, strerror(errno));
		return;
	}
	/* A part of type directory or device has no fixed size to compare. Both count as
	 * present. */
	if (!S_ISREG(st.st_mode))
		return;
	if (part->size && (uint64_t)st.st_size != part->size)
		inspect_complain(state, "%s has %" PRIu64 " bytes instead of %" PRIu64, part->path,
				 (uint64_t)st.st_size, part->size);
	state->is_in_use |= inspect_is_locked(&st);
	if (has_header && !state->is_in_use) /* a pool in use may be in the middle of a change */
		inspect_header(part->path, state);
}

int poolset_inspect(const struct poolset_place *place, struct poolset_state *state,
		    struct error *err)
{
	struct settext set;
	int rc = inspect_parse(place, &set, err);

	*state = (struct poolset_state){.is_usable = true};
	for (unsigned i = 0; !rc && i < set.nparts; i++)
		inspect_part(&set.parts[i],
			     !(set.options & SETTEXT_NOHDRS) &&
				     (!i || !(set.options & SETTEXT_SINGLEHDR)),
			     state);
	if (!rc && state->missing && state->missing < state->parts)
		inspect_complain(state, "%u of its %u parts are missing", state->missing,
				 state->parts);
	if (!rc && state->missing == state->parts) /* none of the parts is created yet */
		state->is_usable = true;
	settext_fini(&set);
	return rc;
}
