/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <math.h>
#include <string.h>

#include "base/openmetrics_file.h"
#include "out.h"

/* The objects from which a sample is made: `set`, and `part`, which is the set, its register or
 * one of its members. */
struct metrics_at {
	const json_t *set, *part;
	/* set, member, a label of the metric, and the end mark */
	struct openmetrics_label labels[4];
};

enum metrics_scope { METRICS_SET, METRICS_REGISTER, METRICS_MEMBER, METRICS_LOCAL_MEMBER };

/* The kind of sample that is made from the key's value. */
enum metrics_kind {
	METRICS_NUMBER, /* the value is the number times `scale` */
	METRICS_FLAG,   /* 1 if true; 0 if false or absent */
	/* one sample for each word of `words`: 1 if the key has this text, else 0 */
	METRICS_STATE,
	METRICS_OTHER /* write() makes the sample */
};

struct metrics_row {
	struct openmetrics_family family;
	enum metrics_scope scope;
	enum metrics_kind kind;
	const char *key;
	double scale;
	const char *label, *const *words; /* label and words of METRICS_STATE */
	void (*write)(struct openmetrics *om, struct metrics_at *at);
};

static const char *const metrics_healths[] = {"healthy", "degraded", "blocked",
					      "split",   "down",     NULL};
static const char *const metrics_copies[] = {"empty",   "syncing", "stale", "unknown",
					     "in-sync", "failed",  NULL};
static const char *const metrics_links[] = {"local",     "down",    "connecting",
					    "connected", "refused", NULL};
static const char *const metrics_flows[] = {"none",      "replicating", "catching-up", "joining",
					    "verifying", "paused",      NULL};
static const char *const metrics_refusals[] = {"secret", "version", NULL};

static void metrics_put(struct openmetrics *om, struct metrics_at *at, const char *label,
			const char *word, double value)
{
	at->labels[2] = (struct openmetrics_label){label, word};
	openmetrics_sample(om, at->labels, value);
	at->labels[2] = (struct openmetrics_label){0};
}

static void metrics_put_members(struct openmetrics *om, struct metrics_at *at)
{
	const json_t *members = json_object_get(at->set, "members");

	if (members)
		openmetrics_sample(om, at->labels, (double)json_array_size(members));
}

static void metrics_put_insync(struct openmetrics *om, struct metrics_at *at)
{
	const json_t *members = json_object_get(at->set, "members"), *member;
	double count = 0;
	size_t i;

	json_array_foreach(members, i, member) count += json_flag(member, "insync");
	if (members)
		openmetrics_sample(om, at->labels, count);
}

/* A register also counts as not reached if the kernel would refuse an operation on it. */
static void metrics_put_register(struct openmetrics *om, struct metrics_at *at)
{
	openmetrics_sample(om, at->labels,
			   json_flag(at->part, "answers") && !json_object_get(at->part, "error"));
}

static void metrics_put_findings(struct openmetrics *om, struct metrics_at *at)
{
	const json_t *findings = json_object_get(at->set, "findings"), *range;
	double bytes = json_figure(findings, "more", 0);
	size_t i;

	json_array_foreach(json_object_get(findings, "ranges"), i, range) bytes +=
		json_figure(range, "length", 0);
	openmetrics_sample(om, at->labels, bytes);
}

static void metrics_put_events(struct openmetrics *om, struct metrics_at *at)
{
	json_t *events = json_object_get(at->set, "events"), *count;
	const char *what;

	json_object_foreach(events, what, count)
		metrics_put(om, at, "what", what, json_number_value(count));
}

static void metrics_put_quantile(struct openmetrics *om, struct metrics_at *at, const char *key,
				 const char *quantile)
{
	double us = json_figure(at->part, key, NAN);

	if (!isnan(us))
		metrics_put(om, at, "quantile", quantile, us / 1e6);
}

static void metrics_put_latency(struct openmetrics *om, struct metrics_at *at)
{
	if (strcmp(json_text(at->part, "role", ""), "primary") != 0)
		return;
	metrics_put_quantile(om, at, "flush_p50_us", "0.5");
	metrics_put_quantile(om, at, "flush_p99_us", "0.99");
}

static void metrics_put_copy_latency(struct openmetrics *om, struct metrics_at *at)
{
	if (strcmp(json_text(at->part, "role", ""), "primary") != 0)
		metrics_put_quantile(om, at, "flush_p99_us", "0.99");
}

static void metrics_put_primary(struct openmetrics *om, struct metrics_at *at)
{
	const char *primary = json_text(at->set, "primary", NULL);

	openmetrics_sample(om, at->labels,
			   primary && !strcmp(primary, json_text(at->part, "name", "")));
}

static void metrics_put_room(struct openmetrics *om, struct metrics_at *at, bool is_size)
{
	double avail, size;

	if (openmetrics_room(json_text(at->part, "path", ""), &avail, &size))
		openmetrics_sample(om, at->labels, is_size ? size : avail);
}

static void metrics_put_avail(struct openmetrics *om, struct metrics_at *at)
{
	metrics_put_room(om, at, false);
}

static void metrics_put_capacity(struct openmetrics *om, struct metrics_at *at)
{
	metrics_put_room(om, at, true);
}

static const struct openmetrics_family metrics_up =
	OM_GAUGE("rpmirror_up", "1 if rpmirrord of this host answers.", NULL);
static const struct openmetrics_family metrics_sets =
	OM_GAUGE("rpmirror_sets", "Sets of this host's configuration.", NULL);

/* The rows have the order of the table in rpmirror(1). */
static const struct metrics_row metrics_rows[] = {
	{OM_GAUGE("rpmirror_set_health", "1 for the health of the set, as this host sees it.",
		  NULL),
	 METRICS_SET, METRICS_STATE, "health", 0, "health", metrics_healths, NULL},
	{OM_GAUGE("rpmirror_set_progressing", "1 if the set is degraded and repairs itself.", NULL),
	 METRICS_SET, METRICS_FLAG, "progressing", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_set_removed",
		  "1 if this host's copy belongs to a member that the set has removed.", NULL),
	 METRICS_SET, METRICS_FLAG, "removed", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_set_epoch", "Number of the set's epoch.", NULL), METRICS_SET,
	 METRICS_NUMBER, "epoch", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_set_size_bytes", "Size of the set's file.", "bytes"), METRICS_SET,
	 METRICS_NUMBER, "size", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_set_members", "Members of the set.", NULL), METRICS_SET, METRICS_OTHER,
	 NULL, 0, NULL, NULL, metrics_put_members},
	{OM_GAUGE("rpmirror_set_insync_members", "Members that are in-sync by the register.", NULL),
	 METRICS_SET, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_insync},
	{OM_GAUGE("rpmirror_set_min_copies",
		  "Number of in-sync copies that flushes need; with fewer copies, flushes wait.",
		  NULL),
	 METRICS_SET, METRICS_NUMBER, "min_copies", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_set_slow_threshold_seconds",
		  "Limit of the set: a flush that takes longer counts as slow.", "seconds"),
	 METRICS_SET, METRICS_NUMBER, "slow_ms", 1e-3, NULL, NULL, NULL},
	{OM_COUNTER("rpmirror_set_blocked_seconds",
		    "Time for which this host has found the set blocked since its daemon started.",
		    "seconds"),
	 METRICS_SET, METRICS_NUMBER, "blocked_s", 1, NULL, NULL, NULL},
	{OM_COUNTER("rpmirror_events", "Events since the daemon started, by kind.", NULL),
	 METRICS_SET, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_events},
	{OM_GAUGE("rpmirror_set_findings_bytes",
		  "Bytes in which copies differ, found by comparisons of this host and not "
		  "repaired.",
		  "bytes"),
	 METRICS_SET, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_findings},
	{OM_GAUGE("rpmirror_register_reachable",
		  "1 if the register answers this host and does not refuse it.", NULL),
	 METRICS_REGISTER, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_register},
	{OM_GAUGE("rpmirror_register_members", "Members of the etcd cluster.", NULL),
	 METRICS_REGISTER, METRICS_NUMBER, "members", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_register_healthy_members", "Members of the etcd cluster that answer.",
		  NULL),
	 METRICS_REGISTER, METRICS_NUMBER, "healthy", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_copy_state", "1 for the state of the copy that its daemon reports.",
		  NULL),
	 METRICS_MEMBER, METRICS_STATE, "copy", 0, "state", metrics_copies, NULL},
	{OM_GAUGE("rpmirror_copy_link", "1 for the state of the link to the copy's host.", NULL),
	 METRICS_MEMBER, METRICS_STATE, "link", 0, "link", metrics_links, NULL},
	{OM_GAUGE("rpmirror_copy_flow", "1 for the operation on the copy that is in progress.",
		  NULL),
	 METRICS_MEMBER, METRICS_STATE, "flow", 0, "flow", metrics_flows, NULL},
	{OM_GAUGE("rpmirror_copy_refused",
		  "1 for the reason why the copy's daemon refuses this host.", NULL),
	 METRICS_MEMBER, METRICS_STATE, "refusal", 0, "reason", metrics_refusals, NULL},
	{OM_GAUGE("rpmirror_copy_insync", "1 if the register lists the copy as in-sync.", NULL),
	 METRICS_MEMBER, METRICS_FLAG, "insync", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_copy_primary", "1 if the member is the primary.", NULL), METRICS_MEMBER,
	 METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_primary},
	{OM_GAUGE("rpmirror_copy_local", "1 if the copy is on this host.", NULL), METRICS_MEMBER,
	 METRICS_FLAG, "local", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_copy_size_bytes", "Size of the copy's file.", "bytes"), METRICS_MEMBER,
	 METRICS_NUMBER, "size", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_copy_behind_bytes", "Bytes that are known to be missing in the copy.",
		  "bytes"),
	 METRICS_MEMBER, METRICS_NUMBER, "behind", 1, NULL, NULL, NULL},
	{OM_GAUGE("rpmirror_copy_resync_bytes_per_second", "Speed of the copy's resync.", NULL),
	 METRICS_MEMBER, METRICS_NUMBER, "rate", 1, NULL, NULL, NULL},
	{OM_COUNTER("rpmirror_flushes", "Flushes that the primary's process has begun.", NULL),
	 METRICS_MEMBER, METRICS_NUMBER, "flushes", 1, NULL, NULL, NULL},
	{OM_COUNTER("rpmirror_flushes_acknowledged",
		    "Flushes of the primary's process that are durable.", NULL),
	 METRICS_MEMBER, METRICS_NUMBER, "acked", 1, NULL, NULL, NULL},
	{OM_SUMMARY("rpmirror_flush_latency_seconds",
		    "Latency of recent flushes, without flushes that waited while the set was "
		    "blocked.",
		    "seconds"),
	 METRICS_MEMBER, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_latency},
	{OM_SUMMARY("rpmirror_copy_flush_latency_seconds",
		    "Time of recent flushes until this copy acknowledged them.", "seconds"),
	 METRICS_MEMBER, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_copy_latency},
	{OM_GAUGE("rpmirror_copy_filesystem_avail_bytes",
		  "Free space in the file system of this host's copy.", "bytes"),
	 METRICS_LOCAL_MEMBER, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_avail},
	{OM_GAUGE("rpmirror_copy_filesystem_size_bytes",
		  "Size of the file system of this host's copy.", "bytes"),
	 METRICS_LOCAL_MEMBER, METRICS_OTHER, NULL, 0, NULL, NULL, metrics_put_capacity},
};
#define METRICS_ROWS (sizeof(metrics_rows) / sizeof(metrics_rows[0]))

/* If a key is absent, the state is unknown, and no sample is written. The key of the refusals is an
 * exception: if this key is absent, nothing is refused, and all its samples are 0. */
static void metrics_write_states(struct openmetrics *om, const struct metrics_row *row,
				 struct metrics_at *at)
{
	const char *text = json_text(at->part, row->key, "");

	if (!*text && row->words != metrics_refusals)
		return;
	for (const char *const *word = row->words; *word; word++)
		metrics_put(om, at, row->label, *word, !strcmp(text, *word));
}

static void metrics_write_one(struct openmetrics *om, const struct metrics_row *row,
			      struct metrics_at *at)
{
	double value;

	switch (row->kind) {
	case METRICS_NUMBER:
		value = json_figure(at->part, row->key, NAN) * row->scale;
		if (!isnan(value))
			openmetrics_sample(om, at->labels, value);
		break;
	case METRICS_FLAG:
		openmetrics_sample(om, at->labels, json_flag(at->part, row->key));
		break;
	case METRICS_STATE:
		metrics_write_states(om, row, at);
		break;
	case METRICS_OTHER:
		row->write(om, at);
		break;
	}
}

static void metrics_write_members(struct openmetrics *om, const struct metrics_row *row,
				  struct metrics_at *at)
{
	const json_t *member;
	size_t i;

	json_array_foreach(json_object_get(at->set, "members"), i, member)
	{
		if (row->scope == METRICS_LOCAL_MEMBER && !json_flag(member, "local"))
			continue;
		at->part = member;
		at->labels[1] = (struct openmetrics_label){"member", json_text(member, "name", "")};
		metrics_write_one(om, row, at);
	}
}

static void metrics_write_set(struct openmetrics *om, const struct metrics_row *row,
			      const json_t *set)
{
	/* The value of the second label, the member's name, is set for each member. */
	struct metrics_at at = {.set = set,
				.part = set,
				.labels = {{"set", json_text(set, "set", "")}, {"member", NULL}}};

	if (row->scope >= METRICS_MEMBER) {
		metrics_write_members(om, row, &at);
		return;
	}
	if (row->scope == METRICS_REGISTER)
		at.part = json_object_get(set, "register");
	metrics_write_one(om, row, &at);
}

void metrics_write(struct openmetrics *om, const json_t *sets)
{
	const json_t *set;
	size_t i;

	openmetrics_family(om, &metrics_up);
	openmetrics_sample(om, NULL, sets != NULL);
	if (!sets)
		return;
	openmetrics_family(om, &metrics_sets);
	openmetrics_sample(om, NULL, (double)json_array_size(sets));
	for (unsigned n = 0; n < METRICS_ROWS; n++) {
		openmetrics_family(om, &metrics_rows[n].family);
		json_array_foreach(sets, i, set) metrics_write_set(om, &metrics_rows[n], set);
	}
}
