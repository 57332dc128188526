/* SPDX-License-Identifier: BSD-3-Clause */
#include "history_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct load {
	struct history_log *log;
	size_t first;   /* number of the first operation of this file */
	uint64_t epoch; /* epoch of the lines that follow */
};

/* Returns the next free operation. Until history_log_settle(), the member `end` of a write with an
 * unknown outcome is the number of its epoch. */
static struct history_op *load_op(struct history_log *log)
{
	if (!(log->count & (log->count - 1))) {
		log->ops =
			realloc(log->ops, (log->count ? 2 * log->count : 1) * sizeof(log->ops[0]));
		if (!log->ops)
			abort();
	}
	return &log->ops[log->count++];
}

static void load_epoch(struct load *l, uint64_t number, uint64_t began)
{
	struct history_log *log = l->log;

	log->epochs = realloc(log->epochs, (log->epoch_count + 1) * sizeof(log->epochs[0]));
	if (!log->epochs)
		abort();
	log->epochs[log->epoch_count++] = (struct history_epoch){number, began};
	l->epoch = number;
}

/* Record that the write of this value was acknowledged. */
static int load_acknowledged(struct load *l, uint64_t reg, uint64_t value, uint64_t end)
{
	for (size_t i = l->log->count; i-- > l->first;) {
		struct history_op *op = &l->log->ops[i];

		if (op->is_write && op->is_unsure && op->reg == reg && op->value == value) {
			op->is_unsure = false;
			op->end = end;
			l->log->acknowledged++;
			l->log->unsure--;
			return 0;
		}
	}
	return -EINVAL;
}

static int load_line(struct load *l, const char *line)
{
	uint64_t a, b, c, d;

	if (sscanf(line, "B %" SCNu64 " %" SCNu64, &a, &b) == 2) {
		load_epoch(l, a, b);
	} else if (sscanf(line, "w %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c) == 3) {
		*load_op(l->log) = (struct history_op){.reg = a,
						       .value = b,
						       .begin = c,
						       .end = l->epoch,
						       .is_write = true,
						       .is_unsure = true};
		l->log->unsure++;
	} else if (sscanf(line, "W %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c) == 3) {
		return load_acknowledged(l, a, b, c);
	} else if (sscanf(line, "R %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c, &d) ==
		   4) {
		*load_op(l->log) = (struct history_op){.reg = a, .value = b, .begin = c, .end = d};
		l->log->reads++;
	} else {
		return -EINVAL;
	}
	return 0;
}

int history_file_load(struct history_log *log, const char *path, unsigned *line)
{
	struct load l = {.log = log, .first = log->count};
	FILE *file = fopen(path, "r");
	char text[160];
	int rc = file ? 0 : -errno;

	for (*line = 1; !rc && fgets(text, sizeof(text), file); ++*line)
		rc = load_line(&l, text);
	if (file)
		fclose(file);
	return rc;
}

void history_log_settle(struct history_log *log)
{
	for (size_t i = 0; i < log->count; i++) {
		struct history_op *op = &log->ops[i];
		uint64_t end = UINT64_MAX;

		if (!op->is_unsure)
			continue;
		for (size_t k = 0; k < log->epoch_count; k++)
			if (log->epochs[k].number > op->end && log->epochs[k].began < end)
				end = log->epochs[k].began;
		op->end = end;
	}
}

void history_log_free(struct history_log *log)
{
	free(log->ops);
	free(log->epochs);
	*log = (struct history_log){0};
}
