/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/nearest.h"
#include "commands.h"
#include "out.h"

static const struct args_command commands[] = {
	{"init", "SET --size N --member NAME=HOST:PATH... --register URI",
	 "Create a set: its record in the register, and the copies of the members on this host.\n"
	 "\n"
	 "  --size N              of the file, such as 8G\n"
	 "  --member NAME=HOST[:PORT]:PATH    one for each copy, 1 to 8\n"
	 "  --register URI        etcd://HOST:PORT,... or file:PATH\n"
	 "  --lonely block|manual what a primary does that lost every other copy (file registers)\n"
	 "  --min-copies N        with fewer durable copies nothing is acknowledged (1, or 2 of 3)\n"
	 "  --lease S             time without a sign of life until a primary counts as lost (5)\n"
	 "  --replica-timeout S   how long a copy may be silent before it is excluded (2)\n"
	 "  --slow S              a flush that takes longer is an event (0.02)\n"
	 "  --holdoff S           time before an excluded copy may return; it doubles (5)\n"
	 "  --blocked S           how long a flush waits for copies before it fails (30)\n"
	 "  --blocked-for-ever    a flush waits until there are enough copies\n"
	 "  --local-error stop|continue  when only the primary's own medium fails (stop)\n"
	 "  --address HEX         where the file is mapped on each host (anywhere)\n"
	 "  --hot-extents N       extents of 2 MiB that may differ after a crash, 1 to 8192 (256)\n"
	 "  --here MEMBER         this host's member (default: found by the addresses)\n"
	 "  --from MEMBER         begin with the existing file of this member\n"
	 "  --join MEMBER         make this member's copy of a set that exists\n"
	 "  --secret FILE         file with the secret that the set's daemons share\n",
	 cmd_init},
	{"status",
	 "[SET] [--check | --openmetrics | --textfile FILE | --what-if lost=MEMBER|HOST,...]",
	 "Show the sets of this host.\n"
	 "\n"
	 "  --check               one line for monitoring plugins; 0 healthy, 1 degraded,\n"
	 "                        2 blocked, split or down, 3 unknown\n"
	 "  --openmetrics         print metrics for Prometheus\n"
	 "  --textfile FILE       write them to a file for node_exporter's textfile collector\n"
	 "  --what-if lost=A,B    what the loss of these hosts would do\n",
	 cmd_status},
	{"events", "[SET] [--now]",
	 "Print the present state, then each change.\n"
	 "\n"
	 "  --now                 print only the present state\n",
	 cmd_events},
	{"wait", "SET --until EXPRESSION",
	 "Wait until the set has these values: KEY=VALUE[|VALUE][,KEY=VALUE...], for instance\n"
	 "health=healthy,copy.b=in-sync. Keys: health, phase, primary, and of member M\n"
	 "copy.M, link.M, flow.M, role.M, insync.M.\n",
	 cmd_wait},
	{"promote", "[SET] MEMBER [--force]",
	 "Make a member the primary.\n"
	 "\n"
	 "  --force               also if it may lack acknowledged data, or the former primary may\n"
	 "                        be alive\n",
	 cmd_promote},
	{"demote", "[SET]", "End the primary's epoch after all is flushed.\n", cmd_demote},
	{"resync", "[SET] MEMBER [--full] [--from MEMBER]",
	 "Make a copy equal to the primary's.\n"
	 "\n"
	 "  --full                compare the whole copy\n"
	 "  --from MEMBER         the primary, which is the source\n",
	 cmd_resync},
	{"pause", "[SET] MEMBER", "Pause a resync.\n", cmd_pause},
	{"resume", "[SET] MEMBER", "Let a resync go on.\n", cmd_resume},
	{"verify", "[SET] [--member MEMBER] [--repair] [--rate N]",
	 "Compare the copies by digests. Exit code 5: they differ.\n"
	 "\n"
	 "  --member MEMBER       compare only this member's copy\n"
	 "  --repair              make the ranges that differ equal\n"
	 "  --rate N              bytes per second at most\n",
	 cmd_verify},
	{"resolve", "[SET] --discard MEMBER",
	 "After a split: discard the data by which a member's copy differs.\n", cmd_resolve},
	{"member", "add|remove|replace [SET] NAME[=HOST:PATH]",
	 "Change the members that have a copy. A replaced copy gets a new identity, and the\n"
	 "former one is refused when it returns.\n",
	 cmd_member},
	{"grow", "[SET] SIZE", "Make the file larger.\n", cmd_grow},
	{"set", "[SET] NAME=VALUE...",
	 "Change settings of the set, all or none; the names are those of init's options.\n"
	 "\n"
	 "  min-copies=N, replica-timeout=S, slow=S, holdoff=S, blocked=S|for-ever\n"
	 "  local-error=stop|continue, lonely=block|manual\n"
	 "                        at any time\n"
	 "  lease=S               while there is no primary\n"
	 "  address=HEX           from the next mapping on; 0: anywhere\n"
	 "  host.MEMBER=HOST[:PORT]    where this member's daemon listens\n"
	 "  format=N              format of the set's record: raise it after all hosts were upgraded\n",
	 cmd_set},
	{"fence", "[SET] MEMBER",
	 "State that a member's host is off for certain, so that another member may be promoted.\n",
	 cmd_fence},
	{"explain", "[SET]", "Explain the state of a set, and what happens next.\n", cmd_explain},
	{"meta", "dump|check PATH",
	 "Show, or check, the metadata of the copy with this path, without a daemon.\n", cmd_meta},
};

static void main_help(void)
{
	printf("usage: rpmirror COMMAND [options] ...\n"
	       "Highly available memory-mapped files: sets of copies on several hosts.\n\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		printf("  rpmirror %s %s\n", commands[i].name, commands[i].synopsis);
	printf("\n'rpmirror COMMAND --help' shows more, and so does rpmirror(1).\n");
}

static int main_refuse(const char *name)
{
	struct nearest n = {.word = name, .prefix = ""};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		nearest_offer(&n, commands[i].name);
	return out_usage("there is no command '%s'%s", name, nearest_hint(&n));
}

static int main_command(int argc, char **argv)
{
	static char name[64];

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "rpmirror %s", commands[i].name);
		out_begin(name);
		args_command = &commands[i];
		return commands[i].run(argc, argv);
	}
	return main_refuse(argv[0]);
}

int main(int argc, char **argv)
{
	int code;

	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return out_usage("a command is missing");
	if (!strcmp(argv[1], "--version")) {
		puts("rpmirror " RPMIRROR_VERSION);
		code = CODE_DONE;
	} else if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
		   !strcmp(argv[1], "help")) {
		main_help();
		code = CODE_DONE;
	} else {
		code = main_command(argc - 1, argv + 1);
	}
	if ((fflush(stdout) || ferror(stdout)) && !code)
		return out_fail(CODE_IO, NULL, "cannot write the output: %s", strerror(errno));
	return code;
}
