/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c -- sets the log sink of this library, which has its own copy of base/log.h. */
#include "softrnic/softrnic.h"

void softrnic_log_set(log_sink *sink, enum log_level level)
{
	log_set(sink, level);
}
