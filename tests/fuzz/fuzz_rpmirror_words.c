/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: a word of rpmirror's command line. The first byte chooses the parser: p a member's place,
 * e the event to wait for, l a name of --what-if, r a register's uri, S settings, s a size, n a
 * number. After e or l the second line is the daemon's status in JSON, which is printed as well.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "expr.h"
#include "mirror/register/register.h"
#include "numbers.h"
#include "place.h"
#include "settings.h"
#include "show.h"
#include "survive.h"

#define WORDS_MAX 2048

static const char words_status[] =
	"{\"health\":\"degraded\",\"phase\":\"serving\",\"primary\":\"a\",\"lonely\":\"none\","
	"\"min_copies\":1,\"lease_ms\":5000,\"register\":{\"kind\":\"etcd\",\"members\":3,"
	"\"healthy\":3,\"stores\":[{\"host\":\"10.0.0.1\",\"port\":2379,\"healthy\":true}]},"
	"\"members\":[{\"name\":\"a\",\"slot\":0,\"host\":\"10.0.0.1\",\"copy\":\"in-sync\","
	"\"role\":\"primary\",\"insync\":true},{\"name\":\"b.2\",\"slot\":1,\"host\":\"10.0.0.2\","
	"\"copy\":\"syncing\",\"flow\":\"catching-up\",\"insync\":false}]}";

static void try_place(const char *text)
{
	struct mirror_member m = {0};
	const char *why = NULL;

	if (!place_parse(text, &m, &why)) {
		EXPECT(why && *why);
		return;
	}
	EXPECT(m.name[0] && strlen(m.name) <= MIRROR_NAME_MAX);
	EXPECT(m.host[0] && strlen(m.host) <= MIRROR_HOST_MAX);
	EXPECT(m.path[0] == '/' && strlen(m.path) <= MIRROR_PATH_MAX && m.port);
}

static void try_expr(const char *text, const json_t *set)
{
	char why[256] = "";
	struct expr e;

	if (!expr_parse(&e, text, why, sizeof(why))) {
		EXPECT(why[0]);
		return;
	}
	EXPECT(e.count && e.count <= EXPR_TERMS);
	why[0] = '\0';
	EXPECT(expr_holds(&e, set, why, sizeof(why)) || why[0]);
}

static void try_loss(const char *text, const json_t *set)
{
	struct survive_facts facts;
	struct survive_lost lost = {0};
	char said[512] = "";

	survive_facts_of(set, &facts);
	survive_text(&facts, said, sizeof(said));
	EXPECT(said[0]);
	if (!survive_add_lost(set, text, &lost))
		return;
	EXPECT(lost.members || lost.stores);
	EXPECT(*survive_outcome_str(survive_loss(set, &lost, said, sizeof(said))));
}

/* Ignore a uri that names a file, because the parser would read the file. */
static void try_uri(const char *text)
{
	struct mirror_register *r = NULL;
	struct error err = {0};

	if (strchr(text, '='))
		return;
	if (register_open(text, "orders", 1000, &r, &err))
		EXPECT(!r && err.text[0]);
	else
		register_close(r);
}

/* Parse the settings, one a line. */
static void try_settings(char *text)
{
	json_t *settings = json_object();
	struct failure f = {0};

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		size_t before = json_object_size(settings);

		if (settings_parse(line, settings, &f))
			EXPECT(f.text[0]);
		else
			EXPECT(json_object_size(settings) > before ||
			       json_object_get(settings, "hosts"));
	}
	json_decref(settings);
}

static void try_number(const char *text, bool is_size)
{
	uint64_t number = 0;

	if (is_size)
		number_parse_size(text, &number);
	else if (number_parse(text, 1, 1000, &number))
		EXPECT(number >= 1 && number <= 1000);
}

static void try_with_status(char kind, char *text)
{
	static bool is_silent;
	char *end = strchr(text, '\n');
	json_t *set = end ? json_loads(end + 1, 0, NULL) : NULL;

	if (end)
		*end = '\0';
	if (!set)
		set = json_loads(words_status, 0, NULL);
	EXPECT(set);
	if (kind == 'e')
		try_expr(text, set);
	else
		try_loss(text, set);
	if (!is_silent)
		is_silent = freopen("/dev/null", "w", stdout) != NULL;
	show_set(set);
	show_explanation(set);
	json_decref(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char text[WORDS_MAX];

	if (!len || len > sizeof(text))
		return 0;
	memcpy(text, data + 1, len - 1);
	text[len - 1] = '\0';
	switch (data[0]) {
	case 'p':
		try_place(text);
		break;
	case 'e':
	case 'l':
		try_with_status((char)data[0], text);
		break;
	case 'S':
		try_settings(text);
		break;
	case 'r':
		try_uri(text);
		break;
	default:
		try_number(text, data[0] == 's');
	}
	return 0;
}
