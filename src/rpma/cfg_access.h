/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfg_access.h -- macros that define the setters and getters of a configuration object.
 *
 * A field is X(object, type, name, condition on `value`). Fields are atomic, so threads may share a
 * configuration without a lock.
 */
#ifndef RPMA_CFG_ACCESS_H
#define RPMA_CFG_ACCESS_H

#include <stdatomic.h>
#include <stdlib.h>

#include "librpma.h"
#include "rpma/err.h"

#define CFG_MEMBER(obj, type, name, valid) _Atomic(type) name;

#define CFG_SETTER_AND_GETTER(obj, type, name, valid)                                              \
	int rpma_##obj##_set_##name(struct rpma_##obj *cfg, type value)                            \
	{                                                                                          \
		if (!cfg || !(valid))                                                              \
			return INVALID();                                                          \
		atomic_store(&cfg->name, value);                                                   \
		return 0;                                                                          \
	}                                                                                          \
	int rpma_##obj##_get_##name(const struct rpma_##obj *cfg, type *value)                     \
	{                                                                                          \
		if (!cfg || !value)                                                                \
			return INVALID();                                                          \
		*value = atomic_load(&cfg->name);                                                  \
		return 0;                                                                          \
	}

#define CFG_DELETE(obj)                                                                            \
	int rpma_##obj##_delete(struct rpma_##obj **cfg_ptr)                                       \
	{                                                                                          \
		if (!cfg_ptr)                                                                      \
			return INVALID();                                                          \
		free(*cfg_ptr);                                                                    \
		*cfg_ptr = NULL;                                                                   \
		return 0;                                                                          \
	}

#endif
