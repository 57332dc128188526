# SPDX-License-Identifier: BSD-3-Clause
"""
The rooms whose tests are measured: their files, the build targets of their tests, and the names of these tests.

The tests are in groups, fast tests first, because the first failure ends the measurement of a change.
"""

from typing import NamedTuple


class Room(NamedTuple):
    files: list    # patterns below the tree
    targets: list  # targets of ninja
    tests: list    # regular expressions for ctest


def unit(*folders):
    return [f"tests/unit/{folder}/all" for folder in folders]


TOOL = ["tools/all", "tests/system/all"]
MIRROR = ["src/mirrord/all", "tools/all", "tests/system/all"]

ROOMS = {
    "proto": Room(["src/softrnic/proto/*.c"], unit("proto", "rnic", "stream") + ["tests/fuzz/all"],
                  [r"^unit\.proto_", r"^(unit\.(rnic|stream)_|fuzz\.(mpa_start|ddp|rdmap|terminate|hello|stream|qp_rx)$)"]),
    "rnic": Room(["src/softrnic/rnic/*.c"], unit("rnic", "stream") + ["tests/fuzz/all", "tests/sim/all"],
                 [r"^unit\.(rnic|stream)_|^fuzz\.(stream|qp_rx)$", r"^sim\.(honest|powercut)$"]),
    "stream": Room(["src/softrnic/stream/*.c"], unit("stream") + ["tests/fuzz/all", "tests/sim/all", "tests/meeting_sim/all"],
                   [r"^unit\.stream_|^fuzz\.stream$|^meeting_sim\.honest$", r"^sim\.(honest|powercut)$"]),
    "io": Room(["src/softrnic/io/*.c"], unit("io") + ["tests/contract/all", "tests/contract_ext/all"],
               [r"^unit\.io", r"^contract(_ext)?\."]),
    "persist": Room(["src/softrnic/persist/*.c"], unit("persist"), [r"^unit\.persist_"]),
    "rpma": Room(["src/rpma/*.c"], unit("rpma") + ["tests/contract/all", "tests/contract_ext/all", "tests/abi/all"],
                 [r"^unit\.rpma", r"^(contract|contract_ext|abi)\."]),
    "mirror_core": Room(["src/mirror/core/*.c"], unit("mirror_core", "mirror", "mirror_file", "mirror_wire", "mirror_register") + ["tests/fuzz/all", "tests/mirror_sim/all"],
                        [r"^unit\.mirror_core_", r"^(unit\.mirror_|fuzz\.mirror_)",
                         r"^mirror_sim\.(honest|direct|restored_register)$"]),
    "mirror_wire": Room(["src/mirror/wire/*.c"], unit("mirror_wire") + ["tests/fuzz/all"],
                        [r"^unit\.mirror_wire_|^fuzz\.mirror_(hello|message|unix)$"]),
    "poolset": Room(["src/poolset/*.c"], unit("poolset") + ["tests/fuzz/all"],
                    [r"^unit\.poolset_|^fuzz\.(settext|pool_header)$"]),
    "rpmem_wire": Room(["src/rpmem/wire/*.c"], unit("rpmem_wire", "rpmem", "rpmemd") + ["tests/fuzz/all"],
                       [r"^unit\.rpmem_wire_|^fuzz\.rpmem_wire$", r"^unit\.rpmem"]),
    "regions": Room(["src/regions/*.c", "src/service/*.c"], unit("regions", "service") + TOOL,
                    [r"^unit\.(regions|service)_", r"^tool\.(secret|name|regions)\."]),
    "mirrord": Room(["src/mirrord/request*.c", "src/mirrord/promote.c", "src/mirrord/conf.c", "src/mirrord/grow.c"],
                    unit("mirrord") + ["tests/fuzz/all"] + MIRROR,
                    [r"^unit\.mirrord_|^fuzz\.(mirrord_conf|mirror_unix)$",
                     r"^system\.mirror_(requests|operators|map|holder)$", r"^system\.mirror_tool\."]),
}

# The modules that decode bytes from outside, or make decisions.
DEFAULT = ["proto", "rnic", "stream", "mirror_core", "poolset", "rpmem_wire", "regions", "mirrord"]
