/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An application that maps the set and executes commands, one a line. It answers each command with
 * "ok", a result, or the error's name and the library's text.
 *
 *   map | map-wait | map-direct | map-readonly | unmap
 *   put OFFSET NUMBER             store a number, and flush it
 *   begin OFFSET NUMBER, end      like put, but in two steps: start the flush, and wait for it
 *   get OFFSET                    print the number
 *   store OFFSET NUMBER           store a number without a flush
 *   flush OFFSET LEN
 *   pair OFFSET OFFSET LEN        flush two ranges by one call; an error names the members, too
 *   store8 OFFSET NUMBER | verify OFFSET LEN | confirm | state
 *   age                           print the age of a reader's data in ms, and the health
 *   events                        request the descriptor for events
 *   touch OFFSET
 *   sync | sync-range OFFSET LEN  sync the whole mapping, or a range
 *   size                          print the size of the mapping
 *   scatter BLOCKS FLUSHES        make FLUSHES flushes of BLOCKS blocks each, no block twice
 *   words COUNT                   call store8 for a word in each of COUNT blocks
 *   slow                          take all events, and print the number of SLOW events
 *   lost                          take all events, and print the text of the last LOST event
 *   exec                          execute this program again, which prints "executed"
 *   exec-other                    execute a program that never maps the set
 *   limit-files NUMBER            permit NUMBER more open files
 *   drop-rights                   before a map: let the access modes of files apply to root, too
 *
 * app_pages.c and app_files.c have more commands.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app.h"

struct rpmirror *app_set;
uint8_t *app_addr;
size_t app_len;
static struct rpmirror_result app_result;
static uint64_t app_ticket;

#define APP_BLOCK 4096u

void app_answer(int rc)
{
	if (rc)
		printf("%s: %s\n", rpmirror_err_2str(rc), rpmirror_errormsg());
	else
		printf("ok\n");
}

uint64_t *app_word(uint64_t offset)
{
	return (uint64_t *)(void *)(app_addr + offset);
}

static int app_map(unsigned flags)
{
	void *addr;
	size_t len;
	int rc = rpmirror_map("orders", NULL, flags, &app_set, &addr, &len);

	if (!rc) {
		app_addr = addr;
		app_len = len;
	}
	return rc;
}

static int app_begin(uint64_t offset, uint64_t value)
{
	struct rpmirror_range range = {app_word(offset), 8};

	__atomic_store_n(app_word(offset), value, __ATOMIC_RELEASE);
	return rpmirror_flush_start(app_set, &range, 1, 0, &app_ticket);
}

static void app_print_result(int rc)
{
	if (rc)
		app_answer(rc);
	else
		printf("durable %u flags %u\n", app_result.durable_mask, app_result.flags);
}

static void app_end(int rc)
{
	if (!rc)
		rc = rpmirror_flush_wait(app_set, app_ticket, -1, &app_result);
	app_print_result(rc);
}

static void app_flush(uint64_t offset, uint64_t len)
{
	struct rpmirror_range range = {app_word(offset), len};

	app_print_result(rpmirror_flush(app_set, &range, 1, 0, &app_result));
}

static void app_flush_pair(uint64_t one, uint64_t other, uint64_t len)
{
	struct rpmirror_range ranges[] = {{app_word(one), len}, {app_word(other), len}};
	int rc = rpmirror_flush(app_set, ranges, 2, 0, &app_result);

	if (rc && rc != RPMIRROR_E_INVAL)
		printf("%s: durable %u flags %u: %s\n", rpmirror_err_2str(rc),
		       app_result.durable_mask, app_result.flags, rpmirror_errormsg());
	else
		app_print_result(rc);
}

/* Returns a block that was not flushed before. Its neighbours are returned much later. */
static uint8_t *app_next_block(void)
{
	static uint64_t n;

	/* 2647 is a prime, so each block is returned once. */
	return app_addr + n++ * 2647 % (app_len / APP_BLOCK) * APP_BLOCK;
}

static int app_scatter(uint64_t blocks, uint64_t flushes)
{
	struct rpmirror_range v[64];
	int rc = 0;

	for (; flushes && blocks <= 64 && !rc; flushes--) {
		for (uint64_t i = 0; i < blocks; i++) {
			v[i] = (struct rpmirror_range){app_next_block(), APP_BLOCK};
			memset((void *)(uintptr_t)v[i].addr, (int)flushes, APP_BLOCK);
		}
		rc = rpmirror_flush(app_set, v, (unsigned)blocks, 0, NULL);
	}
	return rc;
}

static int app_store_words(uint64_t count)
{
	int rc = 0;

	for (; count && !rc; count--)
		rc = rpmirror_store8(app_set, (uint64_t *)(void *)app_next_block(), count);
	return rc;
}

static void app_verify(uint64_t offset, uint64_t len)
{
	struct rpmirror_range range = {app_word(offset), len};

	app_print_result(rpmirror_flush_verify(app_set, &range, 1, &app_result));
}

static void app_print_state(void)
{
	struct rpmirror_state st = {.size = sizeof(st)};
	int rc = rpmirror_get_state(app_set, &st);

	if (rc)
		app_answer(rc);
	else
		printf("epoch %" PRIu64 " insync %u role %u health %u age %d flush %" PRIu64 "\n",
		       st.epoch, st.insync_mask, st.role, st.health, st.age_ms != UINT64_MAX,
		       st.flush_seq);
}

static void app_print_age(void)
{
	struct rpmirror_state st = {.size = sizeof(st)};
	int rc = rpmirror_get_state(app_set, &st);

	if (rc)
		app_answer(rc);
	else
		printf("%" PRIu64 " health %u\n", st.age_ms, st.health);
}

static void app_print_slow(void)
{
	struct rpmirror_event event = {.size = sizeof(event)};
	unsigned count = 0;

	while (!rpmirror_next_event(app_set, &event))
		count += event.type == RPMIRROR_EVENT_SLOW;
	printf("%u\n", count);
}

static void app_print_lost(void)
{
	struct rpmirror_event event = {.size = sizeof(event)};
	char text[sizeof(event.text)] = "nobody";

	while (!rpmirror_next_event(app_set, &event))
		if (event.type == RPMIRROR_EVENT_LOST)
			memcpy(text, event.text, sizeof(text));
	printf("%s\n", text);
}

static void app_drop_rights(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data)) {
		printf("capget: %s\n", strerror(errno));
		return;
	}
	data[0].effective &= ~(CAP_TO_MASK(CAP_DAC_OVERRIDE) | CAP_TO_MASK(CAP_DAC_READ_SEARCH));
	printf("%s\n", syscall(SYS_capset, &header, data) ? strerror(errno) : "ok");
}

/* Let the process open this many more files. */
static int app_limit_files(uint64_t more)
{
	struct rlimit limit;
	unsigned used = 0;
	struct dirent *entry;
	DIR *dir;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return RPMIRROR_E_UNKNOWN;
	dir = opendir("/proc/self/fd");
	while ((entry = readdir(dir)))
		used += entry->d_name[0] != '.';
	closedir(dir);
	limit.rlim_cur = used - 1 + more;
	return setrlimit(RLIMIT_NOFILE, &limit) ? RPMIRROR_E_UNKNOWN : 0;
}

static void app_do(const char *line)
{
	uint64_t offset, value, len;

	if (app_pages_do(line) || app_files_do(line)) {
		/* the command has printed its answer */
	} else if (!strncmp(line, "drop-rights", 11)) {
		app_drop_rights();
	} else if (!strncmp(line, "map-readonly", 12)) {
		app_answer(app_map(RPMIRROR_MAP_READONLY | RPMIRROR_MAP_STALE_OK));
	} else if (!strncmp(line, "map-wait", 8)) {
		app_answer(app_map(RPMIRROR_MAP_WAIT));
	} else if (!strncmp(line, "map-direct", 10)) {
		app_answer(app_map(RPMIRROR_MAP_WAIT | RPMIRROR_MAP_DIRECT));
	} else if (!strncmp(line, "map", 3)) {
		app_answer(app_map(0));
	} else if (sscanf(line, "limit-files %" SCNu64, &value) == 1) {
		app_answer(app_limit_files(value));
	} else if (!strncmp(line, "exec-other", 10)) {
		execlp("sleep", "sleep", "1000", NULL);
	} else if (!strncmp(line, "exec", 4)) {
		execl("/proc/self/exe", "mirror_app", "executed", NULL);
	} else if (!strncmp(line, "unmap", 5)) {
		app_answer(rpmirror_unmap(&app_set));
	} else if (!app_set) {
		printf("nothing is mapped\n");
	} else if (sscanf(line, "put %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		app_end(app_begin(offset, value));
	} else if (sscanf(line, "flush %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		app_flush(offset, value);
	} else if (sscanf(line, "pair %" SCNu64 " %" SCNu64 " %" SCNu64, &offset, &value, &len) ==
		   3) {
		app_flush_pair(offset, value, len);
	} else if (sscanf(line, "scatter %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		app_answer(app_scatter(offset, value));
	} else if (sscanf(line, "words %" SCNu64, &value) == 1) {
		app_answer(app_store_words(value));
	} else if (sscanf(line, "store8 %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		app_answer(rpmirror_store8(app_set, app_word(offset), value));
	} else if (sscanf(line, "verify %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		app_verify(offset, value);
	} else if (sscanf(line, "begin %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		app_answer(app_begin(offset, value));
	} else if (!strncmp(line, "end", 3)) {
		app_end(0);
	} else if (sscanf(line, "store %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		__atomic_store_n(app_word(offset), value, __ATOMIC_RELEASE);
		app_answer(0);
	} else if (sscanf(line, "get %" SCNu64, &offset) == 1) {
		printf("%" PRIu64 "\n", *app_word(offset));
	} else if (!strncmp(line, "protect", 7)) {
		app_answer(mprotect(app_word(0), 4096, PROT_READ));
	} else if (sscanf(line, "touch %" SCNu64, &offset) == 1) {
		app_answer(rpmirror_touch(app_set, app_word(offset), 8));
	} else if (sscanf(line, "sync-range %" SCNu64 " %" SCNu64, &offset, &value) == 2) {
		app_answer(rpmirror_sync(app_set, app_word(offset), value));
	} else if (!strncmp(line, "sync", 4)) {
		app_answer(rpmirror_sync(app_set, NULL, 0));
	} else if (!strncmp(line, "confirm", 7)) {
		app_answer(rpmirror_confirm(app_set));
	} else if (!strncmp(line, "age", 3)) {
		app_print_age();
	} else if (!strncmp(line, "events", 6)) {
		app_answer(rpmirror_get_fd(app_set, &(int){0}));
	} else if (!strncmp(line, "state", 5)) {
		app_print_state();
	} else if (!strncmp(line, "lost", 4)) {
		app_print_lost();
	} else if (!strncmp(line, "size", 4)) {
		printf("ok %zu\n", app_len);
	} else if (!strncmp(line, "slow", 4)) {
		app_print_slow();
	} else {
		printf("what?\n");
	}
}

int main(int argc, char **argv)
{
	char line[256];

	setlinebuf(stdout);
	if (argc > 1)
		printf("%s\n", argv[1]);
	while (fgets(line, sizeof(line), stdin))
		app_do(line);
	return 0;
}
