/* SPDX-License-Identifier: BSD-3-Clause */
/* optfault.h -- explains why getopt_long(3) did not take an option. */
#ifndef BASE_OPTFAULT_H
#define BASE_OPTFAULT_H

#include <getopt.h>
#include <stddef.h>

/*
 * Write the reason into text, after getopt_long() has returned c, which is '?' or ':'. The caller
 * has set opterr to 0 and begun the short options with ':', so that getopt_long() prints nothing: a
 * daemon prints each line with its name and level. The text may be "unrecognized option '--sise'
 * (did you mean '--size'?)".
 */
void optfault_explain(int c, char *const *argv, const struct option *options, char *text,
		      size_t size);

#endif
