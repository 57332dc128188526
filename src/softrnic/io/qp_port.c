/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/qp_port.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "softrnic/io/admission.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_plain_impl.h"
#include "softrnic/io/listener.h"
#include "softrnic/io/ud_port.h"

#define QP_PORT_QPS 256u
/* limit of attempts to find a port: the port that the kernel chooses must be free for UDP, too */
#define QP_PORT_TRIES 16

struct qp_port {
	struct list link;
	struct listener *listener;
	/* NULL: no queue pair for datagrams has needed the UDP port yet, or no_udp is true */
	struct ud_port *udp;
	bool no_udp; /* the port number is not available for UDP */
	uint16_t port;
	unsigned n, next; /* n: numbers in use; next: start of the search for a free index */
	struct qp_place *place[QP_PORT_QPS];
};

static pthread_mutex_t port_lock = PTHREAD_MUTEX_INITIALIZER;
/* held while a listener is opened; port_lock may be taken inside it */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list ports = LIST_INIT(ports);
static struct list dials = LIST_INIT(dials); /* dials of all queue pairs, oldest first */
static unsigned n_dials;

/* --- dials ---------------------------------------------------------------------------------- */

/* Find the queue pair with this number. In a forked child the result is NULL, because the
 * connections belong to the parent. The caller holds the lock. */
static struct qp_place *port_find(const struct qp_port *p, uint32_t qpn)
{
	struct qp_place *place = QP_PORT_OF(qpn) == p->port ? p->place[qpn % QP_PORT_QPS] : NULL;

	return place && place->home ? place : NULL;
}

/* Notify the queue pair's home connection. A thread of the engine does the work, because the caller
 * may hold another connection's lock. The caller holds port_lock. */
static void port_tell(struct qp_place *place)
{
	if (place->home)
		conn_plain_ask(place->home);
}

/* If the limit is reached, end the oldest dial. The caller holds the lock. */
static void port_make_room(void)
{
	struct qp_dial *oldest;

	if (n_dials < QP_DIALS_MAX)
		return;
	oldest = container_of(list_first(&dials), struct qp_dial, everyone);
	oldest->gone = true;
	list_del(&oldest->everyone);
	n_dials--;
	port_tell(oldest->place);
}

/* Keep the dial for its queue pair. Returns false if no queue pair has this number. */
static bool port_keep(const struct qp_port *p, struct qp_dial *dial)
{
	bool kept;

	pthread_mutex_lock(&port_lock);
	dial->place = port_find(p, dial->in.data.to.qpn);
	kept = dial->place != NULL;
	if (kept) {
		port_make_room();
		list_add_tail(&dials, &dial->everyone);
		n_dials++;
		list_add_tail(&dial->place->dials, &dial->link);
		port_tell(dial->place);
	}
	pthread_mutex_unlock(&port_lock);
	return kept;
}

/* Called with the carrier's lock when the peer has closed its connection before its dial was
 * answered. */
static void port_on_event(void *owner, enum stream_event event, int status)
{
	struct qp_dial *dial = owner;

	pthread_mutex_lock(&port_lock);
	dial->gone = true;
	port_tell(dial->place);
	pthread_mutex_unlock(&port_lock);
}

/* --- requests ------------------------------------------------------------------------------- */

/* Reject a request. Called with the carrier's lock, in one of its events. */
static void port_refuse(struct conn *carrier, struct meet_data *data, enum meet_reason reason)
{
	conn_plain_reject(carrier, data, reason);
	LOG_INFO("connection %p: a dial for queue pair 0x%06x is rejected: %s", (void *)carrier,
		 data->to.qpn, meet_reason_str((uint8_t)reason));
}

/* Does the GID in the request equal the address that the connection comes from? A host cannot forge
 * its address, but a program could state any GID. */
static bool port_is_from(const struct conn *carrier, const struct meet_data *data)
{
	uint8_t gid[MEET_GID_LEN];

	link_addr_to_gid(&carrier->dst, gid);
	return config_get()->qp_any_source || !memcmp(gid, data->from.gid, sizeof(gid));
}

/* The listener_request_fn of the port's listener, called when a complete request has arrived. */
static bool port_on_request(void *owner, struct conn *carrier)
{
	struct meet_data data;
	struct qp_dial *dial;

	if (!conn_plain_request(carrier, &data)) {
		port_refuse(carrier, &data, MEET_MALFORMED);
		return false;
	}
	if (!port_is_from(carrier, &data)) {
		LOG_WARNING_LIMITED("a dial for queue pair 0x%06x comes from another address than "
				    "its GID: it is rejected (see SOFTRNIC_QP_ANY_SOURCE)",
				    data.to.qpn);
		port_refuse(carrier, &data, MEET_NOT_PEER);
		return false;
	}
	dial = calloc(1, sizeof(*dial));
	if (dial) {
		dial->in.data = data;
		dial->carrier = carrier;
		conn_report_to(carrier, port_on_event, dial);
	}
	if (dial && port_keep(owner, dial))
		return true;
	port_refuse(carrier, &data, dial ? MEET_NO_QP : MEET_BUSY);
	free(dial);
	return false;
}

struct qp_dial *qp_port_news(struct qp_place *place)
{
	struct qp_dial *found = NULL;
	struct list *it;

	pthread_mutex_lock(&port_lock);
	list_for_each (it, &place->dials) {
		struct qp_dial *dial = container_of(it, struct qp_dial, link);

		if (dial->known && !dial->gone)
			continue;
		found = dial;
		break;
	}
	if (found && found->gone)
		list_del(&found->link);
	else if (found)
		found->known = true;
	pthread_mutex_unlock(&port_lock);
	return found;
}

struct qp_dial *qp_port_remove(struct qp_place *place, struct qp_dial *dial)
{
	struct list *first;

	pthread_mutex_lock(&port_lock);
	first = list_first(&place->dials);
	if (!dial && first)
		dial = container_of(first, struct qp_dial, link);
	if (dial)
		list_del(&dial->link);
	if (dial && !list_empty(&dial->everyone)) {
		list_del(&dial->everyone);
		n_dials--;
	}
	pthread_mutex_unlock(&port_lock);
	return dial;
}

/* --- ports ---------------------------------------------------------------------------------- */

static int port_bind(uint16_t number, struct link **out)
{
	struct link_addr at = config_get()->qp_address;
	int ret;

	at.port = number;
	if (at.family == LINK_NONE)
		at.family = LINK_IPV6;
	ret = link_of(&at)->connecting->bind(&at, LINK_FAMILIES_BOTH, out);
	if (ret != -EAFNOSUPPORT && ret != -EADDRNOTAVAIL)
		return ret;
	if (config_get()->qp_address.family != LINK_NONE)
		return ret;
	at.family = LINK_IPV4; /* the host does not support IPv6 */
	return link_of(&at)->connecting->bind(&at, LINK_FAMILIES_DEFAULT, out);
}

static int port_listen(struct qp_port *p, uint16_t number)
{
	struct link_addr at = {.family = LINK_NONE};
	struct link *link;
	int ret = port_bind(number, &link);

	if (ret)
		return ret;
	ret = link->ops->local(link, &at);
	p->port = at.port;
	if (!ret && at.port < QP_PORT_MIN)
		ret = -EADDRINUSE;
	if (!ret)
		ret = listener_open_meeting(link, port_on_request, p, &p->listener);
	if (ret)
		link->ops->close(link);
	return ret;
}

/* Open a port of SOFTRNIC_QP_PORTS, or one that the kernel chooses. */
static int port_open(struct qp_port *p)
{
	const struct config *conf = config_get();
	unsigned lo = conf->qp_ports[0], hi = conf->qp_ports[1];
	int ret = -EADDRINUSE;

	if (!lo)
		for (int i = 0; i < QP_PORT_TRIES && ret == -EADDRINUSE; i++)
			ret = port_listen(p, 0);
	for (unsigned n = lo; lo && n <= hi && (ret == -EADDRINUSE || ret == -EACCES); n++)
		ret = port_listen(p, (uint16_t)n);
	return ret;
}

static void port_log_none(int err)
{
	const struct config *conf = config_get();

	if (err == -EADDRINUSE && conf->qp_ports[0])
		LOG_ERROR_LIMITED("no port for a queue pair: other programs, or %d queue pairs of "
				  "this one for each port, use SOFTRNIC_QP_PORTS=%u-%u",
				  QP_PORT_QPS, conf->qp_ports[0], conf->qp_ports[1]);
	else if (err == -EADDRNOTAVAIL && conf->qp_address.family != LINK_NONE)
		LOG_ERROR_LIMITED("no port for a queue pair: SOFTRNIC_GIDS=%s is no address of "
				  "this host",
				  conf->gids);
	else
		LOG_ERROR_LIMITED("no port for a queue pair: %s (SOFTRNIC_QP_PORTS, ulimit -n)",
				  strerror(-err));
}

static int port_new(void)
{
	struct qp_port *p = calloc(1, sizeof(*p));
	int ret = p ? port_open(p) : -ENOMEM;

	if (ret) {
		port_log_none(ret);
		free(p);
		return ret;
	}
	p->next = rand_u32() % QP_PORT_QPS;
	LOG_INFO("port %u accepts connections for queue pairs without rdma_cm", p->port);
	pthread_mutex_lock(&port_lock);
	list_add_tail(&ports, &p->link);
	pthread_mutex_unlock(&port_lock);
	return 0;
}

/* Assign the next free number of the port. The caller holds the lock. */
static void port_use(struct qp_port *p, struct qp_place *place)
{
	while (p->place[p->next] || ((unsigned)p->port << 8 | p->next) == MEET_QPN_MAX)
		p->next = (p->next + 1) % QP_PORT_QPS;
	place->qpn = (uint32_t)p->port << 8 | p->next;
	place->port = p;
	p->place[p->next] = place;
	p->next = (p->next + 1) % QP_PORT_QPS;
	p->n++;
}

/* Does the port have its UDP socket? If not, try to open the socket. The caller holds open_lock. */
static bool port_has_udp(struct qp_port *p)
{
	struct link_addr at = config_get()->qp_address;

	at.port = p->port;
	if (!p->udp && !p->no_udp)
		p->no_udp = ud_port_open(&at, &p->udp) != 0;
	return p->udp;
}

static bool port_take_one(struct qp_place *place, bool udp)
{
	struct list *it;

	pthread_mutex_lock(&port_lock);
	list_for_each (it, &ports) {
		struct qp_port *p = container_of(it, struct qp_port, link);
		/* The number 0xffffff is never used: in verbs it means all multicast groups. */
		unsigned room = QP_PORT_QPS - (p->port == UINT16_MAX);

		if (p->n < room && (!udp || port_has_udp(p))) {
			port_use(p, place);
			break;
		}
	}
	pthread_mutex_unlock(&port_lock);
	return place->port != NULL;
}

int qp_port_take(struct qp_place *place, struct conn *home)
{
	int ret = 0;

	place->home = home;
	place->port = NULL;
	list_init(&place->dials);
	pthread_mutex_lock(&open_lock);
	while (!ret && !port_take_one(place, false))
		ret = port_new();
	pthread_mutex_unlock(&open_lock);
	return ret;
}

int qp_port_take_ud(struct qp_place *place, struct ud_port **udp)
{
	int ret = 0;

	place->home = NULL;
	place->port = NULL;
	list_init(&place->dials);
	pthread_mutex_lock(&open_lock);
	for (int i = 0; !ret && !port_take_one(place, true); i++)
		ret = i < QP_PORT_TRIES ? port_new() : -EADDRINUSE;
	pthread_mutex_unlock(&open_lock);
	if (!ret)
		*udp = place->port->udp;
	return ret;
}

void qp_port_shut(struct qp_place *place)
{
	pthread_mutex_lock(&port_lock);
	place->home = NULL;
	pthread_mutex_unlock(&port_lock);
}

void qp_port_give(struct qp_place *place)
{
	struct qp_port *p = place->port;

	if (!p)
		return;
	pthread_mutex_lock(&port_lock);
	p->place[place->qpn % QP_PORT_QPS] = NULL;
	p->n--;
	place->port = NULL;
	pthread_mutex_unlock(&port_lock);
}

/* --- fork ----------------------------------------------------------------------------------- */

void qp_port_atfork_prepare(void)
{
	pthread_mutex_lock(&open_lock);
	pthread_mutex_lock(&port_lock);
}

void qp_port_atfork_parent(void)
{
	pthread_mutex_unlock(&port_lock);
	pthread_mutex_unlock(&open_lock);
}

/* In a forked child: the engine closes the copies of the listeners, and the child's queue pairs get
 * new ports. */
void qp_port_atfork_child(void)
{
	list_init(&ports);
	list_init(&dials);
	n_dials = 0;
	qp_port_atfork_parent();
}
