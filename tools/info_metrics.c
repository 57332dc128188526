/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma info HOST: reports on a server as metrics for Prometheus, and as a monitoring plugin. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/openmetrics_file.h"
#include "cli.h"
#include "info.h"
#include "regions/session.h"
#include "regions/target.h"

/* A server's answer to one question. */
struct probe {
	const char *server;
	int rc; /* result of the question: enum error_kind */
	struct error err;
	double seconds; /* time taken by the connection and the answer */
	struct hello_counts counts;
};

static int probe_ask(struct probe *p, struct session *s, const struct remote_opts *opts)
{
	struct session_opts with = {
		.access = HELLO_LIST, .depth = 2, .timeout_ms = opts->timeout_ms};
	struct target target;
	int rc = target_parse(opts->target, &target, &p->err);

	with.server = target.server;
	with.region = "";
	if (!rc)
		rc = session_open_with_file(s, &with, opts->secret_file, &p->err);
	if (rc)
		return rc;
	rc = session_counts(s, &p->counts, &p->err);
	session_close(s);
	return rc;
}

static void probe_run(struct probe *p, const struct remote_opts *opts)
{
	uint64_t begin = clock_now_ns();
	struct session s;

	*p = (struct probe){.server = opts->target};
	p->rc = probe_ask(p, &s, opts);
	p->seconds = (double)(clock_now_ns() - begin) / (double)NSEC_PER_SEC;
}

/* ---- metrics ---- */

static const struct openmetrics_family probe_up =
	OM_GAUGE("rpma_up", "1 if the server answers; a refusal is an answer, too.", NULL);
static const struct openmetrics_family probe_refused = OM_GAUGE(
	"rpma_secret_refused", "1 if the server has another secret than this client.", NULL);
static const struct openmetrics_family probe_seconds =
	OM_GAUGE("rpma_answer_seconds",
		 "Time until the server had accepted the connection and answered.", "seconds");
static const struct openmetrics_family probe_clients =
	OM_GAUGE("rpma_serve_clients", "Clients that are served now.", NULL);
static const struct openmetrics_family probe_served = OM_COUNTER(
	"rpma_serve_served_clients", "Clients that were served since the server started.", NULL);
static const struct openmetrics_family probe_refusals = OM_COUNTER(
	"rpma_serve_refusals", "Clients that were refused since the server started.", NULL);

/* The families are in the order of hello_value_name(). */
static const struct openmetrics_family probe_values[HELLO_VALUES] = {
	OM_COUNTER("rpma_serve_received_bytes", "Bytes received from clients.", "bytes"),
	OM_COUNTER("rpma_serve_sent_bytes", "Bytes sent to clients.", "bytes"),
	OM_COUNTER("rpma_serve_writes", "Writes of clients.", NULL),
	OM_COUNTER("rpma_serve_sends", "Sends of clients.", NULL),
	OM_COUNTER("rpma_serve_reads", "Reads of clients.", NULL),
	OM_COUNTER("rpma_serve_flushes", "Flushes of clients.", NULL),
	OM_COUNTER("rpma_serve_atomics", "Atomic operations of clients.", NULL),
	OM_COUNTER("rpma_serve_writebacks", "Write-backs to the medium.", NULL),
	OM_COUNTER("rpma_serve_crc_errors", "Frames with a wrong checksum.", NULL),
	OM_COUNTER("rpma_serve_terminates_received", "Errors that clients reported.", NULL),
	OM_COUNTER("rpma_serve_terminates_sent", "Errors that were reported to clients.", NULL),
	OM_COUNTER(
		"rpma_serve_writeback_failures",
		"Write-backs that failed: the file's region refuses every flush until a restart.",
		NULL),
};

/* A metric with one value for each region. room: the value is unknown if the size of the file
 * system is unknown. */
struct probe_region_row {
	struct openmetrics_family family;
	bool room;
	double (*get)(const struct hello_region_counts *r);
};

static double probe_get_size(const struct hello_region_counts *r)
{
	return (double)r->size;
}

static double probe_get_usable(const struct hello_region_counts *r)
{
	return r->status == HELLO_OK;
}

static double probe_get_persistent(const struct hello_region_counts *r)
{
	return r->durability != RPMA_DURABILITY_VOLATILE;
}

static double probe_get_avail(const struct hello_region_counts *r)
{
	return (double)r->avail;
}

static double probe_get_room(const struct hello_region_counts *r)
{
	return (double)r->room;
}

static const struct probe_region_row probe_region_rows[] = {
	{OM_GAUGE("rpma_serve_region_size_bytes", "Size of the region.", "bytes"), false,
	 probe_get_size},
	{OM_GAUGE(
		 "rpma_serve_region_usable",
		 "0 if the region's file was removed, replaced or truncated, or cannot be checked.",
		 NULL),
	 false, probe_get_usable},
	{OM_GAUGE("rpma_serve_region_persistent", "0 if nothing can persist the region.", NULL),
	 false, probe_get_persistent},
	{OM_GAUGE("rpma_serve_filesystem_avail_bytes",
		  "Free space in the file system of the region's file.", "bytes"),
	 true, probe_get_avail},
	{OM_GAUGE("rpma_serve_filesystem_size_bytes",
		  "Size of the file system of the region's file.", "bytes"),
	 true, probe_get_room},
};

static void probe_put(struct openmetrics *om, const struct openmetrics_family *family,
		      const struct probe *p, double value)
{
	struct openmetrics_label labels[] = {{"server", p->server}, {0}};

	openmetrics_family(om, family);
	openmetrics_sample(om, labels, value);
}

static void probe_put_regions(struct openmetrics *om, const struct probe_region_row *row,
			      const struct probe *p)
{
	openmetrics_family(om, &row->family);
	for (unsigned i = 0; i < p->counts.count; i++) {
		const struct hello_region_counts *r = &p->counts.regions[i];
		struct openmetrics_label labels[] = {
			{"server", p->server}, {"region", r->region}, {0}};

		if (r->room || !row->room)
			openmetrics_sample(om, labels, row->get(r));
	}
}

static void probe_write(struct openmetrics *om, const struct probe *p)
{
	bool is_refused = p->rc == ERROR_REFUSED;
	bool lacks_secret = is_refused && (p->err.cause == HELLO_SECRET_NEEDED ||
					   p->err.cause == HELLO_SECRET_UNUSED ||
					   p->err.cause == HELLO_SECRET_WRONG);

	/* A server is up even if it refuses this client. */
	probe_put(om, &probe_up, p, !p->rc || is_refused);
	probe_put(om, &probe_refused, p, lacks_secret);
	if (p->rc)
		return;
	probe_put(om, &probe_seconds, p, p->seconds);
	probe_put(om, &probe_clients, p, (double)p->counts.clients);
	probe_put(om, &probe_served, p, (double)p->counts.served);
	probe_put(om, &probe_refusals, p, (double)p->counts.refused);
	for (unsigned i = 0; i < HELLO_VALUES; i++)
		probe_put(om, &probe_values[i], p, (double)p->counts.values[i]);
	for (size_t i = 0; i < sizeof(probe_region_rows) / sizeof(probe_region_rows[0]); i++)
		probe_put_regions(om, &probe_region_rows[i], p);
}

int info_metrics(const struct remote_opts *opts, const char *textfile)
{
	struct openmetrics om;
	struct error err;
	struct probe p;
	int rc = CLI_OK;

	probe_run(&p, opts);
	if (p.rc)
		rc = cli_report(&p.err, "");
	openmetrics_init(&om, textfile ? OPENMETRICS_TEXT_0_0_4 : OPENMETRICS_1_0);
	probe_write(&om, &p);
	if (openmetrics_end(&om))
		rc = cli_fail(CLI_FILE, "out of memory");
	else if (!textfile)
		fwrite(om.text, 1, om.len, stdout);
	else if (openmetrics_save(&om, textfile, &err))
		rc = cli_report(&err, "");
	openmetrics_fini(&om);
	return rc;
}

/* ---- a monitoring plugin ---- */

static unsigned info_count_lost(const struct hello_counts *counts)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < counts->count; i++)
		lost += counts->regions[i].status != HELLO_OK;
	return lost;
}

int info_check(const struct remote_opts *opts)
{
	struct probe p;
	uint64_t failures;
	unsigned lost;
	bool bad;

	probe_run(&p, opts);
	if (p.rc == ERROR_UNREACHED || p.rc == ERROR_REFUSED || p.rc == ERROR_FAILED) {
		printf("RPMA CRITICAL - %s\n", p.err.text);
		return INFO_CRITICAL;
	}
	if (p.rc) {
		printf("RPMA UNKNOWN - %s\n", p.err.text);
		return INFO_UNKNOWN;
	}
	failures = p.counts.values[HELLO_WRITEBACK_FAILURES];
	lost = info_count_lost(&p.counts);
	bad = failures || lost;
	printf("RPMA %s - server %s, %u regions, %u of them without their file, %" PRIu64
	       " write-backs have failed | 'answer'=%.6fs;;;0 'clients'=%" PRIu64
	       ";;;0 'lost_regions'=%u;;1;0 'writeback_failures'=%" PRIu64 ";;1;0\n",
	       bad ? "CRITICAL" : "OK", p.server, p.counts.count, lost, failures, p.seconds,
	       p.counts.clients, lost, failures);
	return bad ? INFO_CRITICAL : INFO_OK;
}
