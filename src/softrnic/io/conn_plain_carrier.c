/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_plain_carrier.c -- handles an inbound dial for a plain queue pair. The handshake makes a
 * separate connection for the dial, which is called its carrier. The carrier has the dial's link
 * and request until the home takes over both, or rejects the dial.
 *
 * A carrier's lock may be taken inside a home's lock, not the other way round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/admission.h"
#include "softrnic/io/conn_plain_impl.h"

bool conn_plain_request(struct conn *carrier, struct meet_data *data)
{
	const struct stream_params *remote = stream_remote(carrier->stream);
	const char *why;

	if (!meet_data_decode(remote->pdata, remote->pdata_len, data, &why) && !data->reason &&
	    data->path_mtu && stream_peer_consents(carrier->stream))
		return true;
	LOG_NOTICE_LIMITED(
		"connection %p: its private data are no request of a queue pair: %s",
		(void *)carrier,
		why ? why : "it is no request, or the peer does not consent to the extensions");
	return false;
}

/* Send a reject. The reply's names are exchanged: the request's receiver is the reply's sender. */
void conn_plain_reject(struct conn *carrier, const struct meet_data *data, enum meet_reason reason)
{
	struct meet_data reply = {.uc = data->uc,
				  .from = data->to,
				  .to = data->from,
				  .sq_psn = MEET_NO_PSN,
				  .max_rd_atomic = MEET_NO_RD,
				  .reason = (uint8_t)reason};
	struct stream_update u; /* not used here: the caller performs the tasks */
	uint8_t bytes[MEET_LEN];

	reply.from.qpn &= MEET_QPN_MAX;
	reply.to.qpn &= MEET_QPN_MAX;
	(void)meet_data_encode(bytes, sizeof(bytes), &reply);
	(void)stream_reject(carrier->stream, bytes, MEET_LEN, clock_now_ns(), &u);
	if (reason != MEET_BUSY)
		admission_count_violation(&carrier->dst, clock_now_ns());
}

void conn_plain_drop(struct qp_dial *dial, enum meet_reason reason)
{
	struct conn *carrier = dial->carrier;

	conn_enter(carrier);
	if (stream_state(carrier->stream) == STREAM_REQ_RCVD)
		conn_plain_reject(carrier, &dial->in.data, reason);
	conn_abandon(carrier);
	conn_settle(carrier);
	conn_leave(carrier);
	conn_put(carrier);
	free(dial);
}

/* Give the carrier's link to the home. From now on the link reports to the home. */
static int carrier_give_link(struct conn *carrier, struct conn *home)
{
	struct link *link = carrier->link;
	int ret = link->ops->connecting->watch(link, &home->source, false);

	if (ret)
		return ret;
	home->link = link;
	carrier->link = NULL;
	home->registered = true;
	home->readable = home->writable = true;
	home->watching = home->hangup = false;
	home->src = carrier->src;
	home->dst = carrier->dst;
	home->same_host = carrier->same_host;
	conn_get(home);
	return 0;
}

/* Exchange the streams of two connections. Each stream keeps its state. */
static void carrier_swap_streams(struct conn *carrier, struct conn *home)
{
	struct stream *stream = carrier->stream;

	carrier->stream = home->stream;
	home->stream = stream;
	stream_move(home->stream, home);
	stream_move(carrier->stream, carrier);
	fence_member_init(&home->fenced);
	memset(&carrier->initiator, 0, sizeof(carrier->initiator));
}

static void carrier_end(struct conn *carrier)
{
	struct stream_update u;

	conn_abandon(carrier);
	stream_abort(carrier->stream, &u);
	conn_perform(carrier, &u);
	if (carrier->registered) {
		carrier->registered = false;
		conn_put(carrier);
	}
}

int conn_plain_take_over(struct conn *home, struct qp_dial *dial)
{
	struct conn *carrier = dial->carrier;
	struct stream_update u;
	int ret = -ECONNRESET;
	struct qp *qp;

	conn_enter(carrier);
	if (carrier->link && stream_state(carrier->stream) == STREAM_REQ_RCVD)
		ret = carrier_give_link(carrier, home);
	if (!ret) {
		qp = stream_take_back_qp(home->stream, &u);
		carrier_swap_streams(carrier, home);
		stream_attach_qp(home->stream, qp);
	}
	carrier_end(carrier);
	conn_leave(carrier);
	conn_put(carrier);
	free(dial);
	return ret;
}
