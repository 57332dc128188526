/* SPDX-License-Identifier: BSD-3-Clause */
/* link_lacks.h -- check that a link's table of operations is complete: calling a missing operation
 * would crash. */
#ifndef UNIT_IO_LINK_LACKS_H
#define UNIT_IO_LINK_LACKS_H

#include "softrnic/io/link.h"

/* Returns the name of the first required operation that the table lacks, or NULL. */
const char *link_lacks(const struct link_ops *ops);

#endif
