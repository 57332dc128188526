# SPDX-License-Identifier: BSD-3-Clause
"""The code of `./dev bench`; bench/README.md describes the benchmarks."""
