/* SPDX-License-Identifier: BSD-3-Clause */
#include "show.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "out.h"
#include "survive.h"

#define SHOW_TIME_MAX 253402300799u /* the end of the year 9999 */

/* A printable word or sentence, made from a text of another process. */
struct show_text {
	char text[512];
};

static struct show_text show_get(const json_t *object, const char *key, const char *dflt)
{
	struct show_text t;

	snprintf(t.text, sizeof(t.text), "%s", json_text(object, key, dflt));
	text_make_printable(t.text);
	return t;
}

/* Returns the time of an object, which is in seconds since 1970, as a text in UTC. */
static struct show_text show_time(const json_t *object)
{
	time_t when = (time_t)json_count(object, "time", SHOW_TIME_MAX, 0);
	struct show_text t = {"?"};
	struct tm tm;

	if (gmtime_r(&when, &tm))
		strftime(t.text, sizeof(t.text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return t;
}

static struct show_text show_word_of(const char *word)
{
	struct show_text t;

	snprintf(t.text, sizeof(t.text), "%s", word);
	text_make_printable(t.text);
	return t;
}

static struct show_text show_word(const json_t *word)
{
	return show_word_of(json_is_string(word) ? json_string_value(word) : "?");
}

static void show_sentence(const json_t *object, const char *key, const char *label)
{
	struct show_text t = show_get(object, key, "");

	if (t.text[0])
		printf("  %s: %s\n", label, t.text);
}

static void show_head(const json_t *set)
{
	const json_t *store = json_object_get(set, "register");
	struct survive_facts facts;
	char sentence[256];

	survive_facts_of(set, &facts);
	survive_text(&facts, sentence, sizeof(sentence));
	printf("%s   %s   epoch %.0f.%.0f", show_get(set, "set", "?").text,
	       show_get(set, "health", "?").text, json_figure(set, "epoch", 0),
	       json_figure(set, "seq", 0));
	if (json_flag(set, "forced"))
		printf(" forced");
	if (json_text(set, "primary", NULL))
		printf("   primary %s", show_get(set, "primary", "").text);
	else
		printf("   no primary");
	if (json_object_get(set, "pid"))
		printf(" (pid %.0f)", json_figure(set, "pid", 0));
	if (!strcmp(json_text(set, "phase", ""), "recovering"))
		printf(", recovering");
	printf("   %u cop%s, register %s", facts.copies, facts.copies == 1 ? "y" : "ies",
	       show_get(store, "kind", "?").text);
	if (facts.register_members)
		printf(" %u of %u", facts.register_healthy, facts.register_members);
	printf(": %s\n", sentence);
}

/* Returns one word about a member: its role if it is not secondary, else its flow or its link. */
static const char *show_activity(const json_t *member)
{
	const char *role = json_text(member, "role", "secondary");
	const char *flow = json_text(member, "flow", "none");

	if (strcmp(role, "secondary") != 0)
		return role;
	return strcmp(flow, "none") != 0 ? flow : json_text(member, "link", "?");
}

static void show_progress(const json_t *member)
{
	double behind = json_figure(member, "behind", 0), rate = json_figure(member, "rate", 0);

	printf(" %.0f B behind", behind);
	if (rate <= 0)
		return;
	printf(", %.1f MiB/s", rate / (1 << 20));
	printf(", %.0f s left", behind / rate);
}

/*
 * Returns the state of a member's copy. The member's daemon reports the copy's state, the register
 * decides whether the copy is in-sync, and either may change first. The register's state is used,
 * so that a line does not contradict itself.
 */
static const char *show_copy(const json_t *member, bool is_serving)
{
	const char *copy = json_text(member, "copy", "?");

	if (!json_flag(member, "insync"))
		return strcmp(copy, "in-sync") ? copy : "excluded";
	return is_serving && !strcmp(copy, "syncing") ? "in-sync" : copy;
}

/* Print that a member is smaller than the set. The member gets the set's size when no process maps
 * the set. */
static void show_smaller(const json_t *member, uint64_t set_size)
{
	uint64_t size = json_count(member, "size", MIRROR_SIZE_MAX, set_size);

	if (size < set_size && size > 0)
		printf("   %s of %s", text_size(size).text, text_size(set_size).text);
}

static void show_member(const json_t *set, const json_t *member, int width)
{
	struct show_text name = show_get(member, "name", "?");
	bool is_serving = !strcmp(json_text(set, "phase", ""), "serving");
	struct show_text copy = show_word_of(show_copy(member, is_serving));
	bool joined =
		strcmp(json_text(member, "copy", "?"), copy.text) && json_flag(member, "insync");
	bool local = json_flag(member, "local");
	char activity[32];

	snprintf(activity, sizeof(activity), "%s", show_activity(member));
	text_make_printable(activity);
	printf("  %-*s  %-8s %-12s", width, name.text, copy.text, activity);
	if (local)
		printf(" local  %s", show_get(member, "path", "").text);
	if (json_object_get(member, "behind") && !joined &&
	    (!local || json_figure(member, "behind", 0) > 0))
		show_progress(member);
	if (json_object_get(member, "flush_p50_us"))
		printf("   flush p50 %.0fus p99 %.0fus", json_figure(member, "flush_p50_us", 0),
		       json_figure(member, "flush_p99_us", 0));
	show_smaller(member, json_count(set, "size", MIRROR_SIZE_MAX, 0));
	if (json_text(member, "reason", NULL))
		printf("   %s", show_get(member, "reason", "").text);
	printf("\n");
}

/* Print the progress of the running comparison. */
static void show_verify(const json_t *set)
{
	const json_t *verify = json_object_get(set, "verify");

	if (verify)
		printf("  compared %.0f of %.0f bytes, %.0f differ\n",
		       json_figure(verify, "compared", 0), json_figure(verify, "total", 0),
		       json_figure(verify, "different", 0));
}

static void show_scrub(const json_t *set)
{
	const json_t *scrub = json_object_get(set, "scrub");

	if (!scrub)
		return;
	printf("  last scrub %s: %.0f bytes, %.0f differed\n", show_time(scrub).text,
	       json_figure(scrub, "compared", 0), json_figure(scrub, "different", 0));
}

static void show_finding(const json_t *finding)
{
	static const struct {
		const char *wrong, *means;
	} words[] = {
		{"primary", "the primary's copy differs from a majority that agrees"},
		{"member", "a majority agrees with the primary's copy"},
	};
	const char *wrong = json_text(finding, "wrong", ""),
		   *means = "no majority agrees, so the right copy is unknown";
	const json_t *member;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(wrong, words[i].wrong))
			means = words[i].means;
	printf("  offset %.0f length %.0f differs at", json_figure(finding, "offset", 0),
	       json_figure(finding, "length", 0));
	json_array_foreach(json_object_get(finding, "members"), i, member)
	{
		struct show_text name = show_word(member);

		printf(" %s", name.text);
	}
	printf(": %s\n", means);
}

/* Print the differences that comparisons have found and no resync has repaired. */
static void show_findings(const json_t *set)
{
	const json_t *findings = json_object_get(set, "findings"), *finding;
	size_t i;

	if (!findings)
		return;
	printf("  found %s:\n", show_time(findings).text);
	json_array_foreach(json_object_get(findings, "ranges"), i, finding) show_finding(finding);
	if (json_figure(findings, "more", 0) > 0)
		printf("  and %.0f bytes more\n", json_figure(findings, "more", 0));
}

void show_set(const json_t *set)
{
	const json_t *members = json_object_get(set, "members"), *member;
	int width = 1;
	size_t i;

	show_head(set);
	json_array_foreach(members, i, member)
	{
		int len = (int)strlen(json_text(member, "name", "?"));

		width = len > width && len <= MIRROR_NAME_MAX ? len : width;
	}
	json_array_foreach(members, i, member) show_member(set, member, width);
	show_verify(set);
	show_scrub(set);
	show_findings(set);
	show_sentence(set, "reason", "why");
	show_sentence(set, "next", "next");
}

/* ---- explain ---- */

static void show_explain_view(const json_t *set)
{
	const char *phase = json_text(set, "phase", "none");
	const char *health = json_text(set, "health", "down");
	struct show_text primary = show_get(set, "primary", "");
	bool serves = !strcmp(health, "healthy") || !strcmp(health, "degraded");

	if (!strcmp(phase, "serving"))
		printf("Member %s is primary of epoch %.0f%s.\n", primary.text,
		       json_figure(set, "epoch", 0),
		       serves ? " and serves"
			      : " by the register, but it is unknown whether it serves");
	else if (!strcmp(phase, "recovering"))
		printf("Member %s is primary of epoch %.0f and makes the other in-sync copies "
		       "equal; until they are, or are excluded, no program can read.\n",
		       primary.text, json_figure(set, "epoch", 0));
	else
		printf("There is no primary; the last epoch, %.0f, ended %s.\n",
		       json_figure(set, "epoch", 0),
		       json_flag(set, "clean")
			       ? "cleanly: any in-sync member can be promoted immediately"
			       : "without a clean demotion");
	if (json_flag(set, "forced"))
		printf("This epoch was begun by force: data that former epochs acknowledged may be "
		       "missing. The register's history lists these epochs.\n");
}

static void show_explain_link(const json_t *member)
{
	struct show_text link = show_get(member, "link", "down");
	struct show_text reason = show_get(member, "reason", "");

	if (!json_flag(member, "local")) {
		printf(" Its link is %s", link.text);
		if (reason.text[0] && !strcmp(link.text, "down")) {
			printf(": %s.", reason.text);
			return;
		}
		printf(".");
	}
	if (reason.text[0])
		printf(" Reason: %s.", reason.text);
}

static void show_explain_member(const json_t *member, uint64_t set_size, bool is_serving)
{
	static const struct {
		const char *copy, *means;
	} copies[] = {
		{"empty",
		 "was created and has no data yet; it is made equal once a primary serves"},
		{"syncing", "is being made equal and cannot be used until then"},
		{"stale", "is consistent, but lacks data that was acknowledged while it was away"},
		{"unknown",
		 "is consistent, but its daemon cannot be asked whether it is the newest"},
		{"in-sync", "has every acknowledged flush"},
		{"failed", "cannot be used: its medium or a write-back reported an error, or it "
			   "cannot be opened"},
		{"excluded", "was equal when it was excluded; flushes are acknowledged without it"},
	};
	const char *copy = show_copy(member, is_serving);

	printf("The copy of %s ", show_get(member, "name", "?").text);
	for (unsigned i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		if (!strcmp(copies[i].copy, copy))
			printf("%s", copies[i].means);
	if (!json_flag(member, "insync"))
		printf("; it is not in the in-sync set, so it can be promoted only by force");
	printf(".");
	if (json_count(member, "size", MIRROR_SIZE_MAX, set_size) < set_size)
		printf(" It has %s, and gets the set's size when no process maps the set.",
		       text_size(json_count(member, "size", MIRROR_SIZE_MAX, 0)).text);
	show_explain_link(member);
	printf("\n");
}

static void show_explain_waiting(const json_t *set)
{
	const json_t *wait;
	size_t i;

	json_array_foreach(json_object_get(set, "waiting"), i, wait)
	{
		printf("Waiting: %s, because %s", show_get(wait, "what", "?").text,
		       show_get(wait, "why", "of an unknown reason").text);
		if (json_object_get(wait, "deadline_ms"))
			printf("; for %.1f s more", json_figure(wait, "deadline_ms", 0) / 1000);
		if (json_object_get(wait, "retry_ms"))
			printf("; the next attempt is in %.1f s",
			       json_figure(wait, "retry_ms", 0) / 1000);
		printf(".\n");
	}
}

/* Returns true if the sentence begins with a verb, such as "survives ...". Other sentences have
 * their own subject. */
static bool show_is_predicate(const char *sentence)
{
	return strncmp(sentence, "no", 2) && strncmp(sentence, "the ", 4) &&
	       !(*sentence >= '0' && *sentence <= '9');
}

void show_explanation(const json_t *set)
{
	const json_t *store = json_object_get(set, "register"), *member;
	struct survive_facts facts;
	char sentence[256];
	size_t i;

	printf("Set %s is %s.\n", show_get(set, "set", "?").text,
	       show_get(set, "health", "?").text);
	if (json_text(set, "reason", NULL))
		printf("Why: %s.\n", show_get(set, "reason", "").text);
	show_explain_view(set);
	if (json_count(set, "size", MIRROR_SIZE_MAX, 0) > 0)
		printf("It has %s.\n", text_size(json_count(set, "size", MIRROR_SIZE_MAX, 0)).text);
	json_array_foreach(json_object_get(set, "members"), i, member)
		show_explain_member(member, json_count(set, "size", MIRROR_SIZE_MAX, 0),
				    !strcmp(json_text(set, "phase", ""), "serving"));
	if (json_text(store, "error", NULL))
		printf("The register: %s.\n", show_get(store, "error", "").text);
	show_explain_waiting(set);
	show_findings(set);
	survive_facts_of(set, &facts);
	survive_text(&facts, sentence, sizeof(sentence));
	printf("With %u in-sync cop%s of at least %u it %s%s.\n", facts.copies,
	       facts.copies == 1 ? "y" : "ies", facts.min_copies,
	       show_is_predicate(sentence) ? "" : "is in this state: ", sentence);
	if (json_text(set, "next", NULL))
		printf("Next: %s.\n", show_get(set, "next", "").text);
}
