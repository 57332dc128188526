#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints a version script with the version nodes of a library, but without symbols. ld.so refuses to run a
# program, or to load a driver of rdma-core, if a library lacks a version node with which it was linked.
# usage: version_nodes.sh LIBRARY
set -eu
# objdump prints a line "number flags hash name" for each node, and the node's parents in an indented line
# after it. The node with flag 1 is the library's own name.
LC_ALL=C objdump -p "$1" | awk '
	/^Version definitions:/ { inside = 1; next }
	!inside { next }
	!NF { exit }
	/^[0-9]/ && $2 != "0x01" { node[n++] = $4 }
	/^[^0-9]/ { $1 = $1; parents[n - 1] = parents[n - 1] " " $0 }
	END {
		for (i = 0; i < n; i++)
			print node[i] " {\n}" parents[i] ";"
		exit !n
	}'
