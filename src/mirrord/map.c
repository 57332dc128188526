/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which process of this host may map a set, and sends the answer. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/findings.h"
#include "mirrord/health.h"
#include "mirrord/holder.h"
#include "mirrord/programs.h"
#include "mirrord/requests.h"

static struct packet map_packet; /* static, because it is large; one answer at a time */

static bool map_user_may(const struct conf_set *conf, uid_t uid)
{
	char number[16];

	if (uid == 0 || uid == getuid())
		return true;
	snprintf(number, sizeof(number), "%u", (unsigned)uid);
	for (unsigned i = 0; i < conf->user_count; i++) {
		const struct passwd *pw = getpwnam(conf->users[i]);

		if (!strcmp(conf->users[i], number) || (pw && pw->pw_uid == uid))
			return true;
	}
	return false;
}

static void map_refuse(struct client *client, enum packet_status status, const char *text)
{
	struct packet *p = packet_begin(&map_packet, PACKET_MAPPED, client->map_id);

	p->mapped.status = (uint8_t)status;
	p->mapped.slot = MIRROR_NO_SLOT;
	snprintf(p->mapped.text, sizeof(p->mapped.text), "%s", text);
	client->is_waiting = false;
	client->set = NULL;
	local_send(client, p, NULL, 0);
}

/*
 * Open the file again, with a separate open file description, because the application must not
 * inherit the daemon's lock.
 */
static int map_reopen(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

static void map_fill(struct set *s, struct packet_mapped *mapped)
{
	mapped->slot = s->meta.super.slot;
	mapped->has_secret = s->has_secret;
	mapped->uuid = s->meta.super.uuid;
	mapped->copy_id = s->meta.super.member_id;
	mapped->size = s->meta.super.size;
	if (s->has_secret)
		memcpy(mapped->key, s->secret.key, sizeof(mapped->key));
	snprintf(mapped->data_path, sizeof(mapped->data_path), "%s", s->conf->data);
	conf_meta_path(s->conf, mapped->meta_path, sizeof(mapped->meta_path));
	if (s->has_entry) {
		mapped->revision = s->entry.revision;
		mapped->record = s->entry.record;
	}
}

/*
 * The process can split only folios (base/folio.h) that no other process has mapped. So unmap this
 * daemon's pages; the next access maps them again.
 */
static void map_leave_pages(const struct set *s)
{
	if (s->data.durability == RPMA_DURABILITY_FILE)
		madvise(s->data.addr, s->data.size, MADV_DONTNEED);
}

static void map_send(struct set *s, struct client *client, bool read_only)
{
	struct packet *p = packet_begin(&map_packet, PACKET_MAPPED, client->map_id);
	bool is_resumed = client->map_flags & PACKET_MAP_RESUME;
	unsigned count = read_only ? 1 : is_resumed ? 2 : PACKET_FILES;
	int fds[PACKET_FILES] = {-1, -1, -1};
	bool has_all = true;

	map_fill(s, &p->mapped);
	p->mapped.is_forced = s->holder.client == client && s->holder.is_forced;
	p->mapped.is_silent = s->may_promote && s->seen.is_set;
	fds[0] = is_resumed ? place_open(s) : map_reopen(s->data.fd, read_only ? O_RDONLY : O_RDWR);
	if (count > 1)
		fds[1] = map_reopen(s->meta_file.fd, O_RDWR);
	if (count > 2)
		fds[2] = map_reopen(s->data.fd, O_RDONLY);
	for (unsigned i = 0; i < count; i++)
		has_all &= fds[i] >= 0;
	if (!has_all) {
		map_refuse(client, PACKET_IO, strerror(errno));
		/* If the answer cannot be sent, only forget the client: a process that resumes has
		 * the files already, and may ask again. */
		if (is_resumed)
			s->holder.client = NULL;
		else if (!read_only)
			holder_release(s, false);
	} else {
		client->is_waiting = false;
		client->is_reader = read_only;
		local_send(client, p, fds, count);
		if (!read_only)
			map_leave_pages(s);
	}
	for (unsigned i = 0; i < PACKET_FILES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	explicit_bzero(p->mapped.key, sizeof(p->mapped.key));
}

static void map_grant(struct set *s, struct client *client, enum promotion_kind order)
{
	struct meta_holder holder = {.pid = (uint64_t)client->pid,
				     .start_time = holder_start_time(client->pid),
				     .boot = s->daemon->boot,
				     .image = client->image};
	struct member_verdict v;
	int rc;

	if (client->pid <= 0) {
		map_refuse(client, PACKET_IO,
			   "rpmirrord is in a PID name space in which it does not see this "
			   "process, nor its end");
		return;
	}
	member_hold(&s->member, &holder, &v);
	if (v.answer != MEMBER_YES) {
		map_refuse(client, v.reason == MEMBER_IS_HELD ? PACKET_BUSY : PACKET_IO, v.text);
		return;
	}
	rc = holder_watch(s, client->pid);
	if (rc) {
		map_refuse(client, PACKET_IO, strerror(-rc));
		member_release(&s->member, false, &v);
		return;
	}
	s->holder.client = client;
	holder_note_program(s, client);
	s->holder.version = client->version;
	s->holder.is_forced = order == PROMOTION_FORCE;
	s->holder.heartbeat_ms = clock_boot_ms();
	LOG_NOTICE("set %s: process %d maps it%s", s->conf->name, (int)client->pid,
		   order == PROMOTION_FORCE   ? ", by force of an operator"
		   : order == PROMOTION_ORDER ? ", by order of an operator"
					      : "");
	map_send(s, client, false);
}

struct map_verdict {
	enum packet_status status; /* PACKET_OK: the map may be granted */
	bool can_change;           /* a later change of the state may still permit the map */
	char text[PACKET_TEXT];
};

static void map_say(struct map_verdict *v, enum packet_status status, bool can_change,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void map_say(struct map_verdict *v, enum packet_status status, bool can_change,
		    const char *fmt, ...)
{
	va_list ap;

	v->status = status;
	v->can_change = can_change;
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

bool map_may_follow(const struct set *s, const struct client *client, enum promotion_kind order)
{
	/*
	 * A request without WAIT shows that the process was started to be the primary now. A
	 * process that resumes has not shown this.
	 */
	return s->conf->automatic || order != PROMOTION_NO_ORDER ||
	       !(client->map_flags & (PACKET_MAP_WAIT | PACKET_MAP_RESUME));
}

static void map_judge_view(const struct set *s, const struct client *client,
			   enum promotion_kind order, struct map_verdict *v)
{
	const struct mirror_record *record = &s->entry.record;
	const struct mirror_view *view = &record->view;
	uint8_t slot = s->meta.super.slot;
	struct fence_words fence;

	if (!(view->insync & MIRROR_BIT(slot)))
		map_say(v, PACKET_NOT_INSYNC, true,
			"the copy of this host (%s) lacks acknowledged data; a resync makes it "
			"in-sync as soon as another member is primary",
			s->conf->data);
	else if (findings_forbid_promotion(s) && order == PROMOTION_NO_ORDER)
		map_say(v, PACKET_BUSY, true,
			"the copy of this host (%s) differs from the others, of which a majority "
			"agrees: 'rpmirror status' shows where; promote another member, or this "
			"one by 'rpmirror promote'",
			s->conf->data);
	else if (view->primary == MIRROR_NO_SLOT || view->primary == slot)
		v->status = PACKET_OK;
	else if (s->may_promote && map_may_follow(s, client, order))
		v->status = PACKET_OK;
	else if (fence_agent_obstacle(s, &fence))
		map_say(v, PACKET_BUSY, true,
			"member %s is primary (epoch %llu), and has not renewed its lease; %s: %s; "
			"%s",
			record->config.members[view->primary].name,
			(unsigned long long)view->epoch.number, fence.what, fence.why, fence.next);
	else
		map_say(v, PACKET_BUSY, true, "member %s is primary (epoch %llu)%s",
			record->config.members[view->primary].name,
			(unsigned long long)view->epoch.number,
			s->may_promote ? ", and has ended; without 'auto = yes' a promotion needs "
					 "'rpmirror promote'"
				       : "");
}

/*
 * Check this host's copy. Promoting an unsuitable copy would cut off the other members, and then
 * fail, or replace their data by older data.
 */
static void map_judge_copy(const struct set *s, struct map_verdict *v)
{
	enum mirror_copy copy = copy_state(s);

	if (copy == MIRROR_COPY_FAILED)
		map_say(v, PACKET_COPY_FAILED, false, "the copy of this host (%s) has failed%s%s",
			s->conf->data, s->failed_why[0] ? ": " : "", s->failed_why);
	else if (copy == MIRROR_COPY_SYNCING && s->meta.super.flags & META_UNKNOWN)
		map_say(v, PACKET_NOT_INSYNC, true,
			"it is not known what the copy of this host (%s) lacks: it was restored, "
			"exchanged, edited or discarded, or a write-back of it failed; a resync "
			"makes it usable as soon as another member is primary. If no other copy is "
			"as new: 'rpmirror promote %s %s --force'",
			s->conf->data, s->conf->name, s->conf->member);
	else if (copy == MIRROR_COPY_SYNCING || copy == MIRROR_COPY_EMPTY)
		map_say(v, PACKET_NOT_INSYNC, true,
			"the copy of this host (%s) is not whole; a resync makes it usable as soon "
			"as another member is primary",
			s->conf->data);
}

static void map_judge(const struct set *s, const struct client *client, enum promotion_kind order,
		      struct map_verdict *v)
{
	bool is_forced = order == PROMOTION_FORCE;

	*v = (struct map_verdict){.status = PACKET_OK};
	if (!s->is_open)
		map_say(v, PACKET_COPY_FAILED, true, "%s", s->why_not.text);
	else if (s->holder.pid)
		map_say(v, PACKET_BUSY, true, "process %d maps the set", (int)s->holder.pid);
	else if (s->clearing.is_busy)
		map_say(v, PACKET_BUSY, true,
			"blocks of the copy of this host (%s) that cannot be read are overwritten",
			s->conf->data);
	else if (!s->register_answers || !s->has_entry)
		map_say(v, PACKET_REGISTER, true,
			reg_refusal(s) ? "the register %s refuses: %s"
				       : "the register %s does not answer",
			s->conf->register_uri, reg_refusal(s));
	else if (s->is_split)
		map_say(v, PACKET_SPLIT, false,
			s->split_reason == MEMBER_IS_SPLIT
				? "%s; to discard the data that differ here: 'rpmirror resolve %s "
				  "--discard %s'"
				: "%s",
			s->split_why, s->conf->name, s->conf->member);
	else if (copy_state(s) != MIRROR_COPY_FAILED && grow_obstacle(s))
		map_say(v, PACKET_BUSY, true, "%s", grow_obstacle(s));
	else if (!is_forced || copy_state(s) == MIRROR_COPY_FAILED)
		map_judge_copy(s, v);
	if (v->status == PACKET_OK && !is_forced)
		map_judge_view(s, client, order, v);
}

struct map_reason map_why_waits(const struct set *s, const struct client *client,
				enum promotion_kind order)
{
	struct map_verdict v;
	struct map_reason why;

	map_judge(s, client, order, &v);
	why.status = v.status;
	snprintf(why.text, sizeof(why.text), "%s", v.text[0] ? v.text : "the register is asked");
	return why;
}

/* Check that the client supports the set's format. Returns false if the request was refused. */
static bool map_understands(const struct set *s, struct client *client)
{
	uint32_t format = s->has_entry ? s->entry.record.config.format : 0;
	char text[PACKET_TEXT];

	if (format <= client->version)
		return true;
	snprintf(text, sizeof(text),
		 "the set's record has format %u, and librpmirror of process %d understands %u at "
		 "most: upgrade librpmirror, and start the process again",
		 format, (int)client->pid, client->version);
	LOG_WARNING_LIMITED("set %s: %s", s->conf->name, text);
	client->is_waiting = false;
	client->set = NULL;
	local_send_done(client, client->map_id, PACKET_VERSION, text);
	return false;
}

static void map_look_after(struct set *s, struct client *client)
{
	enum promotion_kind order;
	struct map_verdict v;

	if (!map_understands(s, client))
		return;
	/* The register's content and the alive key must have been read after the request. */
	if (!s->holder.pid && ((int32_t)(s->answered - client->wants_answer) < 0 ||
			       (int32_t)(s->alive_answered - client->wants_alive) < 0))
		return;
	if (s->is_open)
		medium_look(s);
	order = request_order_for(s, &s->entry.record.view);
	map_judge(s, client, order, &v);
	if (v.status == PACKET_OK)
		map_grant(s, client, order);
	else if (!v.can_change || !(client->map_flags & PACKET_MAP_WAIT))
		map_refuse(client, v.status, v.text);
}

void map_retry(struct set *s)
{
	struct client *client, *next;

	for (client = s->daemon->clients; client; client = next) {
		next = client->next;
		if (client->set == s && client->is_waiting)
			map_look_after(s, client);
	}
	request_look_promotions(s);
}

/* Accept a process that continues after the daemon was restarted, or after the connection was
 * lost. */
static void map_resume(struct set *s, struct client *client, const struct packet_map *map)
{
	if (!s->is_open || !holder_is(s, client)) {
		map_refuse(client, PACKET_BAD, "this process does not map the set");
		return;
	}
	if (s->holder.client)
		s->holder.client->set = NULL;
	s->holder.client = client;
	s->holder.is_confirmed = true;
	holder_note_program(s, client);
	s->holder.version = client->version;
	s->holder.epoch = map->epoch;
	s->holder.fenced_by = 0;
	s->holder.heartbeat_ms = clock_boot_ms();
	LOG_NOTICE("set %s: process %d goes on", s->conf->name, (int)client->pid);
	map_send(s, client, false);
}

void map_on_request(struct client *client, const struct packet *p)
{
	struct set *s = set_find(client->daemon, p->map.set);

	client->map_id = p->id;
	/* drop this flag, because only an operator's order may set it */
	client->map_flags = p->map.flags & (uint8_t)~PACKET_MAP_FORCE;
	client->image = p->map.image;
	if (client->set) {
		map_refuse(client, PACKET_BAD, "a connection serves one set only");
		return;
	}
	if (!s) {
		map_refuse(client, PACKET_NO_SET, "no copy of this set is configured on this host");
		return;
	}
	if (!map_user_may(s->conf, client->uid)) {
		LOG_WARNING_LIMITED("set %s: user %u may not map it", s->conf->name,
				    (unsigned)client->uid);
		map_refuse(client, PACKET_PERMISSION,
			   "this user may not map the set: see 'user' in rpmirrord.conf(5)");
		return;
	}
	client->set = s;
	if (!map_understands(s, client))
		return;
	set_try_open(s, clock_boot_ms());
	if (p->map.flags & PACKET_MAP_RESUME) {
		map_resume(s, client, &p->map);
	} else if (p->map.flags & PACKET_MAP_READONLY) {
		if (s->is_open)
			map_send(s, client, true);
		else
			map_refuse(client, PACKET_COPY_FAILED, s->why_not.text);
	} else {
		holder_end_former_program(s, client);
		client->is_waiting = true;
		client->wants_answer = s->asked + 1;
		client->wants_alive = s->alive_asked + 1;
		reg_ask(s);
		s->alive_ms = 0;
		reg_ask_alive(s);
		map_look_after(s, client);
	}
}

void map_on_unmap(struct client *client, const struct packet *p)
{
	struct set *s = client->set;

	LOG_NOTICE("set %s: process %d has unmapped it", s->conf->name, (int)client->pid);
	holder_release(s, p->unmap.clean);
	local_send_done(client, p->id, PACKET_OK, "");
	map_retry(s);
}

void map_on_lost(struct client *client)
{
	struct set *s = client->set;

	if (!s || s->holder.client != client)
		return;
	LOG_NOTICE("set %s: process %d has lost its connection%s", s->conf->name, (int)client->pid,
		   s->holder.is_confirmed ? ""
					  : " before the answer arrived: the process maps nothing");
	if (s->holder.is_confirmed) {
		s->holder.client = NULL;
		holder_look_at_program(s);
		return;
	}
	/*
	 * The process has sent no request after its MAP. So it is not the primary, and has stored
	 * nothing.
	 */
	holder_release(s, false);
	map_retry(s);
}
