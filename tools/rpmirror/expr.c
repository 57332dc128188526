/* SPDX-License-Identifier: BSD-3-Clause */
#include "expr.h"

#include <stdio.h>
#include <string.h>

#include "mirror/core/state.h"
#include "mirror/core/words.h"
#include "out.h"

/* Returns true if value is one of the words that word() lists. The list ends with "?". */
static bool expr_is_word(const char *(*word)(unsigned), const char *value, size_t len)
{
	for (unsigned i = 0;; i++) {
		const char *w = word(i);

		if (!strcmp(w, "?"))
			return false;
		if (strlen(w) == len && !memcmp(w, value, len))
			return true;
	}
}

static const char *expr_yes_no(unsigned i)
{
	static const char *const words[] = {"no", "yes", "?"};

	return words[i < 2 ? i : 2];
}

static const char *expr_phase(unsigned i)
{
	return i <= MIRROR_PHASE_SERVING ? words_phase[i] : "?";
}

/* The status has "local" as a link, too, although "local" is not a link state of the protocol. */
static const char *expr_link(unsigned i)
{
	return i == MIRROR_LINK_COUNT ? "local" : mirror_link_2str(i);
}

static const struct expr_key {
	const char *name;
	bool of_member;
	const char *(*word)(unsigned); /* lists the permitted values; NULL: any value */
} expr_keys[] = {
	{"health", false, mirror_health_2str},
	{"phase", false, expr_phase},
	{"primary", false, NULL},
	{"copy", true, mirror_copy_2str},
	{"link", true, expr_link},
	{"flow", true, mirror_flow_2str},
	{"role", true, mirror_role_2str},
	{"insync", true, expr_yes_no},
};

static const struct expr_key *expr_find_key(const char *name)
{
	for (unsigned i = 0; i < sizeof(expr_keys) / sizeof(expr_keys[0]); i++)
		if (!strcmp(expr_keys[i].name, name))
			return &expr_keys[i];
	return NULL;
}

/* Calls `is` for each value of "a|b". Returns true if `is` returns true for one of them. */
static bool expr_any_value(const char *values,
			   bool (*is)(const void *arg, const char *value, size_t len),
			   const void *arg)
{
	for (;;) {
		size_t len = strcspn(values, "|");

		if (is(arg, values, len))
			return true;
		if (!values[len])
			return false;
		values += len + 1;
	}
}

static bool expr_is_unknown(const void *arg, const char *value, size_t len)
{
	const struct expr_key *key = arg;

	return !len || (key->word && !expr_is_word(key->word, value, len));
}

static bool expr_parse_term(struct expr_term *t, char *text, char *why, size_t size)
{
	char *equal = strchr(text, '='), *dot;
	const struct expr_key *key;

	if (!equal) {
		snprintf(why, size, "'%.80s' is not KEY=VALUE", text);
		return false;
	}
	*equal = '\0';
	dot = strchr(text, '.');
	if (dot)
		*dot = '\0';
	*t = (struct expr_term){text, dot ? dot + 1 : NULL, equal + 1};
	key = expr_find_key(text);
	if (!key || key->of_member != (dot && dot[1])) {
		snprintf(why, size,
			 "'%.80s%s' is no key: the keys are health, phase, primary, and copy.M, "
			 "link.M, flow.M, role.M, insync.M of member M",
			 text, dot ? "." : "");
		return false;
	}
	if (expr_any_value(t->values, expr_is_unknown, key)) {
		snprintf(why, size, "%s never has the value '%.80s'", key->name, t->values);
		return false;
	}
	return true;
}

bool expr_parse(struct expr *e, const char *text, char *why, size_t size)
{
	char *save, *term;

	e->count = 0;
	if (!text[0] || strlen(text) >= sizeof(e->text)) {
		snprintf(why, size, "the expression is empty or too long");
		return false;
	}
	strcpy(e->text, text);
	for (term = strtok_r(e->text, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		if (e->count == EXPR_TERMS) {
			snprintf(why, size, "there are more than %d terms", EXPR_TERMS);
			return false;
		}
		if (!expr_parse_term(&e->terms[e->count++], term, why, size))
			return false;
	}
	if (!e->count)
		snprintf(why, size, "the expression is empty");
	return e->count > 0;
}

static const json_t *expr_find_member(const json_t *set, const char *name)
{
	const json_t *member;
	size_t i;

	json_array_foreach(json_object_get(set, "members"), i,
			   member) if (!strcmp(json_text(member, "name", ""), name)) return member;
	return NULL;
}

/* Returns the value of a term in the status. */
static const char *expr_actual(const struct expr_term *t, const json_t *set)
{
	const json_t *object = t->member ? expr_find_member(set, t->member) : set;

	if (!object)
		return "no such member";
	if (!strcmp(t->key, "insync"))
		return expr_yes_no(json_flag(object, "insync"));
	return json_text(object, t->key, "none");
}

static bool expr_is_actual(const void *actual, const char *value, size_t len)
{
	return strlen(actual) == len && !memcmp(actual, value, len);
}

bool expr_holds(const struct expr *e, const json_t *set, char *why, size_t size)
{
	for (unsigned i = 0; i < e->count; i++) {
		const struct expr_term *t = &e->terms[i];
		const char *actual = expr_actual(t, set);

		if (expr_any_value(t->values, expr_is_actual, actual))
			continue;
		snprintf(why, size, "%s%s%s is %s and not %s", t->key, t->member ? "." : "",
			 t->member ? t->member : "", actual, t->values);
		return false;
	}
	return true;
}
