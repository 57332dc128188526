# SPDX-License-Identifier: BSD-3-Clause
# Sourced by a script whose only argument is FOLDER: enters the folder, and fetches packages of this release of Debian
# into it. The script installs nothing, and does not change the system's package sources.
[ $# = 1 ] || {
	echo "usage: ${0##*/} FOLDER" >&2
	exit 2
}
mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
cd "$1"
folder=$PWD

# debian_fetch deb|deb-src COMMAND ...: fetches binary or source packages by a command of apt-get.
debian_fetch() {
	local kind=$1 release options
	shift
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:?}")
	echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" \
		>apt/sources.list
	options=(-q -o "Dir::Etc::sourcelist=$PWD/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" -o "APT::Sandbox::User=$(id -un)")
	apt-get "${options[@]}" update
	apt-get "${options[@]}" "$@"
}
