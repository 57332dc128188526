#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The list of points at which a process can be killed (core/killpoint.h) is complete: each point is in the code, and is
# reached. The tests of the metadata kill at most of these points; this test kills real processes at the other points.
set -euo pipefail
: "${KILLPOINTS:?} ${MIRROR_KILLS:?} ${RPMA_SOURCE:?}"

listed=$(sed -n 's/^\tX(\([a-z0-9_]*\),.*/\1/p' "$RPMA_SOURCE/src/mirror/core/killpoint.h" | sort)
placed=$(grep -rhoE '(killpoint|medium_point)\((file, )?KILLPOINT_[a-z0-9_]+\)' "$RPMA_SOURCE/src/mirror" \
	"$RPMA_SOURCE/src/mirrord" "$RPMA_SOURCE/tests/system/mirror" | sed 's/.*KILLPOINT_//; s/)//' | sort -u)
[ -n "$listed" ] && [ "$listed" = "$placed" ] || {
	echo "listed, or with a place in the code, but not both:"
	comm -3 <(echo "$listed") <(echo "$placed")
	exit 1
}
mapfile -t elsewhere < <("$KILLPOINTS" --elsewhere)
"$MIRROR_KILLS" 1 "${SEED:-1}" "${elsewhere[@]}"
