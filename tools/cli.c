/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <librpma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log_prefix.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli.h"
#include "progress.h"

static const char *cli_name = "rpma";
static bool cli_verbose;
static char cli_tail[160];

void cli_begin(const char *name)
{
	cli_name = name;
}

/* Use one write, so that lines of several processes do not mix. */
static void cli_print(enum log_level level, const char *when, const char *who, const char *text,
		      const char *tail)
{
	progress_pause();
	fprintf(stderr, "%s%s%s: %s%s\n", log_prefix(level), when, who, text, tail);
	progress_resume();
}

static void cli_line(const char *fmt, va_list ap, const char *tail)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	text_make_printable(text);
	cli_print(LOG_LVL_ERROR, "", cli_name, text, tail);
}

/* Print a line of the log, with the time if --verbose is set. */
static void cli_print_log(enum log_level level, const char *who, const char *text)
{
	char when[64] = "", printable[1024];
	struct timespec ts;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (cli_verbose && localtime_r(&ts.tv_sec, &tm)) {
		len = strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
		snprintf(when + len, sizeof(when) - len, ".%03ld ", ts.tv_nsec / 1000000);
	}
	snprintf(printable, sizeof(printable), "%s", text);
	text_make_printable(printable);
	cli_print(level, when, who, printable, "");
}

void cli_set_tail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cli_tail, sizeof(cli_tail), fmt, ap);
	va_end(ap);
}

int cli_fail(enum cli_exit code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cli_line(fmt, ap, cli_tail);
	va_end(ap);
	return code;
}

/* Returns true if the device also writes its own lines to standard error (softrnic(7)). */
static bool cli_device_writes(void)
{
	const char *level = getenv("SOFTRNIC_LOG");

	return level ? *level : getenv("SOFTRNIC_TRACE") != NULL;
}

/* Without --verbose, ignore lines about failed calls, because the error of the call has the same
 * text, and ignore lines that the device writes itself. Lines from other threads than the
 * program's come from the device. */
static void cli_on_log(enum rpma_log_level level, const char *file, const int line,
		       const char *func, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (!cli_verbose && (gettid() == getpid() || cli_device_writes()))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text[strcspn(text, "\n")] = '\0';
	cli_print_log((enum log_level)level, "librpma", text);
}

void cli_log_init(bool verbose)
{
	cli_verbose = verbose;
	rpma_log_set_function(cli_on_log);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
			       verbose ? RPMA_LOG_LEVEL_NOTICE : RPMA_LOG_LEVEL_ERROR);
}

int cli_report(const struct error *err, const char *hint)
{
	static const enum cli_exit codes[] = {
		[ERROR_ARGUMENT] = CLI_USAGE,  [ERROR_LOCAL] = CLI_FILE,
		[ERROR_UNREACHED] = CLI_REACH, [ERROR_REFUSED] = CLI_REFUSED,
		[ERROR_FAILED] = CLI_TRANSFER,
	};

	/* EFAULT: this end has found that the region's memory is gone. Use the exit code of a
	 * refusal by the server. */
	return cli_fail(err->cause == EFAULT ? CLI_REFUSED : codes[err->kind], "%s%s", err->text,
			hint);
}

void cli_note(enum log_level level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cli_print_log(level, cli_name, text);
}

int cli_usage(const char *fmt, ...)
{
	char tail[64];
	va_list ap;

	snprintf(tail, sizeof(tail), "; see '%s --help'", cli_name);
	va_start(ap, fmt);
	cli_line(fmt, ap, tail);
	va_end(ap);
	return CLI_USAGE;
}

static void cli_short_options(const struct option *options, char *text)
{
	for (; options->name; options++) {
		if (options->val > 'z')
			continue;
		*text++ = (char)options->val;
		if (options->has_arg)
			*text++ = ':';
	}
	*text = '\0';
}

int cli_options(int argc, char **argv, const struct option *options, const char *help,
		int (*take)(int opt, void *arg), void *arg)
{
	char letters[2 * ('z' + 1)], unknown[256];
	int opt, rc;

	cli_short_options(options, letters);
	for (;;) {
		if (nearest_option_is_unknown(argc, argv, options, unknown, sizeof(unknown)))
			return cli_usage("%s", unknown);
		opt = getopt_long(argc, argv, letters, options, NULL);
		if (opt == -1)
			return CLI_OK;
		if (opt == 'h') {
			fputs(help, stdout);
			return -1;
		}
		rc = take(opt, arg);
		if (rc)
			return rc;
	}
}

/* Returns the length of the UTF-8 character (RFC 3629) at the beginning of text, or 0 if the bytes
 * are not valid. */
static size_t cli_utf8_len(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t len = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

	if (c[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	/* Not valid: encodings longer than needed, surrogates, and values above U+10FFFF. */
	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	return len;
}

/* Write bytes of a file name as JSON, which is UTF-8. Invalid bytes become U+FFFD. */
void cli_json_string(const char *before, const char *text)
{
	size_t len;

	printf("%s\"", before);
	for (; *text; text += len ? len : 1) {
		unsigned char c = (unsigned char)*text;

		len = cli_utf8_len(text);
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else if (len)
			fwrite(text, 1, len, stdout);
		else
			fputs("\\ufffd", stdout);
	}
	putchar('"');
}
