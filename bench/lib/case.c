/* SPDX-License-Identifier: BSD-3-Clause */
#include "case.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

#define SIZE_MAX_BENCH (64u << 20)

static uint64_t case_number(const char *word, const char *value, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long n = strtoull(value, &end, 10);

	if (*end || end == value || n < min || n > max)
		die("%s: a number from %llu to %llu is needed", word, (unsigned long long)min,
		    (unsigned long long)max);
	return n;
}

static const char *case_one_of(const char *word, const char *value, const char *const *values)
{
	for (; *values; values++)
		if (strcmp(value, *values) == 0)
			return value;
	die("%s: no such value", word);
}

static bool case_polls(const char *word, const char *value)
{
	static const char *const ways[] = {"poll", "wait", NULL};

	return strcmp(case_one_of(word, value, ways), "poll") == 0;
}

static bool case_take_text(struct bench_case *c, const char *name, const char *value)
{
	const struct {
		const char *name, **to;
	} texts[] = {{"work", &c->work},    {"link", &c->link},           {"where", &c->where},
		     {"addr", &c->addr},    {"tgt_where", &c->tgt_where}, {"ini_ns", &c->ini_ns},
		     {"tgt_ns", &c->tgt_ns}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(name, texts[i].name) == 0) {
			*texts[i].to = value;
			return true;
		}
	}
	return false;
}

static bool case_take_number(struct bench_case *c, const char *name, const char *value,
			     const char *word)
{
	const struct {
		const char *name;
		unsigned *to, max;
	} numbers[] = {{"depth", &c->depth, 1024},
		       {"every", &c->every, 4096},
		       {"conns", &c->conns, 4096},
		       {"ms", &c->ms, 60000},
		       {"port", &c->port, 65535}};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(name, numbers[i].name) == 0) {
			*numbers[i].to = (unsigned)case_number(word, value, 1, numbers[i].max);
			return true;
		}
	}
	return false;
}

static void case_take(struct bench_case *c, const char *word, const char *name, const char *value)
{
	static const char *const crcs[] = {"on", "off", "auto", NULL};
	static const char *const flushes[] = {"visible", "persistent", NULL};

	if (case_take_text(c, name, value) || case_take_number(c, name, value, word))
		return;
	if (strcmp(name, "size") == 0)
		c->size = case_number(word, value, 1, SIZE_MAX_BENCH);
	else if (strcmp(name, "back") == 0)
		c->back = case_number(word, value, 1, SIZE_MAX_BENCH);
	else if (strcmp(name, "apart") == 0)
		c->apart = case_number(word, value, 1, SIZE_MAX_BENCH);
	else if (strcmp(name, "ini") == 0)
		c->ini_polls = case_polls(word, value);
	else if (strcmp(name, "tgt") == 0)
		c->tgt_polls = case_polls(word, value);
	else if (strcmp(name, "spin") == 0)
		c->spin = strcmp(value, "default") == 0 ? CASE_SPIN_DEFAULT
							: (int)case_number(word, value, 0, 1000000);
	else if (strcmp(name, "crc") == 0)
		c->crc = case_one_of(word, value, crcs);
	else if (strcmp(name, "flush") == 0)
		c->flush = case_one_of(word, value, flushes);
	else if (strcmp(name, "ini_cpu") == 0)
		c->ini_cpu = (int)case_number(word, value, 0, 4095);
	else if (strcmp(name, "tgt_cpu") == 0)
		c->tgt_cpu = (int)case_number(word, value, 0, 4095);
	else if (strcmp(name, "who") != 0)
		die("%s: no such name", word);
}

static void case_take_word(struct bench_case *c, char *word)
{
	char name[16];
	const char *value = strchr(word, '=');
	size_t len = value ? (size_t)(value - word) : 0;

	if (!len || len >= sizeof(name) || !value[1])
		die("%s: not of the form name=value", word);
	memcpy(name, word, len);
	name[len] = 0;
	case_take(c, word, name, value + 1);
}

void case_parse(struct bench_case *c, const char *who, int argc, char **argv)
{
	*c = (struct bench_case){.who = who,
				 .work = "",
				 .link = "loopback",
				 .size = 64,
				 .back = 32,
				 .depth = 1,
				 .every = 1,
				 .conns = 1,
				 .ms = 200,
				 .ini_polls = true,
				 .spin = CASE_SPIN_DEFAULT,
				 .crc = "auto",
				 .flush = "visible",
				 .where = "memory",
				 .addr = "127.0.0.1",
				 .ini_cpu = -1,
				 .tgt_cpu = -1};
	for (int i = 1; i < argc; i++)
		case_take_word(c, argv[i]);
}

bool case_is_work(const struct bench_case *c, const char *work)
{
	return strcmp(c->work, work) == 0;
}

bool case_is_persistent(const struct bench_case *c)
{
	return strcmp(c->flush, "persistent") == 0;
}

bool case_is_memory(const struct bench_case *c)
{
	return strcmp(c->where, "memory") == 0;
}

const char *case_target_where(const struct bench_case *c)
{
	return c->tgt_where ? c->tgt_where : c->where;
}

uint64_t case_ns(const struct bench_case *c)
{
	return (uint64_t)c->ms * 1000000;
}

uint64_t case_warmup_ns(const struct bench_case *c)
{
	return case_ns(c) / 5;
}
