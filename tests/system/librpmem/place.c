/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/librpmem/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

char place_dir[512];
unsigned char *place_local;
RPMEMpool *place_pool;

const struct rpmem_pool_attr place_attr = {.signature = "TESTPOOL",
					   .major = 1,
					   .poolset_uuid = "poolset uuid...",
					   .uuid = "uuid...........",
					   .next_uuid = "next...........",
					   .prev_uuid = "prev...........",
					   .user_flags = "user flags....."};

static void place_write(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path, mode)) {
		perror(path);
		exit(1);
	}
}

/* The replacement for ssh runs the command like a shell on the target, and writes the process id of
 * rpmemd to a file. */
static void place_write_programs(void)
{
	char path[600], text[4096];

	snprintf(path, sizeof(path), "%s/ssh", place_dir);
	snprintf(text, sizeof(text),
		 "#!/bin/sh\nfor last; do :; done\n"
		 "[ -z \"$PLACE_SSH_ARGS\" ] || printf '%%s\\n' \"$@\" >\"$PLACE_SSH_ARGS\"\n"
		 "export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\nexec sh -c \"exec $last\"\n");
	place_write(path, text, 0755);
	snprintf(path, sizeof(path), "%s/rpmemd", place_dir);
	snprintf(
		text, sizeof(text),
		"#!/bin/sh\necho $$ >%s/daemon.tmp && mv %s/daemon.tmp %s/daemon.pid\n"
		"exec %s --poolset-dir %s/pools --log-file %s/log --log-level debug $PLACE_OPTIONS \"$@\"\n",
		place_dir, place_dir, place_dir, RPMEMD_PROGRAM, place_dir, place_dir);
	place_write(path, text, 0755);
}

void place_main(char **argv)
{
	const char *base = strrchr(argv[0], '/'), *variant = getenv("PLACE_VARIANT");
	char cwd[300], text[600];

	if (!getcwd(cwd, sizeof(cwd)))
		exit(1);
	snprintf(place_dir, sizeof(place_dir), "%s/place-%.100s%.50s", cwd,
		 base ? base + 1 : argv[0], variant ? variant : "");
	if (getenv("PLACE_READY"))
		return;
	mkdir(place_dir, 0755);
	place_write_programs();
	snprintf(text, sizeof(text), "%s/ssh", place_dir);
	setenv("RPMEM_SSH", getenv("PLACE_SSH") ? getenv("PLACE_SSH") : text, 1);
	snprintf(text, sizeof(text), "%s/rpmemd", place_dir);
	setenv("RPMEM_CMD", text, 1);
	setenv("RPMEM_ENABLE_SOCKETS", "1", 1);
	setenv("PLACE_READY", "1", 1);
	execv("/proc/self/exe", argv);
	exit(1);
}

const char *place_path(const char *name)
{
	static char path[1024];

	snprintf(path, sizeof(path), "%s/pools/%s", place_dir, name);
	return path;
}

void place_add_set(const char *name, const char *options, size_t size)
{
	char text[2048];

	snprintf(text, sizeof(text), "PMEMPOOLSET\n%s%zuB %s/pools/%s.part\n", options, size,
		 place_dir, name);
	place_write(place_path(name), text, 0644);
}

static void place_empty(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

int place_setup(void **state)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/pools", place_dir);
	mkdir(path, 0755);
	place_empty(path);
	snprintf(path, sizeof(path), "%s/daemon.pid", place_dir);
	unlink(path);
	place_add_set("pool.set", "", PLACE_POOL);
	place_local =
		mmap(NULL, PLACE_POOL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (place_local == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < PLACE_POOL; i++)
		place_local[i] = (unsigned char)(i * 7 + i / 4096);
	return 0;
}

int place_teardown(void **state)
{
	munmap(place_local, PLACE_POOL);
	return 0;
}

const unsigned char *place_map(const char *name, size_t *size)
{
	int fd = open(place_path(name), O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	assert_true(fd >= 0 && !fstat(fd, &st));
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(p != MAP_FAILED);
	if (size)
		*size = (size_t)st.st_size;
	return p;
}

void place_expect_log(const char *words)
{
	char path[600], text[600];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", place_dir);
	f = fopen(path, "r");
	assert_non_null(f);
	while (!found && fgets(text, sizeof(text), f))
		found = strstr(text, words);
	fclose(f);
	if (!found)
		fail_msg("the log lacks '%s'", words);
}

void place_use_ssh(const char *lines)
{
	char path[600], text[600];

	snprintf(path, sizeof(path), "%s/%s", place_dir, lines ? "other-ssh" : "ssh");
	if (lines) {
		snprintf(text, sizeof(text), "#!/bin/sh\n%s", lines);
		place_write(path, text, 0755);
	}
	setenv("RPMEM_SSH", path, 1);
}

static pid_t place_read_number(const char *path)
{
	FILE *f = fopen(path, "r");
	int n = 0;

	if (!f || fscanf(f, "%d", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

pid_t place_daemon(void)
{
	char path[600];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/daemon.pid", place_dir);
	while (!(pid = place_read_number(path)))
		usleep(1000);
	return pid;
}

pid_t place_child(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	return place_read_number(path);
}

void place_wait_gone(pid_t pid)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while ((f = fopen(path, "r"))) {
		char *paren = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
		bool zombie = paren && paren[2] == 'Z';

		fclose(f);
		if (zombie)
			return;
		usleep(1000);
	}
}

static RPMEMpool *place_must(RPMEMpool *rpp)
{
	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	return rpp;
}

RPMEMpool *place_create(const char *target)
{
	unsigned lanes = 8;

	return place_must(
		rpmem_create(target, "pool.set", place_local, PLACE_POOL, &lanes, &place_attr));
}

RPMEMpool *place_open(const char *target)
{
	unsigned lanes = 8;

	return place_must(rpmem_open(target, "pool.set", place_local, PLACE_POOL, &lanes, NULL));
}

int place_setup_pool(void **state)
{
	int rc = place_setup(state);

	place_pool = rc ? NULL : place_create("localhost");
	return rc;
}

int place_teardown_pool(void **state)
{
	RPMEM_OK(rpmem_close(place_pool));
	return place_teardown(state);
}
