#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Searches the models: the unchanged rules must hold, and the search must find a violation for every mutation.
# usage: check.sh [MODEL|CONFIGURATION...]        all configurations, those of a MODEL (mirror lookers meeting), or these
#        check.sh large [MODEL|CONFIGURATION...]  only the unchanged rules, in larger models: takes minutes
#        check.sh trace MUTATION                  prints the shortest path to the violation that a mutation causes
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The configurations of MODEL.pml, whose mutations are in MODEL_mutations.h.
mirror="views records members config lease orders"
lookers="tcp threads spins rings stalls destroy"
meeting="meets names blocked used self"

model_of() {
	local model
	for model in mirror lookers meeting; do
		case " ${!model} " in
		*" $1 "*) echo "$model" ;;
		esac
	done
}

options_of() {
	case "$1" in
	views) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=2 -DCRASHES=2 -DDEMOTES=1" ;;
	records) echo "-DMEMBERS=3 -DPROMOTIONS=3 -DWRITES=1 -DCRASHES=2 -DSTARTED=1 -DLATE=0" ;;
	members) echo "-DMEMBERS=2 -DPROMOTIONS=2 -DWRITES=2 -DCRASHES=1 -DLOSSES=1 -DCONFIGS=1" ;;
	config) echo "-DMEMBERS=3 -DSPARES=1 -DPROMOTIONS=2 -DWRITES=1 -DCRASHES=1 -DSTARTED=1 -DCONFIGS=1" ;;
	lease) echo "-DMEMBERS=2 -DPROMOTIONS=2 -DWRITES=1 -DCRASHES=1 -DLATE=0 -DTICKS=6" ;;
	orders) echo "-DMEMBERS=2 -DPROMOTIONS=2 -DWRITES=2 -DCRASHES=1 -DSTARTED=1 -DLATE=0 -DORDERS=1" ;;
	tcp) echo "-DMESSAGES=2 -DEARLY=1" ;;
	threads) echo "-DMESSAGES=1 -DWAITER=1" ;;
	spins) echo "-DMESSAGES=2 -DQUIET=1 -DSPINS=1" ;;
	rings) echo "-DMESSAGES=2 -DQUIET=1 -DRINGS=1" ;;
	stalls) echo "-DMESSAGES=2 -DQUIET=1 -DSPINS=1 -DSTALLS=1" ;;
	destroy) echo "-DMESSAGES=1 -DSPINS=1 -DDESTROY=1" ;;
	meets) echo "-DRESETS=2 -DEARLY=1 -DCUTS=1 -DEVICTIONS=1" ;;
	names) echo "-DRESETS=1 -DKILLS=2 -DNAMES=1 -DEARLY=1" ;;
	blocked) echo "-DRESETS=1 -DBLOCKED=2 -DEARLY=1 -DCUTS=2 -DEVICTIONS=1" ;;
	used) echo "-DRESETS=2 -DPOSTS=2 -DEARLY=1" ;;
	self) echo "-DRESETS=2 -DSELF=1 -DEARLY=1" ;;
	esac
}

# large_options_of CONFIGURATION: options for a larger search, which takes minutes and gigabytes.
large_options_of() {
	case "$1" in
	views) echo "-DMEMBERS=2 -DPROMOTIONS=4 -DWRITES=3 -DCRASHES=3 -DDEMOTES=2" ;;
	records) echo "-DMEMBERS=3 -DPROMOTIONS=3 -DWRITES=1 -DCRASHES=2 -DSTARTED=1 -DLATE=1" ;;
	members) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=2 -DCRASHES=2 -DLOSSES=2 -DCONFIGS=2" ;;
	config) echo "-DMEMBERS=3 -DSPARES=1 -DPROMOTIONS=2 -DWRITES=2 -DCRASHES=1 -DSTARTED=1 -DCONFIGS=2" ;;
	lease) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=1 -DCRASHES=1 -DLATE=1 -DTICKS=7" ;;
	orders) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=2 -DCRASHES=1 -DSTARTED=1 -DLATE=1 -DORDERS=1" ;;
	tcp) echo "-DMESSAGES=3 -DQUIET=1 -DEARLY=1" ;;
	threads) echo "-DMESSAGES=1 -DWAITER=1 -DRINGS=1" ;;
	spins) echo "-DMESSAGES=2 -DSPINS=1" ;;
	rings) echo "-DMESSAGES=2 -DQUIET=1 -DRINGS=1 -DSPINS=1" ;;
	stalls) echo "-DMESSAGES=2 -DSPINS=1 -DSTALLS=1" ;;
	destroy) echo "-DMESSAGES=2 -DSPINS=1 -DDESTROY=1" ;;
	meets) echo "-DRESETS=3 -DEARLY=2 -DCUTS=1 -DEVICTIONS=1" ;;
	names) echo "-DRESETS=2 -DKILLS=2 -DNAMES=1 -DEARLY=2" ;;
	blocked) echo "-DRESETS=3 -DBLOCKED=2 -DEARLY=2 -DCUTS=2 -DEVICTIONS=1" ;;
	used) echo "-DRESETS=2 -DPOSTS=3 -DEARLY=1 -DCUTS=1" ;;
	self) echo "-DRESETS=3 -DSELF=1 -DEARLY=2 -DKILLS=1" ;;
	esac
}

# build MODEL OPTIONS [CFLAGS...]: compiles the search program in $work.
build() {
	local model=$1 options=$2
	shift 2
	cp "$here/$model.pml" "$here/${model}_mutations.h" "$work"
	# shellcheck disable=SC2086
	(cd "$work" && spin $options -a "$model.pml" >&2 && cc -O1 -w -DSAFETY "$@" -o pan pan.c)
}

# mutations: prints a line "NUMBER CONFIGURATION NAME TEXT" for each mutation of all models.
mutations() {
	sed -nE 's|^#define ([A-Z_]+) +([0-9]+) +/\* ([a-z]+): (.*) \*/$|\2 \3 \1 \4|p' "$here"/*_mutations.h
}

# Each #define must be in the list of mutations(); otherwise this mutation would not be searched.
[ "$(mutations | wc -l)" -eq "$(cat "$here"/*_mutations.h | grep -c '^#define')" ] || {
	echo "check.sh: a line of the mutations is not of the form NAME NUMBER /* CONFIGURATION: TEXT */" >&2
	exit 2
}

# search MUTATION: succeeds if no state violates a rule, fails with 1 if a state does.
search() {
	local report
	report=$(cd "$work" && MUTATION=$1 timeout "${limit_s:-600}" ./pan -m"${depth:-4000000}" -w"${hash_bits:-22}")
	found=$(grep -oE '[0-9]+ states, stored' <<<"$report" || :)
	if grep -q 'errors: 0$' <<<"$report"; then
		# A search that has not visited every state proves nothing.
		if grep -qE 'max search depth|Search not completed' <<<"$report"; then
			echo "check.sh: the search was not complete" >&2
			exit 3
		fi
		return 0
	fi
	# "invalid end state" means that no thread can continue, and that some thread has not
	# reached its end.
	found=$(grep -E '^pan.*: (assertion violated|invalid end state) ' <<<"$report") || {
		printf '%s\n' "$report" >&2
		exit 3
	}
	return 1
}

# check_rules CONFIGURATION: searches with the unchanged rules, by the program that build() has made.
check_rules() {
	if search 0; then
		echo "$1: holds, $found"
	else
		echo "$1: VIOLATED: $found"
		return 1
	fi
}

check_large() {
	build "$(model_of "$1")" "$(large_options_of "$1")" -DCOLLAPSE
	limit_s=3600 depth=6000000 hash_bits=26 check_rules "$1"
}

check() {
	local configuration=$1 number where name text failed=0 count=0
	build "$(model_of "$configuration")" "$(options_of "$configuration")"
	check_rules "$configuration" || failed=1
	while read -r number where name text; do
		[ "$where" = "$configuration" ] || continue
		count=$((count + 1))
		if search "$number"; then
			echo "$configuration: NOT NOTICED: $name: $text"
			failed=1
		else
			echo "$configuration: noticed: $name: $text"
		fi
	done < <(mutations)
	[ "$count" -gt 0 ] || failed=1
	return $failed
}

trace() {
	local line
	line=$(mutations | awk -v name="$1" '$3 == name') || :
	[ -n "$line" ] || {
		echo "check.sh: there is no mutation '$1' in $here/*_mutations.h" >&2
		exit 2
	}
	# shellcheck disable=SC2086
	set -- $line
	build "$(model_of "$2")" "$(options_of "$2")" -DBFS
	(cd "$work" && MUTATION=$1 ./pan -w26 >/dev/null && MUTATION=$1 ./pan -r -S | sed "/^spin: trail ends/,\$d")
}

configurations_of() {
	local word
	for word in "$@"; do
		case " $mirror $lookers $meeting mirror lookers meeting " in
		*" $word "*) ;;
		*)
			echo "check.sh: unknown configuration '$word' (there are: $mirror $lookers $meeting)" >&2
			return 2
			;;
		esac
		case "$word" in
		mirror | lookers | meeting) echo "${!word}" ;;
		*) echo "$word" ;;
		esac
	done
}

if [ "${1:-}" = trace ]; then
	trace "${2:-}"
	exit
fi
large=false
if [ "${1:-}" = large ]; then
	large=true
	shift
fi
[ $# -gt 0 ] || set -- mirror lookers meeting
configurations=$(configurations_of "$@")
bad=0
for configuration in $configurations; do
	if "$large"; then
		check_large "$configuration" || bad=1
	else
		check "$configuration" || bad=1
	fi
done
exit $bad
