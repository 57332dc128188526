/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands about pages of the set's file that this process cannot read. lib/bad_pages.h makes the
 * pages unreadable; the file is on tmpfs, and the test makes holes in it. Commands:
 *
 *   handler            before a map: handle SIGBUS and SIGSEGV by a jump back to the command
 *   try OFFSET NUMBER  store a number, without a flush; prints "stored", or "signal" if handled
 *   elsewhere          cause a fault outside the set
 *   watch PATH         from now on, holes of this file raise SIGBUS
 *   poison OFFSET      make the memory of the page bad, even if it is a private copy
 *   fill OFFSET LEN    store a pattern, and flush it
 *   right OFFSET LEN   print how many pages have the pattern
 *   read OFFSET        print "value N", or "signal" if the handler ran
 *   back OFFSET        like read, with rpmirror_set_backtrack(); "back" if the library jumped there
 *   errors             take the pending errors, and print
 *                      "COUNT dirty D repaired R: BYTES from OFFSET: TEXT of the last one"
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app.h"
#include "lib/bad_pages.h"

#define PAGE 4096u

/* ---- pages that cannot be read ---- */

static int pages_watch;

static bool pages_is_of_app(uintptr_t at)
{
	return at - (uintptr_t)app_addr < app_len;
}

/* Also watch the library's own mappings of the file, if there are any. */
static bool pages_watch_others(const char *path)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long start, end;
	char line[1024];
	bool is_done = maps != NULL;

	while (maps && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%llx-%llx", &start, &end) == 2 && strstr(line, path) &&
		    !strcmp(strstr(line, path), path) && !pages_is_of_app(start))
			is_done = bad_pages_watch((void *)(uintptr_t)start, end - start) >= 0 &&
				  is_done;
	}
	if (maps)
		fclose(maps);
	return is_done;
}

static void pages_do_watch(const char *path)
{
	pages_watch = bad_pages_watch(app_addr, app_len);
	printf(pages_watch >= 0 && pages_watch_others(path) ? "ok\n" : "cannot\n");
}

/* ---- reads ---- */

static sigjmp_buf pages_jump, pages_point;
static void *volatile pages_at;

static void pages_on_signal(int sig, siginfo_t *info, void *uctx)
{
	pages_at = info->si_addr;
	siglongjmp(pages_jump, 1);
}

static void pages_do_handler(void)
{
	struct sigaction sa = {.sa_sigaction = pages_on_signal, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	printf("ok\n");
}

static void pages_read(const uint64_t *word)
{
	if (!sigsetjmp(pages_jump, 1))
		printf("value %" PRIu64 "\n", __atomic_load_n(word, __ATOMIC_RELAXED));
	else
		printf(pages_at == word ? "signal\n" : "signal of something else\n");
}

static void pages_do_elsewhere(void)
{
	int fd = memfd_create("elsewhere", MFD_CLOEXEC);
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

	pages_read(p); /* this address is past the end of the file */
	munmap(p, PAGE);
	close(fd);
}

static void pages_do_back(const uint64_t *word)
{
	rpmirror_set_backtrack(app_set, &pages_point);
	if (!sigsetjmp(pages_point, 1))
		pages_read(word);
	else
		printf("back\n");
	rpmirror_set_backtrack(app_set, NULL);
}

/* ---- a pattern ---- */

static uint64_t pages_pattern(uint64_t offset)
{
	return (offset + 1) * 0x9e3779b97f4a7c15;
}

static void pages_do_fill(uint64_t offset, uint64_t len)
{
	struct rpmirror_range range = {app_word(offset), len};

	for (uint64_t at = offset; at < offset + len; at += 8)
		*app_word(at) = pages_pattern(at);
	app_answer(rpmirror_flush(app_set, &range, 1, 0, NULL));
}

static bool pages_is_right(uint64_t offset)
{
	for (uint64_t at = offset; at < offset + PAGE; at += 8)
		if (__atomic_load_n(app_word(at), __ATOMIC_RELAXED) != pages_pattern(at))
			return false;
	return true;
}

static void pages_do_right(uint64_t offset, uint64_t len)
{
	volatile unsigned count = 0;

	if (!sigsetjmp(pages_jump, 1))
		for (uint64_t at = offset; at < offset + len; at += PAGE)
			count += pages_is_right(at);
	printf("%u\n", count);
}

/* ---- stores ---- */

static void pages_try_store(uint64_t *word, uint64_t value)
{
	if (sigsetjmp(pages_jump, 1)) {
		printf(pages_at == word ? "signal\n" : "signal at another place\n");
		return;
	}
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	printf("stored\n");
}

/* ---- errors ---- */

static void pages_do_errors(void)
{
	struct rpmirror_error e = {.size = sizeof(e)};
	unsigned count = 0, dirty = 0, repaired = 0;
	uint64_t bytes = 0, offset = UINT64_MAX;

	e.text[0] = '\0';
	for (; !rpmirror_get_error(app_set, &e); count++) {
		dirty += e.dirty;
		repaired += e.repaired;
		bytes += e.len;
		offset = e.offset < offset ? e.offset : offset;
	}
	printf("%u dirty %u repaired %u: %" PRIu64 " from %" PRIu64 ": %s\n", count, dirty,
	       repaired, bytes, offset, e.text);
}

bool app_pages_do(const char *line)
{
	uint64_t offset, len;
	char path[1024];

	if (!strncmp(line, "handler", 7))
		pages_do_handler();
	else if (!strncmp(line, "elsewhere", 9))
		pages_do_elsewhere();
	else if (!app_set)
		return false;
	else if (sscanf(line, "watch %1023s", path) == 1)
		pages_do_watch(path);
	else if (sscanf(line, "poison %" SCNu64, &offset) == 1)
		printf(bad_pages_poison(pages_watch, app_word(offset)) ? "ok\n" : "cannot\n");
	else if (sscanf(line, "fill %" SCNu64 " %" SCNu64, &offset, &len) == 2)
		pages_do_fill(offset, len);
	else if (sscanf(line, "right %" SCNu64 " %" SCNu64, &offset, &len) == 2)
		pages_do_right(offset, len);
	else if (sscanf(line, "read %" SCNu64, &offset) == 1)
		pages_read(app_word(offset));
	else if (sscanf(line, "back %" SCNu64, &offset) == 1)
		pages_do_back(app_word(offset));
	else if (sscanf(line, "try %" SCNu64 " %" SCNu64, &offset, &len) == 2)
		pages_try_store(app_word(offset), len);
	else if (!strncmp(line, "errors", 6))
		pages_do_errors();
	else
		return false;
	return true;
}
