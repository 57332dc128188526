/* SPDX-License-Identifier: BSD-3-Clause */
/* link_lacks.h -- is the table of a link complete? A call of a missing operation would end the process. */
#ifndef UNIT_IO_LINK_LACKS_H
#define UNIT_IO_LINK_LACKS_H

#include "softrnic/io/link.h"

/* Returns the name of the first required operation that is missing; NULL: none is missing. */
const char *link_lacks(const struct link_ops *ops);

#endif
