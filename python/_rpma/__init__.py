# SPDX-License-Identifier: BSD-3-Clause
"""Code that the packages rpma and rpmirror share. Not for programs."""
