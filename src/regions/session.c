/* SPDX-License-Identifier: BSD-3-Clause */
/* Begins a session, waits for it, and ends it. */
#include <string.h>

#include "base/text.h"
#include "regions/session_impl.h"

static int session_has_no_region(const struct session *s, const struct session_opts *opts,
				 struct error *err)
{
	if (s->region.region[0])
		return error_set(err, ERROR_REFUSED, HELLO_NO_REGION,
				 "%s does not serve a region '%s'; it serves '%s'", s->server,
				 opts->region, s->region.region);
	return error_set(err, ERROR_REFUSED, HELLO_NO_REGION,
			 "%s does not serve a region '%s'; 'rpma info %s' lists what it serves",
			 s->server, opts->region, s->server);
}

static int session_must_choose(const struct session *s, struct error *err)
{
	return error_set(err, ERROR_REFUSED, HELLO_CHOOSE,
			 "%s serves several regions, and none was named: choose one, as in "
			 "%s:NAME; 'rpma info %s' lists them",
			 s->server, s->server, s->server);
}

static int session_refused(const struct session *s, const struct session_opts *opts,
			   struct error *err)
{
	static const char *const texts[HELLO_STATUS_COUNT] = {
		[HELLO_BUSY] = "serves as many clients as it may; try again later",
		[HELLO_BUSY_ADDRESS] = "serves as many clients from this address as it may; "
				       "try again later",
		[HELLO_SECRET_NEEDED] =
			"requires a secret: give the secret file that it was started with "
			"(--secret-file, or secret_file of a program's options)",
		[HELLO_SECRET_UNUSED] = "serves without a secret and proves none: give no "
					"secret file, or start it with one",
	};
	unsigned status = s->region.version == HELLO_VERSION ? s->region.status : HELLO_BAD_VERSION;

	if (status == HELLO_NO_REGION)
		return session_has_no_region(s, opts, err);
	if (status == HELLO_CHOOSE)
		return session_must_choose(s, err);
	if (status >= HELLO_BEING_WRITTEN && status < HELLO_TAKEN)
		return session_file_is_lost(s, (enum hello_status)status, err);
	if (status < HELLO_STATUS_COUNT && texts[status])
		return error_set(err, ERROR_REFUSED, (int)status, "%s %s", s->server,
				 texts[status]);
	return error_set(err, ERROR_REFUSED, HELLO_BAD_VERSION,
			 "%s does not understand this client (version %d); "
			 "use the same release of rpma on both sides",
			 s->server, HELLO_VERSION);
}

/* A client that has a secret accepts only an answer that requires a proof. */
static int session_follow_reply(struct session *s, const struct session_opts *opts,
				struct error *err)
{
	if (s->region.version != HELLO_VERSION)
		return session_refused(s, opts, err);
	if (opts->secret && s->region.status == HELLO_PROVE)
		return session_prove(s, opts, err);
	if (opts->secret && s->region.status == HELLO_OK)
		s->region.status = HELLO_SECRET_UNUSED;
	return 0;
}

static int session_read_reply(struct session *s, const struct session_opts *opts, struct error *err)
{
	struct rpma_conn_private_data pdata;
	int rc = rpma_conn_get_private_data(s->conn, &pdata);

	if (rc || !hello_reply_decode(&pdata, &s->region))
		return error_set(
			err, ERROR_REFUSED, HELLO_BAD_REQUEST,
			"%s is not an 'rpma serve': its private data is of an unknown version",
			s->server);
	rc = session_follow_reply(s, opts, err);
	if (rc)
		return rc;
	text_make_printable(s->region.region);
	return s->region.status == HELLO_OK ? 0 : session_refused(s, opts, err);
}

static int session_adopt_descriptors(struct session *s, struct error *err)
{
	struct rpma_peer_cfg *pcfg = NULL;
	int rc = rpma_peer_cfg_from_descriptor(s->region.pcfg, s->region.pcfg_len, &pcfg);

	if (!rc)
		rc = rpma_conn_apply_remote_peer_cfg(s->conn, pcfg);
	if (!rc)
		rc = rpma_mr_remote_from_descriptor(s->region.mr, s->region.mr_len, &s->remote);
	rpma_peer_cfg_delete(&pcfg);
	return rc ? error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
			      "the region's description from %s is damaged: %s", s->server,
			      rpma_err_last())
		  : 0;
}

static int session_begin(struct session *s, const struct session_opts *opts, struct error *err)
{
	int rc = session_connect(s, opts, err);

	if (rc)
		return rc;
	rc = completions_init(&s->completions, s->conn);
	if (rc)
		return session_post_failed(s, "use the connection to", rc, err);
	rc = session_read_reply(s, opts, err);
	if (!rc && opts->access != HELLO_LIST)
		rc = session_adopt_descriptors(s, err);
	return rc;
}

int session_open(struct session *s, const struct session_opts *opts, struct error *err)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->timeout_ms = opts->timeout_ms;
	address_show(&opts->server, s->server);
	rc = session_begin(s, opts, err);
	if (rc)
		session_close(s);
	return rc;
}

int session_open_with_file(struct session *s, const struct session_opts *opts,
			   const char *secret_file, struct error *err)
{
	struct session_opts with = *opts;
	struct secret secret;
	int rc = 0;

	memset(s, 0, sizeof(*s));
	if (secret_file) {
		with.secret = &secret;
		rc = secret_load(&secret, secret_file, err);
	}
	if (!rc)
		rc = session_open(s, &with, err);
	secret_forget(&secret);
	return rc;
}

void session_close(struct session *s)
{
	if (s->conn)
		rpma_conn_disconnect(s->conn);
	rpma_mr_remote_delete(&s->remote);
	rpma_conn_delete(&s->conn);
	rpma_mr_dereg(&s->message_mr);
	rpma_peer_delete(&s->peer);
}

int session_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr,
		     struct error *err)
{
	int rc = rpma_mr_reg(s->peer, buf, size, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
			     mr);

	return rc ? error_set(err, ERROR_FAILED, rc, "cannot register a buffer of %zu bytes: %s",
			      size, rpma_err_last())
		  : 0;
}

int session_reap(struct session *s, unsigned spin_us, struct ibv_wc *wc, struct error *err)
{
	struct ibv_wc mine;
	int rc;

	wc = wc ? wc : &mine;
	rc = session_wait(s, spin_us, wc, err);
	return !rc && wc->opcode & IBV_WC_RECV ? session_take_verdict(s, wc->byte_len, err) : rc;
}
