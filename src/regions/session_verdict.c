/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what a session wrote will be found under the name of the region's file. */
#include "regions/session_impl.h"

int session_file_is_lost(const struct session *s, enum hello_status status, struct error *err)
{
	static const char *const reasons[HELLO_STATUS_COUNT] = {
		[HELLO_FILE_REMOVED] = "was removed or renamed",
		[HELLO_FILE_REPLACED] = "was replaced by another file",
		[HELLO_FILE_TRUNCATED] = "was truncated",
	};

	if (status == HELLO_BEING_WRITTEN)
		return error_set(err, ERROR_REFUSED, (int)status,
				 "another client writes to region '%s' of %s; try again later",
				 s->region.region, s->server);
	if (status == HELLO_FILE_UNRECORDED)
		return error_set(
			err, ERROR_REFUSED, (int)status,
			"%s cannot keep beside the file of region '%s' which file that is; "
			"its log says more",
			s->server, s->region.region);
	if (status == HELLO_FILE_UNKNOWN)
		return error_set(
			err, ERROR_REFUSED, (int)status,
			"%s cannot look at the file of region '%s', so it is unknown whether "
			"what is written would be found; its log says more",
			s->server, s->region.region);
	return error_set(err, ERROR_REFUSED, (int)status,
			 "the file of region '%s' of %s %s while it was served: what is written "
			 "there would be lost; save what it holds by reading it, then start the "
			 "server anew",
			 s->region.region, s->server, reasons[status]);
}

static int verdict_check(struct session *s, const uint8_t *in, size_t len, struct error *err)
{
	enum hello_status status;

	if (!hello_verdict_decode(in, len, &status) ||
	    (status != HELLO_OK && status < HELLO_BEING_WRITTEN))
		return error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
				 "%s does not say whether what was written will be found",
				 s->server);
	return status == HELLO_OK ? 0 : session_file_is_lost(s, status, err);
}

int session_take_verdict(struct session *s, size_t len, struct error *err)
{
	int rc = verdict_check(s, session_take_message(s), len, err);

	return rc ? rc
		  : error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
			      "%s answers what was not asked", s->server);
}

static int verdict_ask(struct session *s, size_t question_len, struct error *err)
{
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc = session_ask(s, question_len, &in, &len, err);

	return rc ? rc : verdict_check(s, in, len, err);
}

int session_confirm(struct session *s, struct error *err)
{
	return verdict_ask(s, hello_confirm_encode(s->messages.out), err);
}

int session_put_end(struct session *s, const struct hello_content *content, struct error *err)
{
	return verdict_ask(s, hello_end_encode(content, s->messages.out), err);
}

/* Instead of the answer an unrequested verdict may come, which is never a good one. */
int session_put_begin(struct session *s, const struct hello_begin *begin, struct error *err)
{
	enum hello_status status;
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc = session_ask(s, hello_begin_encode(begin, s->messages.out), &in, &len, err);

	if (rc)
		return rc;
	if (hello_begun_decode(in, len, &status) && status == HELLO_OK)
		return 0;
	if (hello_begun_decode(in, len, &status) && status >= HELLO_BEING_WRITTEN)
		return session_file_is_lost(s, status, err);
	rc = verdict_check(s, in, len, err);
	return rc ? rc
		  : error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
			      "%s does not say whether the region may be written", s->server);
}
