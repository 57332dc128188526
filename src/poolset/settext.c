/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/settext.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct settext_word {
	const char *at;
	size_t len;
};

/* The state of the parser. */
struct settext_reader {
	struct settext *set;
	const char *name;
	unsigned line;
	unsigned nparts;      /* number of parts in the current section */
	bool is_remote;       /* the current section */
	const char *at, *end; /* the rest of the current line */
	struct error *err;
};

static int settext_bad(const struct settext_reader *r, const char *what)
{
	return error_set(r->err, ERROR_LOCAL, EINVAL, "%s:%u: %s", r->name, r->line, what);
}

/* The error quotes the word, cut to the length of a line. */
static int settext_bad_word(const struct settext_reader *r, struct settext_word word,
			    const char *what)
{
	int len = word.len < 64 ? (int)word.len : 64;

	return error_set(r->err, ERROR_LOCAL, EINVAL, "%s:%u: '%.*s%s' %s", r->name, r->line, len,
			 word.at, word.len > 64 ? "..." : "", what);
}

static bool settext_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool settext_word_is(struct settext_word word, const char *text)
{
	return word.len == strlen(text) && !memcmp(word.at, text, word.len);
}

/* Returns the next word of the line, or false if the line has no more words. */
static bool settext_next_word(struct settext_reader *r, struct settext_word *word)
{
	while (r->at < r->end && settext_is_blank(*r->at))
		r->at++;
	word->at = r->at;
	while (r->at < r->end && !settext_is_blank(*r->at))
		r->at++;
	word->len = (size_t)(r->at - word->at);
	return word->len > 0;
}

static int settext_expect_end(struct settext_reader *r)
{
	struct settext_word word;

	return settext_next_word(r, &word) ? settext_bad_word(r, word, "is one word too many") : 0;
}

/* Returns the unit of a suffix, or 0 if the suffix is unknown. */
static uint64_t settext_unit(const char *suffix, size_t len)
{
	static const char letters[] = "KMGTP";
	static const char letters_decimal[] = "kMGTP";
	bool decimal = len == 2 && suffix[1] == 'B';
	const char *list = decimal ? letters_decimal : letters;
	const char *found;
	uint64_t unit = 1;

	if (len == 0 || (len == 1 && suffix[0] == 'B'))
		return 1;
	if (!(len == 1 || decimal || (len == 3 && suffix[1] == 'i' && suffix[2] == 'B')))
		return 0;
	found = suffix[0] ? strchr(list, suffix[0]) : NULL;
	if (!found)
		return 0;
	for (long i = 0; i <= found - list; i++)
		unit *= decimal ? 1000 : 1024;
	return unit;
}

bool settext_size(const char *word, size_t len, uint64_t *size)
{
	uint64_t value = 0, unit;
	size_t digits = 0;

	for (; digits < len && word[digits] >= '0' && word[digits] <= '9'; digits++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(word[digits] - '0'), &value))
			return false;
	unit = settext_unit(word + digits, len - digits);
	if (digits == 0 || unit == 0 || __builtin_mul_overflow(value, unit, &value) || value == 0)
		return false;
	*size = value;
	return true;
}

/* Do not use strndup(), which may expect a NUL: the text does not end with one. */
static char *settext_copy(struct settext_word word)
{
	char *copy = malloc(word.len + 1);

	if (copy) {
		memcpy(copy, word.at, word.len);
		copy[word.len] = '\0';
	}
	return copy;
}

static int settext_add_part(struct settext_reader *r, uint64_t size, struct settext_word path)
{
	struct settext *set = r->set;
	struct settext_part *parts = set->parts;
	char *copy;

	if (set->nparts == SETTEXT_PARTS_MAX)
		return settext_bad(r, "too many parts");
	/* The array is full when the count is a power of two. */
	if ((set->nparts & (set->nparts - 1)) == 0)
		parts = realloc(parts, (set->nparts ? 2 * set->nparts : 1) * sizeof(*parts));
	copy = parts ? settext_copy(path) : NULL;
	if (parts)
		set->parts = parts;
	if (!copy)
		return error_set(r->err, ERROR_LOCAL, ENOMEM, "%s: not enough memory", r->name);
	parts[set->nparts++] = (struct settext_part){
		.path = copy, .size = size, .replica = set->nreplicas - 1, .line = r->line};
	r->nparts++;
	return 0;
}

static int settext_part(struct settext_reader *r)
{
	struct settext_word size_word, path;
	uint64_t size = 0;
	int rc;

	if (!settext_next_word(r, &size_word) || !settext_next_word(r, &path))
		return settext_bad(r, "a size and a path are expected");
	if (r->is_remote)
		return settext_bad(r, "a remote replica has no parts");
	if (!settext_word_is(size_word, "AUTO") &&
	    !settext_size(size_word.at, size_word.len, &size))
		return settext_bad_word(r, size_word,
					"is no size (a number, with K, M, G, T, P, KiB or kB ...)");
	if (path.at[0] != '/')
		return settext_bad_word(r, path, "is no absolute path");
	if (path.len >= PATH_MAX)
		return settext_bad_word(r, path, "is too long for a path");
	rc = settext_expect_end(r);
	return rc ? rc : settext_add_part(r, size, path);
}

static int settext_options(struct settext_reader *r)
{
	struct settext_word word;
	unsigned count = 0;

	for (; settext_next_word(r, &word); count++) {
		if (settext_word_is(word, "SINGLEHDR"))
			r->set->options |= SETTEXT_SINGLEHDR;
		else if (settext_word_is(word, "NOHDRS"))
			r->set->options |= SETTEXT_NOHDRS;
		else
			return settext_bad_word(r, word,
						"is no option (there are SINGLEHDR and NOHDRS)");
	}
	if (!count)
		return settext_bad(r, "OPTION without the name of an option");
	if (r->set->options == (SETTEXT_SINGLEHDR | SETTEXT_NOHDRS))
		return settext_bad(r, "SINGLEHDR and NOHDRS exclude each other");
	return 0;
}

static int settext_end_section(struct settext_reader *r)
{
	if (r->nparts || r->is_remote)
		return 0;
	return settext_bad(r, r->set->nreplicas == 1 ? "the pool set has no parts"
						     : "the replica that ends here has no parts");
}

static int settext_replica(struct settext_reader *r)
{
	struct settext_word host, name;
	int rc = settext_end_section(r);

	if (rc)
		return rc;
	r->set->nreplicas++;
	if (!r->set->replica_line)
		r->set->replica_line = r->line;
	r->nparts = 0;
	r->is_remote = r->at < r->end;
	if (!r->is_remote)
		return 0;
	r->set->nremotes++;
	if (!settext_next_word(r, &host) || !settext_next_word(r, &name))
		return settext_bad(r, "REPLICA alone, or with a host and the name of a pool set, "
				      "is expected");
	if (name.at[0] == '/')
		return settext_bad_word(r, name, "is an absolute path; a relative one is expected");
	return settext_expect_end(r);
}

/* Skip a keyword in the first column, if a blank or the end of the line follows. */
static bool settext_skip_keyword(struct settext_reader *r, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len))
		return false;
	if (r->at + len < r->end && !settext_is_blank(r->at[len]))
		return false;
	r->at += len;
	return true;
}

static int settext_line(struct settext_reader *r)
{
	const char *comment = memchr(r->at, '#', (size_t)(r->end - r->at));

	if (memchr(r->at, '\0', (size_t)(r->end - r->at)))
		return settext_bad(r, "the file has a zero byte, so it is no text");
	if (r->at == r->end || comment == r->at)
		return 0;
	if (comment)
		r->end = comment;
	if (settext_skip_keyword(r, "OPTION"))
		return settext_options(r);
	if (settext_skip_keyword(r, "REPLICA"))
		return settext_replica(r);
	return settext_part(r);
}

/* Take the next line from *text, without its LF or CRLF. Returns false at the end of the text. */
static bool settext_next_line(struct settext_reader *r, const char **text, const char *text_end)
{
	const char *eol;

	if (*text == text_end)
		return false;
	r->line++;
	r->at = *text;
	eol = memchr(*text, '\n', (size_t)(text_end - *text));
	r->end = eol ? eol : text_end;
	*text = eol ? eol + 1 : text_end;
	if (eol && r->end > r->at && r->end[-1] == '\r')
		r->end--;
	return true;
}

static bool settext_is_first_line(const struct settext_reader *r, const char *rest)
{
	return r->end - r->at == SETTEXT_SIGNATURE_LEN &&
	       !memcmp(r->at, SETTEXT_SIGNATURE, SETTEXT_SIGNATURE_LEN) && rest[-1] == '\n';
}

static int settext_read(struct settext_reader *r, const char *text, size_t len)
{
	const char *end = text + len;
	int rc = 0;

	if (len > SETTEXT_BYTES_MAX)
		return error_set(r->err, ERROR_LOCAL, EINVAL,
				 "%s: %zu bytes are too long for a pool set file", r->name, len);
	if (!settext_next_line(r, &text, end) || !settext_is_first_line(r, text)) {
		r->line = 1;
		return settext_bad(r, "the first line must be " SETTEXT_SIGNATURE);
	}
	while (!rc && settext_next_line(r, &text, end))
		rc = settext_line(r);
	if (rc)
		return rc;
	r->line++;
	return settext_end_section(r);
}

int settext_parse(struct settext *set, const char *name, const char *bytes, size_t len,
		  struct error *err)
{
	struct settext_reader r = {.set = set, .name = name, .err = err};
	int rc;

	*set = (struct settext){.nreplicas = 1};
	rc = settext_read(&r, bytes, len);
	/* The message quotes words of the file, which may contain control characters. */
	if (rc && err)
		text_make_printable(err->text);
	return rc;
}

void settext_fini(struct settext *set)
{
	for (unsigned i = 0; i < set->nparts; i++)
		free(set->parts[i].path);
	free(set->parts);
	*set = (struct settext){0};
}
