/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli.h"
#include "mapfile.h"
#include "newfile.h"

static int create_file(struct mapfile *map, const struct mapfile_wish *wish)
{
	struct newfile nf;
	int rc;

	if (!access(wish->path, F_OK))
		return cli_fail(CLI_FILE,
				"%s exists already; leave out --create to serve it as it is",
				wish->path);
	rc = newfile_open(&nf, wish->path, wish->size);
	if (rc)
		return rc;
	rc = newfile_commit(&nf, false);
	if (rc) {
		newfile_abort(&nf);
		return rc;
	}
	map->fd = nf.fd;
	map->size = wish->size;
	map->made = wish->path;
	return CLI_OK;
}

static int check_existing(struct mapfile *map, const struct mapfile_wish *wish)
{
	struct stat st;
	int rc;

	if (fstat(map->fd, &st))
		return cli_fail(CLI_FILE, "%s: %s", wish->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return cli_fail(CLI_FILE, "%s is not a regular file; only files can be served",
				wish->path);
	if (st.st_size == 0)
		return cli_fail(CLI_FILE, "%s is empty; use --create --size to make a file",
				wish->path);
	if (wish->size > (uint64_t)st.st_size)
		return cli_fail(CLI_FILE, "%s is too small: it has %s, --size asks for %s",
				wish->path, text_size((uint64_t)st.st_size).text,
				text_size(wish->size).text);
	map->size = wish->size ? wish->size : (uint64_t)st.st_size;
	/* A hole would be filled by a remote write, when it is too late to say "disk full". */
	rc = newfile_reserve(map->fd, wish->path, map->size);
	/* Flushed bytes are worth nothing in a file whose name or size a crash takes away. */
	return rc ? rc : newfile_settle(map->fd, wish->path);
}

static int open_existing(struct mapfile *map, const struct mapfile_wish *wish)
{
	/* O_NONBLOCK: opening a pipe must fail as "not a regular file", not wait for a reader */
	map->fd = open(wish->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (map->fd >= 0)
		return check_existing(map, wish);
	if (errno == ENOENT)
		return cli_fail(CLI_FILE, "%s does not exist; use --create --size to make it",
				wish->path);
	if (errno == EISDIR)
		return cli_fail(CLI_FILE, "%s is not a regular file; only files can be served",
				wish->path);
	return cli_fail(CLI_FILE, "cannot open %s: %s", wish->path, strerror(errno));
}

static int map_shared(struct mapfile *map, const char *path, int prot)
{
	/* MAP_SYNC is refused unless the pages are the medium itself. */
	map->addr = mmap(NULL, map->size, prot, MAP_SHARED_VALIDATE | MAP_SYNC, map->fd, 0);
	if (map->addr == MAP_FAILED)
		map->addr = mmap(NULL, map->size, prot, MAP_SHARED, map->fd, 0);
	if (map->addr == MAP_FAILED) {
		map->addr = NULL;
		return cli_fail(CLI_FILE, "cannot map %s of %s: %s", text_size(map->size).text,
				path, strerror(errno));
	}
	return CLI_OK;
}

static int map_for_service(struct mapfile *map, const char *path)
{
	int rc = map_shared(map, path, PROT_READ | PROT_WRITE);

	if (rc)
		return rc;
	rc = rpma_utils_get_durability(map->addr, map->size, &map->durability, NULL, 0);
	if (rc)
		return cli_fail(CLI_FILE, "cannot tell how durable %s is: %s", path,
				rpma_err_2str(rc));
	/* Pages are brought in now, not while a client waits. Clean, since msync would
	 * write-protect them again anyway. Kernels before 5.14 do without. */
	madvise(map->addr, map->size, MADV_POPULATE_READ);
	return CLI_OK;
}

int mapfile_open(struct mapfile *map, const struct mapfile_wish *wish)
{
	int rc;

	memset(map, 0, sizeof(*map));
	map->fd = -1;
	rc = wish->create ? create_file(map, wish) : open_existing(map, wish);
	if (!rc && flock(map->fd, LOCK_EX | LOCK_NB))
		rc = cli_fail(CLI_FILE, "%s is being served already", wish->path);
	if (!rc)
		rc = map_for_service(map, wish->path);
	if (rc)
		mapfile_discard(map);
	return rc;
}

int mapfile_open_scratch(struct mapfile *map, const char *beside, uint64_t size)
{
	struct newfile nf;
	int rc = newfile_open(&nf, beside, size);

	memset(map, 0, sizeof(*map));
	map->fd = -1;
	if (rc)
		return rc;
	if (nf.temp[0])
		unlink(nf.temp);
	map->fd = nf.fd;
	map->size = size;
	rc = map_for_service(map, beside);
	if (rc)
		mapfile_close(map);
	return rc;
}

int mapfile_open_readonly(struct mapfile *map, const char *path)
{
	struct stat st;
	int rc;

	*map = (struct mapfile){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (map->fd < 0 || fstat(map->fd, &st)) {
		rc = cli_fail(CLI_FILE, "cannot open %s: %s", path, strerror(errno));
	} else {
		map->size = (uint64_t)st.st_size;
		rc = map_shared(map, path, PROT_READ);
	}
	if (rc)
		mapfile_close(map);
	return rc;
}

void mapfile_close(struct mapfile *map)
{
	if (map->addr)
		munmap(map->addr, map->size);
	if (map->fd >= 0)
		close(map->fd);
	map->addr = NULL;
	map->fd = -1;
}

void mapfile_discard(struct mapfile *map)
{
	if (map->made)
		unlink(map->made);
	map->made = NULL;
	mapfile_close(map);
}
