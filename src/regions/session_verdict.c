/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the server whether the bytes that a session wrote will be found under the name of the
 * region's file. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
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
			"%s cannot write the record of region '%s', which is beside the region's "
			"file; its log has the reason",
			s->server, s->region.region);
	if (status == HELLO_FILE_UNKNOWN)
		return error_set(
			err, ERROR_REFUSED, (int)status,
			"%s cannot check the file of region '%s', so bytes written to it might be "
			"lost; its log has the reason",
			s->server, s->region.region);
	return error_set(
		err, ERROR_REFUSED, (int)status,
		"the file of region '%s' of %s %s while it was served: bytes written there would "
		"be lost; read the region to save its content, then restart the server",
		s->region.region, s->server, reasons[status]);
}

static int verdict_check(struct session *s, const uint8_t *in, size_t len, struct error *err)
{
	enum hello_status status;

	if (!hello_verdict_decode(in, len, &status) ||
	    (status != HELLO_OK && (status < HELLO_BEING_WRITTEN || status >= HELLO_TAKEN)))
		return error_set(
			err, ERROR_REFUSED, HELLO_BAD_REQUEST,
			"%s does not report whether the file of the region is still in place",
			s->server);
	return status == HELLO_OK ? 0 : session_file_is_lost(s, status, err);
}

int session_take_verdict(struct session *s, size_t len, struct error *err)
{
	int rc = verdict_check(s, session_take_message(s), len, err);

	return rc ? rc
		  : error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
			      "%s sent an answer without a request", s->server);
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

/* Write "at 2026-01-31 23:59:59 UTC". The time is that of the server's clock. */
static void verdict_show_time(uint64_t ns, char *text, size_t size)
{
	time_t seconds = (time_t)(ns / NSEC_PER_SEC);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, size, "at %F %T UTC", &tm))
		snprintf(text, size, "at an unknown time");
}

static int verdict_is_taken(const struct session *s, const struct hello_begin *begin,
			    const struct hello_begun *begun, struct error *err)
{
	char when[64];

	if (!begun->claim.generation)
		return error_set(
			err, ERROR_REFUSED, HELLO_TAKEN,
			"%s does not know claim %" PRIu64
			" of region '%s' any more: it was restarted without a record of it, or "
			"serves another file; close the file, open it again and read it before "
			"writing",
			s->server, begin->former.generation, s->region.region);
	verdict_show_time(begun->made_ns, when, sizeof(when));
	return error_set(err, ERROR_REFUSED, HELLO_TAKEN,
			 "another writer has taken over region '%s' of %s: claim %" PRIu64
			 ", made %s, is newer than claim %" PRIu64
			 "; close the file, open it again and read it before writing",
			 s->region.region, s->server, begun->claim.generation, when,
			 begin->former.generation);
}

/* Returns true if the answer has the claim that it must have: a new claim, or the former one. */
static bool verdict_is_claim(const struct hello_begin *begin, const struct hello_begun *begun)
{
	const struct claim_id *former = &begin->former, *got = &begun->claim;

	if (!former->generation)
		return got->generation != 0;
	return got->generation == former->generation && got->key == former->key;
}

static int verdict_is_no_answer(const struct session *s, struct error *err)
{
	return error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
			 "%s does not report whether this client may write to the region",
			 s->server);
}

static int verdict_take_begun(struct session *s, const struct hello_begin *begin,
			      const struct hello_begun *begun, struct error *err)
{
	if (begun->status == HELLO_OK && verdict_is_claim(begin, begun)) {
		s->claim = begun->claim;
		return 0;
	}
	if (begun->status == HELLO_TAKEN && begin->former.generation)
		return verdict_is_taken(s, begin, begun, err);
	if (begun->status >= HELLO_BEING_WRITTEN && begun->status < HELLO_TAKEN)
		return session_file_is_lost(s, begun->status, err);
	return verdict_is_no_answer(s, err);
}

/* An unrequested verdict may come instead of the answer. Such a verdict is always a failure. */
int session_put_begin(struct session *s, const struct hello_begin *begin, struct error *err)
{
	struct hello_begun begun;
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc = session_ask(s, hello_begin_encode(begin, s->messages.out), &in, &len, err);

	if (rc)
		return rc;
	if (hello_begun_decode(in, len, &begun))
		return verdict_take_begun(s, begin, &begun, err);
	rc = verdict_check(s, in, len, err);
	return rc ? rc : verdict_is_no_answer(s, err);
}
