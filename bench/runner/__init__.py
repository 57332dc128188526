# SPDX-License-Identifier: BSD-3-Clause
"""What `./dev bench` runs; bench/README.md describes it."""
