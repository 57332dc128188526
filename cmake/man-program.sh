#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: man-program.sh PAGE: prints the last program with a main() in a manual page's source, as the page shows it.
awk '
	/^\.Bd -literal/ { text = ""; on = 1; next }
	/^\.Ed/ { if (on && text ~ /\nmain\(|int main\(/) found = text; on = 0; next }
	on { gsub(/\\e/, "\\"); text = text $0 "\n" }
	END { printf "%s", found; exit found == "" }' "${1:?usage: man-program.sh PAGE}"
