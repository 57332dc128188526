/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * openmetrics.h -- builds a text of metrics for Prometheus.
 *
 * There are two forms. A scrape reads OpenMetrics 1.0. The textfile collector of node_exporter and
 * `promtool check metrics` read the older text format 0.0.4: in that format the name of a
 * counter's family ends with _total, and the lines UNIT and EOF are missing.
 *
 * No I/O. The writer owns its text. If memory runs out, openmetrics_end() reports the failure.
 */
#ifndef BASE_OPENMETRICS_H
#define BASE_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

enum openmetrics_form { OPENMETRICS_1_0, OPENMETRICS_TEXT_0_0_4 };

enum openmetrics_type { OPENMETRICS_GAUGE, OPENMETRICS_COUNTER, OPENMETRICS_SUMMARY };

/* A family: samples that stand together under one name. name: [a-zA-Z_][a-zA-Z0-9_]*, without
 * _total; the name ends with the unit, unless unit is NULL. help: one line. */
struct openmetrics_family {
	const char *name, *help, *unit;
	enum openmetrics_type type;
};

/* Initializers of a family. */
#define OM_GAUGE(name, help, unit)                                                                 \
	{                                                                                          \
		name, help, unit, OPENMETRICS_GAUGE                                                \
	}
#define OM_COUNTER(name, help, unit)                                                               \
	{                                                                                          \
		name, help, unit, OPENMETRICS_COUNTER                                              \
	}
#define OM_SUMMARY(name, help, unit)                                                               \
	{                                                                                          \
		name, help, unit, OPENMETRICS_SUMMARY                                              \
	}

struct openmetrics_label {
	const char *name,
		/* value: any bytes; in the text, '?' replaces invalid UTF-8 and control
		 * characters */
		*value;
};

struct openmetrics {
	enum openmetrics_form form;
	char *text; /* ends with a NUL */
	size_t len, size;
	const struct openmetrics_family *family; /* the family of the next samples */
	/* HELP and TYPE of the family are already written */
	bool has_head;
	bool has_failed; /* memory has run out */
};

void openmetrics_init(struct openmetrics *om, enum openmetrics_form form);
void openmetrics_fini(struct openmetrics *om);
/* Begin a family; the next samples belong to it. A family without a sample writes no line. */
void openmetrics_family(struct openmetrics *om, const struct openmetrics_family *family);
/* labels: a NULL name ends the array; a label with a NULL value is left out. */
void openmetrics_sample(struct openmetrics *om, const struct openmetrics_label *labels,
			double value);
/* Returns 0, or -ENOMEM: the text is not complete. */
int openmetrics_end(struct openmetrics *om);

#endif
