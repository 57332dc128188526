/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpma_fio -- an engine for fio that reads, writes and flushes a region of an `rpma serve`.
 *
 * The engine uses fio's structures, whose layout depends on how fio was configured. So it is built
 * with the headers of one build of fio, and refuses to run in another build (README.md).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fio.h>
#include <optgroup.h>

#include "regions/session.h"

#define ENGINE_NAME "rpma"
/* microseconds to spin before checking whether the connection is still alive */
#define ENGINE_SPIN 1000000

/* The flush that follows each write. */
enum engine_flush { FLUSH_NONE, FLUSH_VISIBLE, FLUSH_PERSISTENT };

/* Leave offset 0 unused, because fio treats an offset of 0 as "the option has no member". */
struct engine_options {
	void *nothing;
	char *hostname, *region, *secret_file;
	unsigned port, flush, wait;
};

/* State of one job. */
struct engine {
	struct session s;
	struct rpma_cq *cq;
	struct rpma_mr_local *mr;
	char *mem;
	size_t mem_size;
	enum rpma_flush_type sync; /* the kind of flush for fsync=N */
	struct io_u **events;
	bool writes, spoiled;
};

#define ENGINE_OPTION(option, kind, place, text)                                                   \
	.name = (option), .lname = (option), .type = (kind), .help = (text),                       \
	.off1 = offsetof(struct engine_options, place), .category = FIO_OPT_C_ENGINE,              \
	.group = FIO_OPT_G_INVALID

static struct fio_option engine_options[] = {
	{ENGINE_OPTION("hostname", FIO_OPT_STR_STORE, hostname, "Where rpma serve listens")},
	{ENGINE_OPTION("port", FIO_OPT_INT, port, "Its port"), .def = "7204", .minval = 1,
	 .maxval = 65535},
	{ENGINE_OPTION("region", FIO_OPT_STR_STORE, region,
		       "The region, which will be overwritten")},
	{ENGINE_OPTION("secret_file", FIO_OPT_STR_STORE, secret_file, "The server's secret file")},
	{ENGINE_OPTION("flush", FIO_OPT_STR, flush, "What follows each write"), .def = "none",
	 .posval = {{.ival = "none", .oval = FLUSH_NONE, .help = "only fsync=N flushes"},
		    {.ival = "visible", .oval = FLUSH_VISIBLE, .help = "a flush to visibility"},
		    {.ival = "persistent",
		     .oval = FLUSH_PERSISTENT,
		     .help = "a flush to persistence"}}},
	{ENGINE_OPTION("wait", FIO_OPT_BOOL, wait, "Sleep until completions, do not poll"),
	 .def = "0"},
	{.name = NULL},
};

static int engine_fail(const struct error *err)
{
	log_err(ENGINE_NAME ": %s\n", err->text);
	return 1;
}

/* Refuse to run in another fio, because its structures may differ. */
static int engine_check_program(void)
{
	char own[PATH_MAX], wanted[PATH_MAX];

	if (realpath("/proc/self/exe", own) && realpath(RPMA_FIO_PROGRAM, wanted) &&
	    strcmp(own, wanted) == 0)
		return 0;
	log_err(ENGINE_NAME ": this engine was built for %s and works in no other fio\n",
		RPMA_FIO_PROGRAM);
	return 1;
}

static int engine_check_job(struct thread_data *td)
{
	const struct engine_options *o = td->eo;

	if (!o->hostname || !o->region) {
		log_err(ENGINE_NAME ": hostname= and region= are needed; what the region holds is "
				    "lost when it is written\n");
		return 1;
	}
	if (td_trim(td)) {
		log_err(ENGINE_NAME ": there is no trim\n");
		return 1;
	}
	if (td->o.nr_files > 1) {
		log_err(ENGINE_NAME ": a job has one region, not %u files\n", td->o.nr_files);
		return 1;
	}
	return 0;
}

static int engine_check_region(struct engine *e, struct thread_data *td)
{
	const struct engine_options *o = td->eo;
	const struct fio_file *f = td->files[0];
	uint64_t end = f->file_offset + f->io_size;
	int usage = 0;

	rpma_mr_remote_get_flush_type(e->s.remote, &usage);
	e->sync = usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT ? RPMA_FLUSH_TYPE_PERSISTENT
							      : RPMA_FLUSH_TYPE_VISIBILITY;
	if (end > e->s.region.size) {
		log_err(ENGINE_NAME ": offset= and size= end at %llu, region '%s' at %llu\n",
			(unsigned long long)end, e->s.region.region,
			(unsigned long long)e->s.region.size);
		return 1;
	}
	if (e->writes && o->flush == FLUSH_PERSISTENT && e->sync != RPMA_FLUSH_TYPE_PERSISTENT) {
		log_err(ENGINE_NAME ": the server cannot persist region '%s'\n",
			e->s.region.region);
		return 1;
	}
	return 0;
}

static int engine_open_session(struct engine *e, struct thread_data *td)
{
	const struct engine_options *o = td->eo;
	struct secret secret;
	struct session_opts opts = {.region = o->region,
				    .access = e->writes ? HELLO_WRITE : HELLO_READ,
				    .depth = 2 * td->o.iodepth + 2,
				    .timeout_ms = 60000};
	struct error err;
	int rc = 0;

	snprintf(opts.server.host, sizeof(opts.server.host), "%s", o->hostname);
	snprintf(opts.server.port, sizeof(opts.server.port), "%u", o->port);
	if (o->secret_file) {
		rc = secret_load(&secret, o->secret_file, &err);
		opts.secret = &secret;
	}
	if (!rc)
		rc = session_open(&e->s, &opts, &err);
	secret_forget(&secret);
	return rc ? engine_fail(&err) : 0;
}

/* Before the first write, announce that the region will hold raw bytes. Until then the region can
 * hold a file. */
static int engine_announce(struct engine *e, struct thread_data *td)
{
	const struct fio_file *f = td->files[0];
	struct hello_begin begin = {.offset = f->file_offset, .length = f->io_size};
	struct error err;

	if (!e->writes)
		return 0;
	return session_put_begin(&e->s, &begin, &err) ? engine_fail(&err) : 0;
}

static int engine_start(struct engine *e, struct thread_data *td)
{
	int rc = engine_open_session(e, td);

	if (!rc)
		rc = engine_check_region(e, td);
	if (!rc)
		rc = engine_announce(e, td);
	if (!rc && rpma_conn_get_cq(e->s.conn, &e->cq))
		rc = 1;
	e->events = calloc(td->o.iodepth + 1, sizeof(*e->events));
	return rc || !e->events;
}

static void engine_delete(struct engine *e)
{
	rpma_mr_dereg(&e->mr);
	session_close(&e->s);
	free(e->events);
	free(e);
}

/* Called in the job's own process or thread. */
static int engine_init(struct thread_data *td)
{
	struct engine *e;

	if (engine_check_job(td))
		return 1;
	e = calloc(1, sizeof(*e));
	if (!e)
		return 1;
	e->writes = td_write(td);
	if (engine_start(e, td)) {
		engine_delete(e);
		return 1;
	}
	td->io_ops_data = e;
	return 0;
}

static void engine_cleanup(struct thread_data *td)
{
	struct engine *e = td->io_ops_data;
	struct error err;

	if (!e)
		return;
	if (e->writes && !e->spoiled && session_confirm(&e->s, &err))
		engine_fail(&err);
	engine_delete(e);
	td->io_ops_data = NULL;
}

/* fio allocates the memory of all units in one call, after engine_init(). */
static int engine_memory_alloc(struct thread_data *td, size_t size)
{
	struct engine *e = td->io_ops_data;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct error err;

	if (mem == MAP_FAILED)
		return errno;
	e->mem = mem;
	e->mem_size = size;
	td->orig_buffer = mem;
	return session_register(&e->s, mem, size, &e->mr, &err) ? engine_fail(&err) : 0;
}

static void engine_memory_free(struct thread_data *td)
{
	struct engine *e = td->io_ops_data;

	if (!e || !e->mem)
		return;
	rpma_mr_dereg(&e->mr);
	munmap(e->mem, e->mem_size);
	e->mem = NULL;
	td->orig_buffer = NULL;
}

static int engine_post_write(struct engine *e, struct io_u *io_u, enum engine_flush flush)
{
	size_t from = (size_t)((char *)io_u->xfer_buf - e->mem);
	int rc = rpma_write(e->s.conn, e->s.remote, io_u->offset, e->mr, from, io_u->xfer_buflen,
			    flush ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS, io_u);

	if (rc || !flush)
		return rc;
	return rpma_flush(e->s.conn, e->s.remote, io_u->offset, io_u->xfer_buflen,
			  flush == FLUSH_PERSISTENT ? RPMA_FLUSH_TYPE_PERSISTENT
						    : RPMA_FLUSH_TYPE_VISIBILITY,
			  RPMA_F_COMPLETION_ALWAYS, io_u);
}

static int engine_post(struct thread_data *td, struct io_u *io_u)
{
	const struct engine_options *o = td->eo;
	struct engine *e = td->io_ops_data;

	switch (io_u->ddir) {
	case DDIR_READ:
		return rpma_read(e->s.conn, e->mr, (size_t)((char *)io_u->xfer_buf - e->mem),
				 e->s.remote, io_u->offset, io_u->xfer_buflen,
				 RPMA_F_COMPLETION_ALWAYS, io_u);
	case DDIR_WRITE:
		return engine_post_write(e, io_u, (enum engine_flush)o->flush);
	case DDIR_SYNC:
	case DDIR_DATASYNC: /* flush all bytes that were written to the region */
		return rpma_flush(e->s.conn, e->s.remote, 0, 0, e->sync, RPMA_F_COMPLETION_ALWAYS,
				  io_u);
	default:
		return RPMA_E_NOSUPP;
	}
}

static enum fio_q_status engine_queue(struct thread_data *td, struct io_u *io_u)
{
	struct engine *e = td->io_ops_data;
	struct error err;
	int rc;

	fio_ro_check(td, io_u);
	rc = engine_post(td, io_u);
	if (!rc)
		return FIO_Q_QUEUED;
	session_post_failed(&e->s, "post to", rc, &err);
	engine_fail(&err);
	e->spoiled = true;
	io_u->error = EIO;
	td_verror(td, io_u->error, "post");
	return FIO_Q_COMPLETED;
}

/* Explain the error rc of session_reap(), or the failed completion *wc. */
static void engine_explain(struct engine *e, int rc, const struct ibv_wc *wc, struct error *err)
{
	char why[256] = "it sent what was not asked for";

	if (rc) {
		session_post_failed(&e->s, "take completions from", rc, err);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		rpma_wc_explain(e->s.conn, wc, why, sizeof(why));
	error_set(err, ERROR_FAILED, 0, "%s: %s", e->s.server, why);
}

/* Returns 1 if an event was added to e->events, 0 if there was no event, or -errno if the session
 * has ended. */
static int engine_look(struct engine *e, unsigned count, bool must, bool sleep)
{
	struct ibv_wc wc;
	struct error err;
	int rc = must ? session_reap(&e->s, sleep ? 0 : ENGINE_SPIN, &wc, &err)
		      : rpma_cq_get_wc(e->cq, 1, &wc, NULL);

	if (!must && rc == RPMA_E_NO_COMPLETION)
		return 0;
	if (!rc && wc.status == IBV_WC_SUCCESS && !(wc.opcode & IBV_WC_RECV)) {
		e->events[count] = (struct io_u *)(uintptr_t)wc.wr_id;
		return 1;
	}
	e->spoiled = true;
	if (!must)
		engine_explain(e, rc, &wc, &err);
	engine_fail(&err);
	return -EIO;
}

static int engine_getevents(struct thread_data *td, unsigned int min, unsigned int max,
			    const struct timespec *t)
{
	const struct engine_options *o = td->eo;
	struct engine *e = td->io_ops_data;
	unsigned count = 0;

	while (count < max && count < td->o.iodepth + 1) {
		int rc = engine_look(e, count, count < min, o->wait);

		if (rc < 0)
			return rc;
		if (!rc)
			break;
		count++;
	}
	return (int)count;
}

static struct io_u *engine_event(struct thread_data *td, int event)
{
	return ((struct engine *)td->io_ops_data)->events[event];
}

/* The session already has the region, so this function does nothing. */
static int engine_open_file(struct thread_data *td, struct fio_file *f)
{
	return 0;
}

static int engine_close_file(struct thread_data *td, struct fio_file *f)
{
	return 0;
}

/* Called in fio's own process, before the jobs begin. */
static int engine_setup(struct thread_data *td)
{
	struct fio_file *f;
	unsigned i;

	if (engine_check_program())
		return 1;
	if (!td->o.size) {
		log_err(ENGINE_NAME ": size= is needed: how much of the region is used\n");
		return 1;
	}
	for_each_file(td, f, i)
	{
		f->real_file_size = td->o.start_offset + td->o.size;
		fio_file_set_size_known(f);
	}
	return 0;
}

/* fio looks the engine up by this name. */
__attribute__((visibility("default"))) struct ioengine_ops ioengine = {
	.name = ENGINE_NAME,
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL,
	.setup = engine_setup,
	.init = engine_init,
	.cleanup = engine_cleanup,
	.iomem_alloc = engine_memory_alloc,
	.iomem_free = engine_memory_free,
	.queue = engine_queue,
	.getevents = engine_getevents,
	.event = engine_event,
	.open_file = engine_open_file,
	.close_file = engine_close_file,
	.options = engine_options,
	.option_struct_size = sizeof(struct engine_options),
};
