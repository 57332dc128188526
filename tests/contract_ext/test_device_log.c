/* SPDX-License-Identifier: BSD-3-Clause */
/* test_device_log.c -- the software RNIC passes its messages to the log function of librpma's user,
 * and obeys the user's threshold. This includes messages of the device's threads. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends_ext.h"

static atomic_int disk_error;

/* Replaces libc's msync() by a function that fails as on a failing disk. */
__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	int err = atomic_load(&disk_error);

	if (!err)
		return (int)syscall(SYS_msync, addr, len, flags);
	errno = err;
	return -1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	/* lines: messages about a write-back; elsewhere: the number of these messages from other
	 * threads */
	int lines, elsewhere;
	enum rpma_log_level level;
	char text[512];
} heard;
static pthread_t main_thread;

static void listen_to(enum rpma_log_level level, const char *file_name, const int line_no,
		      const char *function_name, const char *message_format, ...)
{
	char text[sizeof(heard.text)];
	va_list ap;

	va_start(ap, message_format);
	vsnprintf(text, sizeof(text), message_format, ap);
	va_end(ap);
	if (!strstr(text, "write-back of "))
		return;
	pthread_mutex_lock(&lock);
	heard.lines++;
	heard.elsewhere += !pthread_equal(pthread_self(), main_thread);
	heard.level = level;
	memcpy(heard.text, text, sizeof(text));
	pthread_mutex_unlock(&lock);
}

/* Make a flush fail at the target; both ends are in this process. */
static void lose_a_write_back(void)
{
	struct ends_file file;
	struct ibv_wc wc;
	struct ends d;

	memset(&heard, 0, sizeof(heard));
	ends_open(&d, NULL);
	ends_file_open(&file, &d, 4096);
	if (!file.is_on_medium)
		skip();
	OK(rpma_write(d.cli, file.remote, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	atomic_store(&disk_error, EIO);
	OK(rpma_flush(d.cli, file.remote, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, NULL));
	do
		ends_wait_wc(d.cli, &wc);
	while (wc.status == IBV_WC_SUCCESS);
	atomic_store(&disk_error, 0);
	ends_file_close(&file);
	ends_close(&d);
}

static void a_failed_write_back_reaches_the_function(void **state)
{
	main_thread = pthread_self();
	OK(rpma_log_set_function(listen_to));
	OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR));
	lose_a_write_back();
	assert_int_equal(heard.lines, 1);
	assert_int_equal(heard.elsewhere, 1);
	assert_int_equal(heard.level, RPMA_LOG_LEVEL_ERROR);
	assert_non_null(strstr(heard.text, "Input/output error"));
	assert_non_null(strstr(heard.text, "\n"));
}

static void the_threshold_counts_for_the_device_too(void **state)
{
	OK(rpma_log_set_function(listen_to));
	OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	lose_a_write_back();
	assert_int_equal(heard.lines, 0);
	OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING));
	lose_a_write_back();
	assert_int_equal(heard.lines, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_write_back_reaches_the_function),
		cmocka_unit_test(the_threshold_counts_for_the_device_too),
	};

	return cmocka_run_group_tests_name("device log", tests, NULL, NULL);
}
