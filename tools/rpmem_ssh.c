/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem-ssh: stands in for ssh in programs that reach a target only by ssh. It removes pools at
 * targets without ssh (rpma://host), and executes ssh for all other targets.
 */
#include <errno.h>
#include <librpmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The options of ssh (ssh(1)). An option with a colon has a value. */
#define SSH_OPTIONS "+1246ab:c:e:fgi:kl:m:no:p:qstvxACD:E:F:I:J:KL:MNO:PQ:R:S:TVw:W:XYB:"

#define SCHEME "rpma://"

#define STATUS_OTHER 255 /* ssh uses this status for its own failures */

/*
 * Returns the target without ssh that the arguments name, or NULL. Programs that expect an ssh
 * target split "rpma://host" at the colon into host and port: -p //host rpma.
 */
static const char *direct_target(const char *host, const char *port, char *buf, size_t size)
{
	if (!strncmp(host, SCHEME, strlen(SCHEME)))
		return host;
	if (strcmp(host, "rpma") || !port || strncmp(port, "//", 2))
		return NULL;
	return snprintf(buf, size, "rpma:%s", port) < (int)size ? buf : NULL;
}

/* Cut the next word in place, as a shell does with quotes and backslashes. NULL: there is no
 * further word. */
static char *next_word(char **text)
{
	char *p = *text + strspn(*text, " \t"), *begin = p, *out = p, quote = '\0';

	if (!*p)
		return NULL;
	for (; *p && (quote || !strchr(" \t", *p)); p++) {
		if (quote ? *p == quote : *p == '\'' || *p == '"')
			quote = quote ? '\0' : *p;
		else if (*p == '\\' && quote != '\'' && p[1])
			*out++ = *++p;
		else
			*out++ = *p;
	}
	*text = *p ? p + 1 : p;
	*out = '\0';
	return begin;
}

/* Parse the arguments of rpmemd. Returns the name of the pool set, or NULL if the command removes
 * no pool. */
static const char *parse_command(char *text, int *flags)
{
	const char *set = NULL, *word;

	while ((word = next_word(&text))) {
		if (!strcmp(word, "--remove") || !strcmp(word, "-r"))
			set = next_word(&text);
		else if (!strcmp(word, "--force") || !strcmp(word, "-f"))
			*flags |= RPMEM_REMOVE_FORCE;
		else if (!strcmp(word, "--pool-set") || !strcmp(word, "-s"))
			*flags |= RPMEM_REMOVE_POOL_SET;
	}
	return set;
}

static int remove_pool(const char *target, char **words)
{
	char command[8192] = "";
	const char *set;
	int flags = 0;

	for (; *words; words++) {
		strncat(command, *words, sizeof(command) - strlen(command) - 1);
		strncat(command, " ", sizeof(command) - strlen(command) - 1);
	}
	set = parse_command(command, &flags);
	if (!set) {
		fprintf(stderr,
			"rpmem-ssh: %s is served without ssh: only rpmemd --remove can be run "
			"there\n",
			target);
		return STATUS_OTHER;
	}
	if (!rpmem_remove(target, set, flags))
		return 0;
	fprintf(stderr, "rpmem-ssh: %s\n", rpmem_errormsg());
	return errno > 0 && errno < 126 ? errno : STATUS_OTHER;
}

int main(int argc, char **argv)
{
	const char *ssh = getenv("RPMEM_SSH_PROGRAM"), *port = NULL, *target = NULL;
	char buf[512];
	int c;

	opterr = 0;
	while ((c = getopt(argc, argv, SSH_OPTIONS)) != -1)
		if (c == 'p')
			port = optarg;
	if (optind < argc)
		target = direct_target(argv[optind], port, buf, sizeof(buf));
	if (target)
		return remove_pool(target, argv + optind + 1);
	argv[0] = (char *)(ssh && *ssh ? ssh : "ssh");
	execvp(argv[0], argv);
	fprintf(stderr, "rpmem-ssh: cannot run %s: %s\n", argv[0], strerror(errno));
	return STATUS_OTHER;
}
