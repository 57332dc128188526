/* SPDX-License-Identifier: BSD-3-Clause */
/* empty.c -- a library that only names other libraries still needs an object. */
typedef int softrnic_nothing;
