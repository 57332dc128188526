#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The container file must name packages that contrib/debian builds, with all packages of this project that
# these depend on. Its base image is the system that they are built for, and its program is in one of them.
# usage: container.sh SOURCE_DIR
set -euo pipefail
cd "$1"
file=contrib/container/Containerfile
control=contrib/debian/control

fail() {
	echo "container.sh: $*" >&2
	exit 1
}

mapfile -t built < <(sed -n 's/^Package: //p' $control)
mapfile -t named < <(sed -n 's/^COPY //p' $file | tr ' ' '\n' | sed -n 's/_\*\.deb$//p')
[ ${#named[@]} -gt 0 ] || fail "no package is named"

among() { # NAME OF...
	local name=$1
	shift
	printf '%s\n' "$@" | grep -xF -- "$name" >/dev/null
}

for name in "${named[@]}"; do
	among "$name" "${built[@]}" || fail "$name is no package of $control"
	needs=$(awk -v name="$name" '/^Package:/ { on = $2 == name } on && /^Depends:/ { print }' $control)
	for need in $(grep -oE '[a-z][a-z0-9.+-]+' <<<"${needs#Depends:}"); do
		! among "$need" "${built[@]}" || among "$need" "${named[@]}" || fail "$name needs $need, which is not there"
	done
done

# Its example serves an address that is reached from outside the container.
grep -q '^#   podman run .*-p .* rpma serve --addr 0\.0\.0\.0 ' $file || fail "the example serves the container only"

codename=$(sed -nE '1s/^rpma \([^)]*\) ([a-z]+);.*/\1/p' contrib/debian/changelog)
grep -q "^FROM debian:$codename-slim\$" $file || fail "the image is not of $codename"

program=$(sed -nE 's/^ENTRYPOINT \["([a-z]+)"\]$/\1/p' $file)
[ -n "$program" ] || fail "nothing is started"
for name in "${named[@]}"; do
	! grep -qx "usr/s\?bin/$program" "contrib/debian/$name.install" || exit 0
done
fail "$program is in none of the packages"
