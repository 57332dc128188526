# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completion for rpma, rpmirror and softrnic in bash. Commands and options are read from the programs' --help, so
# that they are those of the program that is installed. Sets and members come from the daemon of this host.

# _rpma_commands PROGRAM'S NAME: prints the commands in a help text: " rpma serve FILE...", "
# rpmirror status [SET]", "usage: softrnic run".
_rpma_commands() { # PROGRAM'S NAME
	sed -nE "s/^(  |usage: )$1 ([a-z]+)( .*|\$)/\\2/p"
}

# _rpma_options: prints the options in a help text. Most options are at the beginning of a line: "
# -s, --size N", " --json", " -p". Some are only in the first line: "usage: rpmirror resolve [SET]
# --discard MEMBER".
_rpma_options() {
	sed -nE '1{s/(\[| )(--[a-z-]+)/\n\2\n/g; s/(^|\n)[^-\n][^\n]*//g; p}; s/^ +(-[a-zA-Z], )?(--[a-z-]+).*/\2/p; s/^ +(-[a-z])  .*/\1/p'
}

# _rpma_values OPTION: prints the option's values if the help text lists them: " --lonely
# block|manual what a primary does".
_rpma_values() { # OPTION
	sed -nE "s/^ +(-[a-zA-Z], )?$1 ([a-z]+(\\|[a-z]+)+) .*/\\2/p" | tr '|' '\n'
}

# _rpma_takes_value OPTION: succeeds if the option takes a value: " --size N", " -S, --secret-file
# FILE". Two spaces separate the description.
_rpma_takes_value() { # OPTION
	grep -qE "^ +(-[a-zA-Z], )?$1 [^ ]|^ +$1, --[a-z-]+ [^ ]|^usage: .* $1 [A-Z]"
}

# _rpma_sets PROGRAM: prints the sets of this host and their members, if a daemon answers at once.
_rpma_sets() { # PROGRAM
	local answer
	answer=$("$1" status --json --timeout 1 2>/dev/null) || return 0
	grep -oE '"(set|name)": *"[^"]*"' <<<"$answer" | sed -E 's/.*: *"(.*)"/\1/' | sort -u
}

_rpma_take() { # WORDS
	# shellcheck disable=SC2207 # neither names nor options have spaces
	COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# _rpma_operands PROGRAM HELP: completes operands. For rpmirror these are a word of
# "add|remove|replace", or sets and members. For rpma they are files, which bash's default
# completes.
_rpma_operands() { # PROGRAM HELP
	local name=${1##*/} words
	[ "$name" = rpmirror ] || return 0
	words=$(sed -nE '1s/^usage: rpmirror [a-z]+ ([a-z]+(\|[a-z]+)+) .*/\1/p' <<<"$2" | tr '|' '\n')
	if [ -n "$words" ] && [ "$COMP_CWORD" = 2 ]; then
		_rpma_take "$words"
	elif [ "${COMP_WORDS[1]}" != meta ]; then
		_rpma_take "$(_rpma_sets "$1")"
	fi
}

_rpma() {
	local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} help values
	local name=${program##*/}
	COMPREPLY=()
	command -v "$program" >/dev/null || return 0
	if [ "$COMP_CWORD" = 1 ]; then
		_rpma_take "$("$program" --help 2>/dev/null | _rpma_commands "$name") --help --version"
		return
	fi
	if [ "$name" = softrnic ]; then
		help=$("$program" --help 2>/dev/null)
	else
		help=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null) || return 0
	fi
	if [[ $prev == -* ]] && _rpma_takes_value "$prev" <<<"$help"; then
		values=$(_rpma_values "$prev" <<<"$help")
		case $prev in
		--member | --from | --here | --join) [ "$name" != rpmirror ] || values=$(_rpma_sets "$program") ;;
		esac
		_rpma_take "$values"
	elif [[ $cur == -* ]]; then
		_rpma_take "$(_rpma_options <<<"$help") $([ "$name" = softrnic ] || echo --help)"
	elif [ "$name" = softrnic ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	else
		_rpma_operands "$program" "$help"
	fi
}

complete -o default -F _rpma rpma rpmirror softrnic
