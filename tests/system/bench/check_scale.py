#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_scale.py FOLDER WORDS...: bench/scale measures this case, and prints each number that the runner records."""

import os
import sys

sys.path.insert(0, os.path.join(os.environ["RPMA_SOURCE"], "bench"))
from runner import case, scale  # noqa: E402

NUMBERS = {
    "idle": ("allocated",),
    "connect": ("per_s", "initiator_us", "target_us"),
    "rate": ("per_s",),
    "latency": ("alone_ns", "beside_ns", "after_ns", "alone_p99_ns", "beside_p99_ns", "after_p99_ns"),
}
ZERO_MAY_BE = {"idle": ("anonymous", "socket_buffers", "cpu_percent_per_1000", "waits_per_s")}


def main():
    words = case.parse(" ".join(sys.argv[2:]))
    line = scale.Scale(sys.argv[1]).run(words, None, 1000)
    print(line)
    missing = [name for name in NUMBERS[words["work"]] if not line.get(name, 0) > 0]
    missing += [name for name in ZERO_MAY_BE.get(words["work"], ()) if name not in line]
    if missing:
        sys.exit(f"no number for {', '.join(missing)}")


if __name__ == "__main__":
    main()
