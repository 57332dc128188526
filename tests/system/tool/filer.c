/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filer -- calls librpmafile. It reads calls from standard input, one a line, and prints one line
 * for each: "ok", the result, or the name of the error and its text.
 */
#include <librpmafile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER (8u << 20)

static struct rpma_file *file;
static char buf[BUFFER];
static uint64_t ticket;

static const char *name_of(int rc)
{
	switch (rc) {
	case RPMA_E_INVAL:
		return "INVAL";
	case RPMA_E_NOSUPP:
		return "NOSUPP";
	case RPMA_E_AGAIN:
		return "AGAIN";
	case RPMA_FILE_E_UNREACHED:
		return "UNREACHED";
	case RPMA_FILE_E_REFUSED:
		return "REFUSED";
	case RPMA_FILE_E_LOST:
		return "LOST";
	case RPMA_FILE_E_MEDIUM:
		return "MEDIUM";
	case RPMA_FILE_E_GONE:
		return "GONE";
	case RPMA_FILE_E_DIFFERS:
		return "DIFFERS";
	case RPMA_FILE_E_TAKEN:
		return "TAKEN";
	default:
		return rpma_file_err_2str(rc);
	}
}

static void report(int rc)
{
	if (rc)
		printf("%s: %s\n", name_of(rc), rpma_file_errormsg());
	else
		puts("ok");
}

/* open TARGET [FROM LENGTH [RECONNECT_MS [TIMEOUT_MS [SECRET [OWNER]]]]]; "-" as SECRET means
 * none */
static int do_open(const char *line, uint32_t flags)
{
	struct rpma_file_options o = {.size = sizeof(o), .flags = flags, .timeout_ms = 10000};
	unsigned long long from = 0, length = 0;
	static char target[256], secret[256], owner[80];

	secret[0] = owner[0] = '\0';
	sscanf(line, "%*s %255s %llu %llu %d %d %255s %79s", target, &from, &length,
	       &o.reconnect_ms, &o.timeout_ms, secret, owner);
	o.write_offset = from;
	o.write_length = length;
	o.secret_file = secret[0] && strcmp(secret, "-") ? secret : NULL;
	o.owner = owner[0] ? owner : NULL;
	return rpma_file_open(target, &o, &file);
}

/* If the buffer has the same character LENGTH times, print this character; otherwise print
 * "mixed". */
static void do_buffer(unsigned long long length)
{
	for (size_t i = 1; i < length; i++)
		if (buf[i] != buf[0]) {
			printf("mixed at %zu\n", i);
			return;
		}
	printf("%c\n", buf[0] ? buf[0] : '0');
}

static void do_read(unsigned long long from, unsigned long long length)
{
	int rc = rpma_file_pread(file, buf, length, from);

	if (rc)
		report(rc);
	else
		do_buffer(length);
}

static void do_undecided(void)
{
	struct rpma_file_range ranges[64];
	size_t count = 64;

	if (rpma_file_get_undecided(file, ranges, &count)) {
		puts("failed");
		return;
	}
	printf("%zu:", count);
	for (size_t i = 0; i < count && i < 64; i++)
		printf(" %llu+%llu", (unsigned long long)ranges[i].offset,
		       (unsigned long long)ranges[i].length);
	puts("");
}

static void do_generation(void)
{
	uint64_t generation;

	if (rpma_file_get_generation(file, &generation))
		puts("failed");
	else
		printf("%llu\n", (unsigned long long)generation);
}

static void do_line(const char *line)
{
	unsigned long long a = 0, b = 0;
	char word[16], c = 0;

	sscanf(line, "%15s %llu %llu %c", word, &a, &b, &c);
	if (!strcmp(word, "open"))
		report(do_open(line, 0));
	else if (!strcmp(word, "open-volatile"))
		report(do_open(line, RPMA_FILE_VOLATILE_OK));
	else if (!strcmp(word, "open-readonly"))
		report(do_open(line, RPMA_FILE_READONLY));
	else if (!strcmp(word, "write"))
		report(rpma_file_pwrite(file, memset(buf, c, b), b, a));
	else if (!strcmp(word, "read"))
		do_read(a, b);
	else if (!strcmp(word, "start-read"))
		report(rpma_file_pread_start(file, memset(buf, '?', b), b, a, &ticket));
	else if (!strcmp(word, "buffer"))
		do_buffer(a);
	else if (!strcmp(word, "sync"))
		report(rpma_file_sync(file, &(struct rpma_file_range){a, b}, b ? 1 : 0));
	else if (!strcmp(word, "start"))
		report(rpma_file_sync_start(file, NULL, 0, &ticket));
	else if (!strcmp(word, "wait"))
		report(rpma_file_sync_wait(file, ticket, (int)a));
	else if (!strcmp(word, "store8"))
		report(rpma_file_store8(file, a, b));
	else if (!strcmp(word, "verify"))
		report(rpma_file_verify(file, memset(buf, c, b), b, a));
	else if (!strcmp(word, "undecided"))
		do_undecided();
	else if (!strcmp(word, "generation"))
		do_generation();
	else if (!strcmp(word, "reopen"))
		report(rpma_file_reopen(file));
	else if (!strcmp(word, "close"))
		report(rpma_file_close(&file));
	else
		puts("unknown");
}

int main(void)
{
	static char line[1024];

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin))
		do_line(line);
	return EXIT_SUCCESS;
}
