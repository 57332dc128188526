#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Completion in bash and zsh: the shells complete each command and each option in a help text.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
logs=(bash.out zsh.out wanted)
folder=$RPMA_SOURCE/contrib/completion
export RPMIRROR_SOCKET=$work/none
# In the build tree the programs have other names than in the packages.
mkdir bin
ln -s "$RPMA_TOOL" bin/rpma
ln -s "$RPMIRROR" bin/rpmirror
ln -s "$SOFTRNIC" bin/softrnic
PATH=$work/bin:$PATH

# in_bash WORD...: prints the completions that bash offers for the last word, which may be
# incomplete.
in_bash() {
	bash -euo pipefail -c '. "$1/rpma.bash"; shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_rpma || :
		printf "%s\n" ${COMPREPLY[@]+"${COMPREPLY[@]}"}' bash "$folder" "$@" | sort -u
}

# in_zsh WORD...: prints the completions that zsh offers. zsh's functions for completion are
# replaced by functions that print their arguments.
in_zsh() {
	command -v zsh >/dev/null || { echo "SKIPPED: there is no zsh" && exit 77; }
	zsh -f -c 'file=$1; shift
		_describe() { print -rl -- ${${(P)2}%%:*} }
		compadd() { print -rl -- ${(P)2} }
		_files() { print FILES }
		_command_names() { print COMMANDS }
		words=("$@") CURRENT=$#
		. $file' zsh "$folder/_rpma" "$@" | { grep -e "^${*: -1}" -e '^FILES$' -e '^COMMANDS$' || :; } | sort -u
}

# commands PROGRAM: prints the commands that the program's help names.
commands() { "$1" --help | grep -oE "^( +|usage: )$1 [a-z]+" | awk '{ print $NF }' | sort -u; }

# each_is_completed SHELL: checks that the shell completes each command of each program.
each_is_completed() {
	local shell=$1 program command missing count=0
	for program in rpma rpmirror softrnic; do
		in_"$shell" $program '' >"$shell.out"
		missing=$(commands $program | comm -23 - "$shell.out")
		[ -z "$missing" ] || fail "$shell does not complete the commands of $program: $missing"
		for command in $(commands $program); do
			if [ $program = softrnic ]; then "$program" --help; else "$program" "$command" --help; fi |
				grep -oE -e '(^|[][ (|])--[a-z][a-z-]+' | grep -oE -e '--[a-z-]+' | sort -u >wanted
			[ $program != softrnic ] || sed -i '/^--help$\|^--version$/d' wanted
			in_"$shell" $program "$command" - >"$shell.out"
			missing=$(comm -23 wanted "$shell.out")
			[ -z "$missing" ] || fail "$shell does not complete '$program $command': $missing"
			count=$((count + $(wc -l <wanted)))
		done
	done
	[ "$count" -gt 100 ] || fail "the help texts have only $count options"
}

# expect SHELL WANTED WORD...: the shell must offer exactly the completions WANTED.
expect() {
	local shell=$1 wanted=$2
	shift 2
	[ "$(in_"$shell" "$@" | paste -sd' ')" = "$wanted" ] || fail "$shell completes '$*' to '$(in_"$shell" "$@" | paste -sd' ')'"
}

details() {
	local shell=$1
	expect "$shell" 'pause promote' rpmirror p
	expect "$shell" '--secret --size --slow --socket' rpmirror init --s
	expect "$shell" 'block manual' rpmirror init --lonely ''
	expect "$shell" 'continue stop' rpmirror init --local-error ''
	expect "$shell" 'add remove replace' rpmirror member ''
	expect "$shell" 'check dump' rpmirror meta ''
	expect "$shell" '--iwarp -d -p' softrnic run -
}

test_bash_completes_all_that_help_names() {
	each_is_completed bash
	details bash
	in_bash softrnic run rpmirr | grep -qx rpmirror || fail "no programs after softrnic run"
	[ -z "$(in_bash rpma put --secret-file '')" ] || fail "files are the default"
	[ -z "$(in_bash no-such-program x '')" ] || fail "a program that is absent completes something"
}

test_zsh_completes_all_that_help_names() {
	each_is_completed zsh
	details zsh
	expect zsh COMMANDS softrnic run ''
	expect zsh FILES rpma put --secret-file ''
}

# The daemon supplies the names of its sets. Without a daemon there are no completions, and no
# delay.
test_sets_and_members_are_those_of_the_daemon() {
	local shell
	cat >bin/rpmirror.new <<-'END'
		#!/bin/sh
		[ "$2" != --help ] || exec "$RPMIRROR" "$@"
		[ "$1 $2" = "status --json" ] && echo '{"schema":1,"sets":[{"set":"orders","members":[{"name": "a"},{"name":"b"}]}]}'
	END
	expect bash '' rpmirror status ''
	chmod +x bin/rpmirror.new
	mv bin/rpmirror.new bin/rpmirror
	for shell in bash zsh; do
		expect "$shell" 'a b orders' rpmirror promote ''
		expect "$shell" 'orders' rpmirror status o
		expect "$shell" 'a b orders' rpmirror resync --from ''
	done
}

"test_$1"
