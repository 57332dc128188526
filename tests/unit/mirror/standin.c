/* SPDX-License-Identifier: BSD-3-Clause */
#include "standin_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

static void *standin_main(void *arg)
{
	struct standin *s = arg;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		if (s->stop)
			break;
		standin_step_daemon(s);
		for (unsigned slot = 1; slot < s->count; slot++)
			standin_step_member(s, slot);
		pthread_mutex_unlock(&s->lock);
		usleep(200);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void standin_open_socket(struct standin *s)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	snprintf(s->path, sizeof(s->path), "%s/socket", s->dir);
	strcpy(addr.sun_path, s->path);
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	STANDIN_MUST(!bind(s->listener, (struct sockaddr *)&addr, sizeof(addr)));
	STANDIN_MUST(!listen(s->listener, 4));
	setenv("RPMIRROR_SOCKET", s->path, 1);
}

static void standin_open_member(struct standin *s, unsigned slot)
{
	struct standin_member *m = &s->members[slot];
	struct mirror_member *config = &s->record.config.members[slot];
	char path[128];
	uint16_t port;

	snprintf(path, sizeof(path), "%s/copy%u", s->dir, slot);
	m->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	STANDIN_MUST(m->fd >= 0 && !posix_fallocate(m->fd, 0, STANDIN_SIZE));
	m->copy = mmap(NULL, STANDIN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	m->ring = mmap(NULL, INTENT_RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	STANDIN_MUST(m->copy != MAP_FAILED && m->ring != MAP_FAILED);
	strcpy(m->port, "0");
	if (slot) {
		standin_listen(s, slot);
		rpma_ep_get_port(m->ep, &port);
		snprintf(m->port, sizeof(m->port), "%u", port);
		config->port = port;
	} else {
		config->port = 1;
	}
	config->id = 100 + slot;
	snprintf(config->name, sizeof(config->name), "m%u", slot);
	strcpy(config->host, "127.0.0.1");
	strcpy(config->path, path);
}

static int standin_persist(void *arg, uint64_t offset, uint64_t len)
{
	return 0;
}

/* Make the metadata of this host's copy. */
static void standin_make_meta(struct standin *s)
{
	uint64_t len = meta_size_for(STANDIN_SIZE);
	struct meta_super super = {.uuid = s->record.config.uuid,
				   .set = STANDIN_SET,
				   /* fewer slots than extents, so that some extents become cold */
				   .hot_slots = 2,
				   .member_id = s->record.config.members[0].id,
				   .size = STANDIN_SIZE};
	struct meta_members members = {.config_number = 1};
	struct meta_store store = {.len = len, .persist = standin_persist};
	int rc;

	snprintf(s->meta_path, sizeof(s->meta_path), "%s/meta", s->dir);
	s->meta_fd = open(s->meta_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	STANDIN_MUST(s->meta_fd >= 0 && !posix_fallocate(s->meta_fd, 0, (off_t)len));
	store.base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, s->meta_fd, 0);
	STANDIN_MUST(store.base != MAP_FAILED);
	rc = meta_create(&store, &super, &members);
	STANDIN_MUST(!rc);
	(void)rc;
	munmap(store.base, len);
}

static void standin_open_device(struct standin *s)
{
	struct ibv_context *ctx;

	STANDIN_MUST(!rpma_utils_get_ibv_context_from("softrnic", "127.0.0.1",
						      RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	STANDIN_MUST(!rpma_peer_new(ctx, &s->peer));
}

struct standin *standin_new(unsigned members)
{
	struct standin *s = calloc(1, sizeof(*s));
	const char *tmp = getenv("TMPDIR");

	s->count = members;
	s->client = -1;
	s->register_works = s->lease_renewed = true;
	snprintf(s->dir, sizeof(s->dir), "%.40s/standin.XXXXXX", tmp ? tmp : ".");
	STANDIN_MUST(mkdtemp(s->dir));
	pthread_mutex_init(&s->lock, NULL);
	standin_open_device(s);
	standin_open_socket(s);
	s->revision = 1;
	s->record = (struct mirror_record){
		.config = {.number = 1,
			   .uuid = {{1}},
			   .set = STANDIN_SET,
			   .size = STANDIN_SIZE,
			   .format = 1,
			   .min_copies = 1,
			   .lonely = MIRROR_LONELY_NONE,
			   .lease_ms = 5000,
			   .replica_timeout_ms = 10000,
			   .slow_ms = 20,
			   .holdoff_ms = 200,
			   .blocked_ms = 30000},
		.view = {.primary = MIRROR_NO_SLOT, .clean = true},
	};
	for (unsigned slot = 0; slot < members; slot++) {
		standin_open_member(s, slot);
		s->record.view.insync |= MIRROR_BIT(slot);
	}
	standin_make_meta(s);
	STANDIN_MUST(!pthread_create(&s->thread, NULL, standin_main, s));
	return s;
}

static void standin_close_files(struct standin *s, unsigned slot)
{
	char path[128];

	munmap(s->members[slot].copy, STANDIN_SIZE);
	munmap(s->members[slot].ring, INTENT_RING_BYTES);
	close(s->members[slot].fd);
	snprintf(path, sizeof(path), "%s/copy%u", s->dir, slot);
	unlink(path);
}

void standin_delete(struct standin *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	for (unsigned slot = 0; slot < s->count; slot++) {
		standin_close_member(s, slot);
		standin_close_files(s, slot);
	}
	rpma_peer_delete(&s->peer);
	if (s->client >= 0)
		close(s->client);
	close(s->listener);
	close(s->meta_fd);
	unlink(s->meta_path);
	unlink(s->path);
	rmdir(s->dir);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const uint8_t *standin_copy(struct standin *s, unsigned slot)
{
	return s->members[slot].copy;
}

void standin_set_bad(struct standin *s, unsigned slot, uint64_t end, int error)
{
	struct standin_member *m = &s->members[slot];
	int rc;

	pthread_mutex_lock(&s->lock);
	m->bad_from = end;
	m->bad_error = error;
	rc = ftruncate(m->fd, (off_t)end);
	STANDIN_MUST(!rc);
	(void)rc;
	pthread_mutex_unlock(&s->lock);
}

void standin_spoil(struct standin *s, unsigned slot)
{
	static uint8_t byte;
	ssize_t n;

	byte++;
	n = pwrite(s->members[slot].fd, &byte, 1, 0);
	STANDIN_MUST(n == 1);
	(void)n;
}

#define STANDIN_LOCKED(s, what)                                                                    \
	do {                                                                                       \
		pthread_mutex_lock(&(s)->lock);                                                    \
		what;                                                                              \
		pthread_mutex_unlock(&(s)->lock);                                                  \
	} while (0)

struct mirror_record standin_record(struct standin *s)
{
	struct mirror_record record;

	STANDIN_LOCKED(s, record = s->record);
	return record;
}

void standin_forget_epoch(struct standin *s, unsigned slot)
{
	STANDIN_LOCKED(s, s->members[slot].epoch = (struct mirror_epoch){0});
}

void standin_set_min_copies(struct standin *s, unsigned min_copies)
{
	STANDIN_LOCKED(s, s->record.config.min_copies = min_copies);
}

void standin_set_lease_ms(struct standin *s, uint32_t ms)
{
	STANDIN_LOCKED(s, s->record.config.lease_ms = ms);
}

void standin_set_blocked_ms(struct standin *s, uint32_t ms)
{
	STANDIN_LOCKED(s, s->record.config.blocked_ms = ms);
}

void standin_set_replica_timeout_ms(struct standin *s, uint32_t ms)
{
	STANDIN_LOCKED(s, s->record.config.replica_timeout_ms = ms);
}

struct packet_ordered standin_order(struct standin *s, const struct packet_order_request *order)
{
	struct timespec pause = {0, 2000000};
	bool done = false;

	STANDIN_LOCKED(s, standin_send_order(s, order));
	while (!done) {
		nanosleep(&pause, NULL);
		STANDIN_LOCKED(s, done = s->has_ordered);
	}
	return s->ordered;
}

void standin_cut(struct standin *s, unsigned slot)
{
	STANDIN_LOCKED(s, standin_close_member(s, slot));
}

void standin_mend(struct standin *s, unsigned slot)
{
	STANDIN_LOCKED(s, standin_listen(s, slot));
}

void standin_set_register(struct standin *s, bool works)
{
	STANDIN_LOCKED(s, s->register_works = works);
}

void standin_set_silent(struct standin *s, bool silent)
{
	STANDIN_LOCKED(s, s->silent = silent);
}

void standin_stop_daemon(struct standin *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->client >= 0)
		close(s->client);
	close(s->listener);
	s->client = s->listener = -1;
	unlink(s->path);
	pthread_mutex_unlock(&s->lock);
}

void standin_start_daemon(struct standin *s)
{
	STANDIN_LOCKED(s, standin_open_socket(s));
}

void standin_set_lease(struct standin *s, bool renewed)
{
	STANDIN_LOCKED(s, s->lease_renewed = renewed);
}

/* Let another member become primary, with the promise of member 1. */
static void standin_promote_other(struct standin *s)
{
	s->record.view.epoch.number++;
	s->record.view.epoch.nonce ^= 0x5555;
	s->record.view.seq = 1;
	s->record.view.primary = 1;
	s->record.view.phase = MIRROR_PHASE_RECOVERING;
	s->record.nonce ^= 0x7777;
	s->revision++;
	for (unsigned slot = 0; slot < s->count; slot++)
		s->members[slot].promised = s->record.view.epoch;
	for (unsigned slot = 1; slot < s->count; slot++)
		standin_close_member(s, slot);
}

void standin_overtake(struct standin *s)
{
	STANDIN_LOCKED(s, standin_promote_other(s));
}

void standin_set_unclean(struct standin *s)
{
	pthread_mutex_lock(&s->lock);
	s->record.view.clean = false;
	pthread_mutex_unlock(&s->lock);
}

void standin_set_records(struct standin *s, unsigned slot, struct mirror_range range)
{
	STANDIN_LOCKED(s, s->members[slot].records[s->members[slot].record_count++] = range);
}

unsigned standin_asked(struct standin *s, unsigned slot, unsigned message_type)
{
	unsigned asked;

	STANDIN_LOCKED(s, asked = s->members[slot].asked[message_type]);
	return asked;
}

enum mirror_health standin_health(struct standin *s)
{
	enum mirror_health health;

	STANDIN_LOCKED(s, health = (enum mirror_health)s->status.health);
	return health;
}

struct message_status standin_status(struct standin *s)
{
	struct message_status status;

	STANDIN_LOCKED(s, status = s->status);
	return status;
}

bool standin_unmapped_clean(struct standin *s)
{
	bool clean;

	STANDIN_LOCKED(s, clean = s->unmapped && s->unmapped_clean);
	return clean;
}

void standin_set_local_error_continues(struct standin *s)
{
	STANDIN_LOCKED(s, s->record.config.local_error_continues = true);
}

ino_t standin_inode(struct standin *s, unsigned slot)
{
	struct stat st;

	STANDIN_MUST(!fstat(s->members[slot].fd, &st));
	return st.st_ino;
}
