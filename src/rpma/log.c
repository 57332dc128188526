/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c -- thresholds and the function that gets the messages; the sink of base/log.h. */
#include <stdatomic.h>

#include "base/log.h"
#include "librpma.h"
#include "rpma/log_default.h"

/* Debug builds talk, others are quiet: the defaults are part of the interface. */
#ifdef RPMA_LOG_VERBOSE
#define MAIN_DEFAULT RPMA_LOG_LEVEL_DEBUG
#define AUX_DEFAULT  RPMA_LOG_LEVEL_WARNING
#else
#define MAIN_DEFAULT RPMA_LOG_LEVEL_WARNING
#define AUX_DEFAULT  RPMA_LOG_DISABLED
#endif

static rpma_log_function *_Atomic active_function = rpma_log_default_function;
static _Atomic(enum rpma_log_level) thresholds[RPMA_LOG_THRESHOLD_MAX] = {
	[RPMA_LOG_THRESHOLD] = MAIN_DEFAULT, [RPMA_LOG_THRESHOLD_AUX] = AUX_DEFAULT};

static void sink(enum log_level level, const char *file, int line, const char *func,
		 const char *text)
{
	rpma_log_function *function = atomic_load(&active_function);

	function((enum rpma_log_level)level, file, line, func, "%s\n", text);
}

/* Again if another thread set it meanwhile, which may have been overtaken by this one. */
static void apply_main_threshold(void)
{
	enum rpma_log_level level;

	do {
		level = atomic_load(&thresholds[RPMA_LOG_THRESHOLD]);
		log_set(sink, (enum log_level)level);
	} while (level != atomic_load(&thresholds[RPMA_LOG_THRESHOLD]));
}

__attribute__((constructor)) static void log_start(void)
{
	apply_main_threshold();
}

static bool is_threshold(enum rpma_log_threshold threshold)
{
	return threshold == RPMA_LOG_THRESHOLD || threshold == RPMA_LOG_THRESHOLD_AUX;
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level)
{
	if (!is_threshold(threshold) || level < RPMA_LOG_DISABLED || level > RPMA_LOG_LEVEL_DEBUG)
		return RPMA_E_INVAL;
	atomic_store(&thresholds[threshold], level);
	apply_main_threshold();
	return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level)
{
	if (!is_threshold(threshold) || !level)
		return RPMA_E_INVAL;
	*level = atomic_load(&thresholds[threshold]);
	return 0;
}

int rpma_log_set_function(rpma_log_function *log_function)
{
	atomic_store(&active_function, log_function ? log_function : rpma_log_default_function);
	return 0;
}
