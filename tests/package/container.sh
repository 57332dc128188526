#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks each container file: it must name packages that contrib/debian builds, with all packages of this project on
# which these depend. Its base image must be the system for which the packages are built, one of the packages must
# contain its daemon, and its example must make the daemon's ports reachable. containers.sh starts the containers.
# usage: container.sh SOURCE_DIR
set -euo pipefail
cd "$1"
control=contrib/debian/control

fail() {
	echo "container.sh: $file: $*" >&2
	exit 1
}

among() { # NAME OF...
	local name=$1
	shift
	printf '%s\n' "$@" | grep -xF -- "$name" >/dev/null
}

mapfile -t built < <(sed -n 's/^Package: //p' $control)
codename=$(sed -nE '1s/^rpma \([^)]*\) ([a-z]+);.*/\1/p' contrib/debian/changelog)

# check FILE DAEMON: the file must name packages of this project, all packages of this project on
# which these depend, and a package with the daemon.
check() {
	local named name needs need found=no
	file=$1
	mapfile -t named < <(sed -n 's/^COPY //p' "$file" | tr ' ' '\n' | sed -n 's/_\*\.deb$//p')
	[ ${#named[@]} -gt 0 ] || fail "no package is named"
	for name in "${named[@]}"; do
		among "$name" "${built[@]}" || fail "$name is no package of $control"
		needs=$(awk -v name="$name" '/^Package:/ { on = $2 == name } on && /^Depends:/ { print }' $control)
		for need in $(grep -oE '[a-z][a-z0-9.+-]+' <<<"${needs#Depends:}"); do
			! among "$need" "${built[@]}" || among "$need" "${named[@]}" || fail "$name needs $need, which is not there"
		done
		! grep -qx "usr/s\?bin/$2" "contrib/debian/$name.install" || found=yes
	done
	[ $found = yes ] || fail "$2 is in none of the packages"
	grep -q "^FROM debian:$codename-slim\$" "$file" || fail "the image is not of $codename"
	grep -q '^ENTRYPOINT \["' "$file" || fail "nothing is started"
	grep -qE '^#   podman run .*(-p |--network=host)' "$file" || fail "its example reaches no port"
}

check contrib/container/Containerfile rpma
grep -q '^#   podman run .* rpma serve --addr 0\.0\.0\.0 ' "$file" || fail "the example serves the container only"
grep -q '^ENTRYPOINT \["rpma"\]$' "$file" || fail "it starts something else"
check contrib/container/rpmirrord.Containerfile rpmirrord
grep -q '^ENTRYPOINT \["rpmirrord"\]$' "$file" || fail "it starts something else"
check contrib/container/rpmemd.Containerfile rpmemd
grep -q '^ENTRYPOINT .*sshd ' "$file" || fail "it starts no sshd"
