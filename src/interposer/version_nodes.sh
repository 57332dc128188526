#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints an empty version script with the version nodes of a library. ld.so refuses a program, or a driver of
# rdma-core, if the library that it finds under a name lacks a node which the program was linked with.
# usage: version_nodes.sh LIBRARY
set -eu
# Of each node a line "number flags hash name"; its parents follow in an indented line. The node with flag 1
# is the library's own name.
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
