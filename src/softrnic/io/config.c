/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_sockaddr.h"

#define THREADS_MAX 8  /* default limit of progress threads */
#define SPIN_US     20 /* a little longer than the gap between two messages of a ping-pong */
/* Default of SOFTRNIC_SPIN_US with two CPUs. It is longer than a wake-up, because the first gaps
 * include a wake-up. */
#define SPARE_SPIN_US 50

#define OVERFLOW_UID 65534 /* the overflow user number that Linux uses by default */

/* Default size of a ring. With this size both ends work on a large message at the same time; see
 * doc/architecture/io.md. */
#define SHM_KIB     1024
#define SHM_KIB_MIN 64
#define SHM_KIB_MAX 16384
#define SHM_AFTER   16
#define SHM_MAX_MIB 64

static struct config conf;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Read a number in [0, max] from the environment; any other text is logged and ignored. */
static uint64_t config_number(const char *name, uint64_t max, uint64_t dflt)
{
	const char *s = getenv(name);
	unsigned long long v;
	char *end;

	if (!s || !*s)
		return dflt;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || *end || *s == '-' || v > max) {
		LOG_WARNING("%s=%s ignored: expected a number from 0 to %llu", name, s,
			    (unsigned long long)max);
		return dflt;
	}
	return v;
}

static enum config_crc config_crc(void)
{
	const char *s = getenv("SOFTRNIC_CRC");

	if (!s || !*s || !strcmp(s, "auto"))
		return CONFIG_CRC_AUTO;
	if (!strcmp(s, "on"))
		return CONFIG_CRC_ON;
	if (!strcmp(s, "off"))
		return CONFIG_CRC_OFF;
	LOG_WARNING("SOFTRNIC_CRC=%s ignored: expected on, off or auto", s);
	return CONFIG_CRC_AUTO;
}

static enum config_ack config_ack(void)
{
	static const enum config_ack asked[] = {CONFIG_ACK_OFF, CONFIG_ACK_ON, CONFIG_ACK_AUTO};

	return asked[config_number("SOFTRNIC_ACK", 1, 2)];
}

/* Returns the name of the trace file. A set-user-ID program writes no trace, because its user must
 * not be able to read the bytes of its connections. */
static const char *config_trace(void)
{
	const char *s = secure_getenv("SOFTRNIC_TRACE");
	char *cwd, *path = NULL;

	if (!s && getenv("SOFTRNIC_TRACE"))
		LOG_WARNING("SOFTRNIC_TRACE ignored: this program has more rights than its user");
	if (!s || !*s)
		return NULL;
	if (*s == '/')
		return strdup(s);
	/* resolve the path now, because a daemon may change its folder later */
	cwd = get_current_dir_name();
	if (!cwd || asprintf(&path, "%s/%s", cwd, s) < 0)
		path = NULL;
	free(cwd);
	return path;
}

/* Read SOFTRNIC_TRACE. If the file cannot be written, log the reason, because the user has asked
 * for a trace. */
static void config_read_trace(void)
{
	if (secure_getenv("SOFTRNIC_TRACE") && !getenv("SOFTRNIC_LOG"))
		log_to_stderr(LOG_LVL_WARNING);
	conf.trace = config_trace();
	conf.trace_snaplen = config_number("SOFTRNIC_TRACE_SNAPLEN", 65535, 0);
	conf.trace_bytes = config_number("SOFTRNIC_TRACE_BYTES", UINT64_MAX, 0);
}

/* Parse user numbers separated by commas. If one of them is not a number, log this and permit no
 * other user. */
static void config_read_shm_uids(void)
{
	const char *s = secure_getenv("SOFTRNIC_SHM_UIDS");
	unsigned long uid;
	char *end;

	while (s && *s && conf.n_shm_uids < CONFIG_UIDS_MAX) {
		uid = strtoul(s, &end, 10);
		if (end == s || (*end && *end != ',') || *s == '-' || uid >= UINT32_MAX) {
			LOG_WARNING("SOFTRNIC_SHM_UIDS ignored: expected numbers of users between "
				    "commas");
			conf.n_shm_uids = 0;
			return;
		}
		conf.shm_uids[conf.n_shm_uids++] = (uid_t)uid;
		s = *end ? end + 1 : end;
	}
	if (s && *s)
		LOG_WARNING("SOFTRNIC_SHM_UIDS: only the first %d users are used", CONFIG_UIDS_MAX);
}

static uid_t config_overflow_uid(void)
{
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned uid = OVERFLOW_UID;

	if (f && fscanf(f, "%u", &uid) != 1)
		uid = OVERFLOW_UID;
	if (f)
		fclose(f);
	return uid;
}

static void config_read_shm(void)
{
	uint64_t kib = config_number("SOFTRNIC_SHM_KIB", SHM_KIB_MAX, SHM_KIB);

	if (kib < SHM_KIB_MIN || kib & (kib - 1)) {
		LOG_WARNING("SOFTRNIC_SHM_KIB ignored: expected a power of two from %d to %d",
			    SHM_KIB_MIN, SHM_KIB_MAX);
		kib = SHM_KIB;
	}
	conf.shm_ring = kib << 10;
	conf.shm = config_number("SOFTRNIC_SHM", 1, 1);
	conf.shm_after = config_number("SOFTRNIC_SHM_AFTER", UINT32_MAX, SHM_AFTER);
	conf.shm_max = config_number("SOFTRNIC_SHM_MAX_MIB", 1u << 20, SHM_MAX_MIB) << 20;
	conf.overflow_uid = config_overflow_uid();
	config_read_shm_uids();
}

/*
 * Does the device look like RoCE? By default it looks like iWARP, as librpma and iWARP programs
 * expect.
 */
static bool config_is_roce(void)
{
	const char *s = getenv("SOFTRNIC_IDENTITY");
	bool is_roce;

	if (!s || !*s || !strcasecmp(s, "iwarp"))
		return false;
	is_roce = !strcasecmp(s, "roce");
	if (!is_roce)
		LOG_WARNING("SOFTRNIC_IDENTITY=%s ignored: expected roce or iwarp", s);
	return is_roce;
}

static const char *config_gids(void)
{
	const char *s = getenv("SOFTRNIC_GIDS");

	/* copy the text, because the program may change its environment */
	return s && *s ? strdup(s) : NULL;
}

static bool config_is_port(unsigned long port)
{
	return port >= 1024 && port <= UINT16_MAX;
}

static void config_read_qp_ports(void)
{
	const char *s = getenv("SOFTRNIC_QP_PORTS");
	unsigned long lo, hi;
	char *end;

	if (!s || !*s)
		return;
	lo = hi = strtoul(s, &end, 10);
	if (*end == '-')
		hi = strtoul(end + 1, &end, 10);
	if (*end || !config_is_port(lo) || !config_is_port(hi) || hi < lo) {
		LOG_WARNING(
			"SOFTRNIC_QP_PORTS=%s ignored: expected lo-hi, ports from 1024 to 65535",
			s);
		return;
	}
	conf.qp_ports[0] = (unsigned)lo;
	conf.qp_ports[1] = (unsigned)hi;
}

/* Returns the address to which queue pairs without an id bind. Returns LINK_NONE if the text is not
 * one address; the device logs invalid texts. */
static struct link_addr config_qp_address(const char *gids)
{
	struct link_addr addr = {.family = LINK_NONE};

	if (gids)
		link_addr_parse(gids, strlen(gids), &addr);
	return addr;
}

/* Number of CPUs that this process may use. */
static int config_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return CPU_SETSIZE; /* the process has more CPUs than the set can contain */
	return CPU_COUNT(&set);
}

/* Default limit of progress threads: half of the CPUs. The program's own threads, and peers on this
 * host, need the other half. */
static uint64_t config_threads(void)
{
	int n = config_cpus() / 2;

	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (uint64_t)n;
}

/* With few CPUs, spinning can take the CPU that the program or its peer needs. */
static void config_read_spin(void)
{
	uint64_t us = config_number("SOFTRNIC_SPIN_US", 1000000, UINT64_MAX);
	int cpus = config_cpus();

	if (us == UINT64_MAX) {
		us = cpus > 2 ? SPIN_US : cpus == 2 ? SPARE_SPIN_US : 0;
		conf.spins_on_spare = cpus == 2;
	}
	conf.spin_ns = us * NSEC_PER_US;
}

static void config_read(void)
{
	log_set_from_env("SOFTRNIC_LOG");
	config_read_trace();
	config_read_shm();
	conf.crc = config_crc();
	conf.ack = config_ack();
	config_read_spin();
	conf.threads =
		(unsigned)config_number("SOFTRNIC_THREADS", ENGINE_THREADS_MAX, config_threads());
	if (conf.threads == 0)
		conf.threads = 1;
	conf.connect_ns = config_number("SOFTRNIC_CONNECT_MS", 3600000, 10000) * NSEC_PER_MS;
	conf.refused_ns = config_number("SOFTRNIC_REFUSED_MS", 3600000, 0) * NSEC_PER_MS;
	conf.request_ns = config_number("SOFTRNIC_REQUEST_MS", 3600000, 5000) * NSEC_PER_MS;
	conf.drain_ns = config_number("SOFTRNIC_DRAIN_MS", 3600000, 2000) * NSEC_PER_MS;
	conf.liveness_ns = config_number("SOFTRNIC_LIVENESS_MS", 3600000, 15000) * NSEC_PER_MS;
	if (!conf.liveness_ns)
		conf.liveness_ns = CLOCK_NEVER;
	conf.violations_per_s = config_number("SOFTRNIC_VIOLATIONS_PER_S", 1000000, 10);
	conf.retry_ns = config_number("SOFTRNIC_RETRY_MS", 3600000, 2000) * NSEC_PER_MS;
	conf.qp_any_source = config_number("SOFTRNIC_QP_ANY_SOURCE", 1, 0);
	conf.strict_psn = config_number("SOFTRNIC_STRICT_PSN", 1, 0);
	config_read_qp_ports();
	conf.extensions = config_number("SOFTRNIC_EXTENSIONS", 1, 1);
	conf.peer_rfc7306 = config_number("SOFTRNIC_PEER_RFC7306", 1, 0);
	conf.roce = config_is_roce();
	conf.gids = config_gids();
	conf.qp_address = config_qp_address(conf.gids);
	conf.strict_persist = config_number("RPMA_STRICT_PERSIST", 1, 0);
}

const struct config *config_get(void)
{
	pthread_once(&once, config_read);
	return &conf;
}
