/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror-kv -- a key-value store in a mirrored file: a change that was answered with "ok" is on
 * this host's disk and on every copy.
 *
 * usage: mirror-kv SET     commands from standard input, one on each line:
 *   set KEY VALUE   get KEY   count
 *
 * The file is a log. The program stores a record and flushes it. Then rpmirror_store8() stores the
 * eight bytes that are the log's length, and no copy ever has them without the record. So a crash
 * leaves only complete records, and no recovery is needed.
 */
#include <err.h>
#include <librpmirror.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct record {
	uint16_t key_len, value_len;
	char text[]; /* the key, then the value */
};

struct log {
	uint64_t used; /* length of all records in bytes; only rpmirror_store8() changes it */
	char records[];
};

static struct rpmirror *mirror;
static struct log *store;
static size_t room;

static void must(int ret, const char *what)
{
	if (ret)
		errx(1, "cannot %s: %s", what, rpmirror_errormsg());
}

static size_t record_size(const struct record *r)
{
	return (sizeof(*r) + r->key_len + r->value_len + 7) / 8 * 8;
}

/* The last record of a key is the valid one. */
static const struct record *find(const char *key)
{
	const struct record *found = NULL;

	for (uint64_t at = 0; at < store->used;) {
		const struct record *r = (const struct record *)(store->records + at);

		if (strlen(key) == r->key_len && !memcmp(r->text, key, r->key_len))
			found = r;
		at += record_size(r);
	}
	return found;
}

static void set(const char *key, const char *value)
{
	struct record *r = (struct record *)(store->records + store->used);
	struct record head = {(uint16_t)strlen(key), (uint16_t)strlen(value)};
	struct rpmirror_range range = {r, record_size(&head)};

	if (range.len > room - store->used) {
		puts("full");
		return;
	}
	*r = head;
	memcpy(r->text, key, head.key_len);
	memcpy(r->text + head.key_len, value, head.value_len);
	must(rpmirror_flush(mirror, &range, 1, 0, NULL), "flush a record");
	must(rpmirror_store8(mirror, &store->used, store->used + range.len), "count a record");
	puts("ok");
}

/* The record is certainly the newest only if this host is still the primary. */
static void get(const char *key)
{
	const struct record *r = find(key);
	char value[UINT16_MAX + 1] = "";

	if (r)
		memcpy(value, r->text + r->key_len, r->value_len);
	must(rpmirror_confirm(mirror), "be sure of what was read");
	puts(r ? value : "none");
}

static void count(void)
{
	uint64_t n = 0;

	for (uint64_t at = 0; at < store->used; n++)
		at += record_size((const struct record *)(store->records + at));
	must(rpmirror_confirm(mirror), "be sure of what was read");
	printf("%llu records\n", (unsigned long long)n);
}

int main(int argc, char **argv)
{
	char line[4096], key[1024], value[2048];
	void *addr;
	size_t size;

	if (argc != 2)
		errx(2, "usage: mirror-kv SET < commands");
	setvbuf(stdout, NULL, _IOLBF, 0);
	must(rpmirror_map(argv[1], NULL, RPMIRROR_MAP_WAIT, &mirror, &addr, &size), "map the set");
	store = addr;
	room = size - sizeof(*store);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "set %1023s %2047[^\n]", key, value) == 2)
			set(key, value);
		else if (sscanf(line, "get %1023s", key) == 1)
			get(key);
		else if (!strcmp(line, "count\n"))
			count();
		else
			puts("set KEY VALUE, get KEY or count");
	}
	must(rpmirror_unmap(&mirror), "unmap the set");
	return 0;
}
