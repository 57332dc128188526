/* SPDX-License-Identifier: BSD-3-Clause */
/* test_text.c -- texts of results and events, through the public interface only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <librpma.h>

static void every_result_has_its_text(void **state)
{
	static const struct {
		int ret;
		const char *text;
	} table[] = {
		{0, "Success"},
		{RPMA_E_UNKNOWN, "Unknown error"},
		{RPMA_E_NOSUPP, "Not supported"},
		{RPMA_E_PROVIDER, "Provider error occurred"},
		{RPMA_E_NOMEM, "Out of memory"},
		{RPMA_E_INVAL, "Invalid argument"},
		{RPMA_E_NO_COMPLETION, "No next completion available"},
		{RPMA_E_NO_EVENT, "No next event available"},
		{RPMA_E_AGAIN, "Temporary error, try again"},
		{RPMA_E_SHARED_CHANNEL, "Completion channel is shared"},
		{RPMA_E_NOT_SHARED_CHNL, "Completion channel is not shared"},
		{1, "Unknown error"},
		{-1, "Unknown error"},
		{-100010, "Unknown error"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal(rpma_err_2str(table[i].ret), table[i].text);
}

static void every_event_has_its_text(void **state)
{
	static const struct {
		int event;
		const char *text;
	} table[] = {
		{RPMA_CONN_UNDEFINED, "Undefined connection event"},
		{RPMA_CONN_ESTABLISHED, "Connection established"},
		{RPMA_CONN_CLOSED, "Connection closed"},
		{RPMA_CONN_LOST, "Connection lost"},
		{RPMA_CONN_REJECTED, "Connection rejected"},
		{RPMA_CONN_UNREACHABLE, "Connection unreachable"},
		{5, "Unsupported connection event"},
		{-2, "Unsupported connection event"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal(
			rpma_utils_conn_event_2str((enum rpma_conn_event)table[i].event),
			table[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_result_has_its_text),
		cmocka_unit_test(every_event_has_its_text),
	};

	return cmocka_run_group_tests_name("texts", tests, NULL, NULL);
}
