#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The exit codes of all programs, and the hint to the nearest command or option.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
rpma=$RPMA_TOOL rpmirror=$RPMIRROR softrnic=$SOFTRNIC rpmirrord=$RPMIRRORD rpmemd=$RPMEMD
logs=(out err)
export RPMIRROR_SOCKET=$work/none HOME=$work

# expect CODE PATTERN COMMAND...: the command must end with that exit code, and print a text like
# PATTERN on standard error.
expect() {
	local want=$1 pattern=$2 got=0
	shift 2
	"$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	[ -z "$pattern" ] || grep -qE -e "$pattern" err || fail "'$*' does not say '$pattern'"
}

# Scripts rely on these exit codes: 0 done, 1 failed, 2 wrong usage. The codes of rpmemd and
# rpmem-ssh are those of PMDK and ssh, because librpmem reads them.
test_exit_codes_have_one_convention() {
	local program
	for program in "$rpma" "$rpmirror" "$softrnic" "$rpmirrord" "$rpmemd"; do
		expect 0 '' "$program" --help
		expect 0 '' "$program" --version
	done
	for program in "$rpma" "$rpmirror" "$softrnic" "$rpmirrord"; do
		expect 2 '' "$program" --nonsense
		expect 2 '' "$program" nonsense
	done
	for program in "$rpma" "$rpmirror" "$softrnic"; do
		expect 2 '' "$program"
	done
	for program in rpma:put rpmirror:wait; do
		name=${program%:*}
		expect 2 '' "${!name}" "${program#*:}"
	done
	expect 2 '' "$softrnic" run
	expect 2 'nothing.conf' "$rpmirrord" --config nothing.conf
	printf 'listen = 127.0.0.1:0\nsocket = %s/no/folder/socket\n' "$work" >failing.conf
	expect 1 '' "$rpmirrord" --config failing.conf
	expect 255 'usage' "$rpmemd" --nonsense
	expect 1 'secret-file' "$rpmemd" --listen --log-file -
	expect 127 'no-such-program' "$softrnic" run no-such-program
	RPMEM_SSH_PROGRAM=$work/no-ssh expect 255 'cannot run' "$RPMEM_SSH" host rpmemd
}

# Each manual page refers to the page that lists the exit codes, and that page has each program.
test_every_manual_leads_to_the_convention() {
	local page man=$RPMA_SOURCE/doc/man/1
	sed -n '/^.Ss EXIT CODES OF ALL PROGRAMS/,/^.Sh /p' "$man/rpma.1" >list
	for page in rpma rpmirror rpmirrord rpmemd rpmem-ssh softrnic; do
		grep -qxE "\.It (Xr $page 1|Nm $page)" list || fail "rpma(1) lacks the codes of $page"
		sed -n '/^.Sh EXIT STATUS/,/^.Sh [^E]/p' "$man/$page.1" | grep -q 'EXIT CODES OF ALL PROGRAMS' ||
			fail "$page(1) does not lead to the list"
	done
}

test_a_wrong_command_names_the_nearest() {
	expect 2 "^rpma: there is no command 'sevre' \(did you mean 'serve'\?\); see 'rpma --help'$" "$rpma" sevre
	expect 2 "^rpma: there is no command 'fetch'; see" "$rpma" fetch
	expect 2 "^rpmirror: there is no command 'stauts' \(did you mean 'status'\?\); see" "$rpmirror" stauts
	expect 2 "^rpmirror: there is no command 'fly'; see" "$rpmirror" fly
	expect 2 "^softrnic: there is no command 'rnu' \(did you mean 'run'\?\)$" "$softrnic" rnu ls
}

test_a_wrong_option_names_the_nearest() {
	expect 2 "^rpma serve: unrecognized option '--sise=1M' \(did you mean '--size'\?\); see 'rpma serve --help'$" \
		"$rpma" serve --create --sise=1M pool
	expect 2 "^rpma put: unrecognized option '--sceret-file' \(did you mean '--secret-file'\?\)" "$rpma" put a host:b --sceret-file x
	[ "$(wc -l <err)" = 1 ] || fail "more than one line"
	expect 2 "^rpmirror status: there is no option '--chekc' \(did you mean '--check'\?\)" "$rpmirror" status --chekc
	expect 2 "^rpmirror status: there is no option '--tiemout=3' \(did you mean '--timeout'\?\)" "$rpmirror" status --tiemout=3
	expect 2 "'--check' takes no value" "$rpmirror" status --check=yes
	expect 2 "^softrnic run: unrecognized option '--iwrap' \(did you mean '--iwarp'\?\)$" "$softrnic" run --iwrap true
	# Options after the program's name belong to the program. Unambiguous beginnings of options
	# are accepted.
	expect 1 '' "$softrnic" run sh -c 'exit 1' --iwrap
	expect 3 'nope does not exist' "$rpma" serve --por 0 nope
}

"test_$1"
