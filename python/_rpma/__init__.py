# SPDX-License-Identifier: BSD-3-Clause
"""What the packages rpma and rpmirror share. Not for programs."""
