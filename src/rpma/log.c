/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c -- the thresholds for log messages, and the function that receives messages of librpma and
 * of the device. */
#include <stdatomic.h>

#include "librpma.h"
#include "provider/provider.h"
#include "rpma/err.h"
#include "rpma/log_default.h"

/*
 * Default threshold: debug builds log all messages, other builds the messages from WARNING on. The
 * defaults are part of the interface.
 */
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

static enum rpma_log_level log_main_threshold(void)
{
	return atomic_load(&thresholds[RPMA_LOG_THRESHOLD]);
}

/* Pass a message to the log function. Called for messages of a device, and for messages of librpma
 * that reach the threshold. */
static void log_pass(enum log_level level, const char *file, int line, const char *func,
		     const char *text)
{
	rpma_log_function *function = atomic_load(&active_function);

	function((enum rpma_log_level)level, file, line, func, "%s\n", text);
}

/* Handle a message of librpma. An error sets the calling thread's error text even if it is not
 * logged. */
static void log_own(enum log_level level, const char *file, int line, const char *func,
		    const char *text)
{
	if (level <= LOG_LVL_ERROR)
		err_set_text(text);
	if ((int)level <= (int)log_main_threshold())
		log_pass(level, file, line, func, text);
}

/* Apply the threshold. Repeat this if another thread has set the threshold meanwhile, because this
 * thread may have overwritten the newer value. */
static void log_apply_main_threshold(void)
{
	enum rpma_log_level level;

	do {
		level = log_main_threshold();
		log_set(log_own,
			(int)level < (int)LOG_LVL_ERROR ? LOG_LVL_ERROR : (enum log_level)level);
		provider_log_set(log_pass, (enum log_level)level);
	} while (level != log_main_threshold());
}

__attribute__((constructor)) static void log_start(void)
{
	log_apply_main_threshold();
}

static bool log_threshold_is_valid(enum rpma_log_threshold threshold)
{
	return threshold == RPMA_LOG_THRESHOLD || threshold == RPMA_LOG_THRESHOLD_AUX;
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level)
{
	if (!log_threshold_is_valid(threshold) || level < RPMA_LOG_DISABLED ||
	    level > RPMA_LOG_LEVEL_DEBUG)
		return INVALID();
	atomic_store(&thresholds[threshold], level);
	log_apply_main_threshold();
	return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level)
{
	if (!log_threshold_is_valid(threshold) || !level)
		return INVALID();
	*level = atomic_load(&thresholds[threshold]);
	return 0;
}

int rpma_log_set_function(rpma_log_function *log_function)
{
	atomic_store(&active_function, log_function ? log_function : rpma_log_default_function);
	return 0;
}
