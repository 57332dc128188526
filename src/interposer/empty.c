/* SPDX-License-Identifier: BSD-3-Clause */
/* empty.c -- the only source file of a library that just refers to other libraries, because a
 * library needs an object. */
typedef int softrnic_nothing;
