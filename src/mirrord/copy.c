/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the files of a set's copy when they exist, and registers them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pagecache.h"
#include "mirror/core/killpoint.h"
#include "mirror/file/metafile.h"
#include "mirrord/clients.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "mirrord/holder.h"
#include "mirrord/requests.h"

enum mirror_copy copy_state(const struct set *s)
{
	return s->is_open ? member_copy(&s->member, s->register_answers) : MIRROR_COPY_FAILED;
}

bool copy_has_failed(const struct set *s, uint8_t slot)
{
	struct neighbour_answer answer;

	if (s->is_open && slot == s->meta.super.slot)
		return copy_state(s) == MIRROR_COPY_FAILED;
	neighbours_get(s->neighbours, slot, &answer);
	return answer.answers && answer.status.copy == MIRROR_COPY_FAILED;
}

void copy_note_failure(struct set *s, const char *text)
{
	LOG_ERROR_LIMITED("set %s: %s", s->conf->name, text);
	if (s->failed_why[0])
		return;
	snprintf(s->failed_why, sizeof(s->failed_why), "its metadata, %.200s.rpmirror: %.200s",
		 s->conf->data, text);
	event_emit(s, s->conf->member, "medium", NULL, NULL, s->failed_why);
}

/* Makes a range of the metadata durable. Every durable step of the copy's rules calls this. */
static int copy_persist(void *arg, uint64_t offset, uint64_t len)
{
	struct set *s = arg;
	int rc;

	killpoint(KILLPOINT_persist_before);
	if (__atomic_load_n(&s->has_meta_fault, __ATOMIC_ACQUIRE))
		return -EIO;
	rc = metafile_write_back(s->meta_file.addr, s->meta_file.durability, offset, len);
	killpoint(KILLPOINT_persist_after);
	return rc;
}

/* Check the names in the metadata, which may come from another host, or belong to another set. */
static int copy_check_names(const struct set *s, struct error *err)
{
	const struct meta_super *super = &s->meta.super;
	const char *member = s->meta.members.members[super->slot].name;

	if (strcmp(super->set, s->conf->name) != 0)
		return error_set(
			err, ERROR_LOCAL, EINVAL,
			"the metadata of %s are of set '%s' and not of '%s': put the metadata of "
			"this copy back, or replace the member by 'rpmirror member replace'",
			s->conf->data, super->set, s->conf->name);
	if (member[0] && strcmp(member, s->conf->member) != 0)
		return error_set(err, ERROR_LOCAL, EINVAL,
				 "the metadata of %s are of member '%s', and this host is '%s': "
				 "move both files of each copy to its own host, or correct "
				 "'member' in the configuration",
				 s->conf->data, member, s->conf->member);
	return 0;
}

/* Report a missing file: the disk was exchanged or is not mounted, or the copy was never made. */
static int copy_missing(const struct set *s, struct error *err)
{
	const char *set = s->conf->name, *member = s->conf->member;

	if (err->cause != ENOENT)
		return err->kind;
	return error_set(
		err, err->kind, ENOENT,
		"%s; mount its disk, or make a new copy: if the copy is lost, first 'rpmirror "
		"member replace %s %s' on the primary's host, then here 'rpmirror init %s "
		"--join %s --register \"%s\"'",
		err->text, set, member, set, member, s->conf->register_uri);
}

static int copy_open_meta(struct set *s, struct error *err)
{
	char path[CONF_PATH_SIZE];
	struct mapfile_opts opts = {.path = path};
	struct meta_store store = {.persist = copy_persist, .arg = s};
	int rc;

	conf_meta_path(s->conf, path, sizeof(path));
	s->has_meta_fault = false;
	s->failed_why[0] = '\0';
	rc = mapfile_open(&s->meta_file, &opts, err);
	if (rc)
		return copy_missing(s, err);
	store.base = s->meta_file.addr;
	store.len = s->meta_file.size;
	rc = meta_load(&s->meta, &store, err);
	if (!rc && s->has_meta_fault) {
		meta_fini(&s->meta);
		rc = error_set(err, ERROR_LOCAL, EIO, "%s cannot be read", path);
	}
	if (rc) {
		mapfile_close(&s->meta_file);
		return rc;
	}
	rc = member_init(&s->member, &s->meta, &s->daemon->boot);
	if (!rc)
		return 0;
	meta_fini(&s->meta);
	mapfile_close(&s->meta_file);
	return error_set(err, ERROR_LOCAL, -rc, "the metadata in %s cannot be used: %s", path,
			 strerror(-rc));
}

static int copy_identify(const struct set *s, struct meta_files *files, struct error *err)
{
	int rc = metafile_identify(s->conf->data, s->meta_file.fd, files);

	return rc ? error_set(err, ERROR_LOCAL, -rc, "%s: %s", s->conf->data, strerror(-rc)) : 0;
}

/*
 * Detect files that were restored, edited or exchanged since the last daemon closed them. Call this
 * before the data file is opened, because opening fills the file's holes.
 */
static int copy_note_files(struct set *s, struct error *err)
{
	bool was_known = !(s->meta.super.flags & META_UNKNOWN);
	struct member_verdict v = {.answer = MEMBER_YES};
	struct meta_files files;
	int rc = copy_identify(s, &files, err);

	if (rc)
		return rc;
	member_set_files(&s->member, &files, &v);
	if (was_known && s->meta.super.flags & META_UNKNOWN)
		LOG_WARNING(
			"set %s: %s, or its metadata, is not the file that this daemon last used: "
			"it was restored, exchanged or edited; it is not used until it has been "
			"compared with another copy",
			s->conf->name, s->conf->data);
	return v.answer == MEMBER_YES ? 0 : error_set(err, ERROR_LOCAL, EIO, "%s", v.text);
}

/*
 * Do not trust the page cache: the former daemon did not close the files in good order, and no
 * living process can report whether write-backs failed.
 */
static int copy_distrust_cache(const struct set *s, struct error *err)
{
	char meta[CONF_PATH_SIZE];
	int rc;

	conf_meta_path(s->conf, meta, sizeof(meta));
	/* First write the metadata once more, because records that are not durable yet must not be
	 * lost. */
	rc = pagecache_rewrite(meta);
	if (!rc)
		rc = pagecache_drop(s->conf->data);
	return rc ? error_set(err, ERROR_LOCAL, -rc, "%s cannot be written to its medium: %s",
			      s->conf->data, strerror(-rc))
		  : 0;
}

static void copy_leave_files(struct set *s)
{
	struct member_verdict v = {.answer = MEMBER_YES};
	struct meta_files files;
	struct error err;

	/*
	 * Without this sync, the file could have an older time after a power cut than the recorded
	 * time.
	 */
	if (fsync(s->data.fd))
		medium_fail(s, errno);
	medium_look(s);
	/* After one of these failures the next daemon does not trust the page cache. */
	if (s->member.has_failed || fsync(s->meta_file.fd) || copy_identify(s, &files, &err))
		return;
	member_leave_files(&s->member, &files, &v);
	if (v.answer != MEMBER_YES)
		LOG_WARNING("set %s: %s", s->conf->name, v.text);
}

static int copy_open_data(struct set *s, struct error *err)
{
	struct mapfile_opts opts = {.path = s->conf->data};
	int rc = mapfile_open(&s->data, &opts, err);

	if (rc)
		return copy_missing(s, err);
	if (s->data.size < s->meta.super.size)
		rc = error_set(err, ERROR_LOCAL, EFBIG,
			       "%s has %llu bytes, but the set has %llu: the file was truncated",
			       s->conf->data, (unsigned long long)s->data.size,
			       (unsigned long long)s->meta.super.size);
	if (!rc)
		rc = place_begin(s, err);
	if (!rc && rpma_mr_reg(s->daemon->peer, s->data.addr, s->data.size, RPMA_MR_USAGE_WRITE_SRC,
			       &s->anchor))
		rc = error_set(err, ERROR_LOCAL, EIO, "%s cannot be registered: %s", s->conf->data,
			       rpma_err_last());
	if (rc)
		mapfile_close(&s->data);
	return rc;
}

static int copy_load_secret(struct set *s, struct error *err)
{
	int rc = 0;

	s->has_secret = s->conf->secret_file[0] != '\0';
	if (s->has_secret)
		rc = secret_load(&s->secret, s->conf->secret_file, err);
	s->is_secret_bad = rc != 0;
	return rc;
}

int copy_open(struct set *s)
{
	bool was_left, is_mapped;
	int rc = conf_check_files(s->daemon->conf, s->conf, &s->why_not);

	if (!rc)
		rc = copy_load_secret(s, &s->why_not);
	if (!rc)
		rc = copy_open_meta(s, &s->why_not);
	if (rc)
		return rc;
	was_left = s->meta.super.files.data_time_ns != 0;
	rc = copy_check_names(s, &s->why_not);
	if (!rc)
		rc = medium_open(s, &s->why_not);
	/* checked only once, because the process may exit at any time */
	is_mapped = holder_may_live(s);
	if (!rc && !was_left && !is_mapped)
		rc = copy_distrust_cache(s, &s->why_not);
	medium_begin(s, was_left, is_mapped);
	if (!rc)
		rc = copy_note_files(s, &s->why_not);
	if (!rc)
		rc = copy_open_data(s, &s->why_not);
	if (rc) {
		medium_close(s);
		member_fini(&s->member);
		meta_fini(&s->meta);
		mapfile_close(&s->meta_file);
		return rc;
	}
	s->is_open = true;
	LOG_NOTICE("set %s: copy %s is open, %s", s->conf->name, s->conf->data,
		   mirror_copy_2str(copy_state(s)));
	return 0;
}

void copy_close(struct set *s)
{
	if (!s->is_open)
		return;
	inbounds_end_all(s->daemon, s);
	rpma_mr_dereg(&s->anchor);
	/*
	 * If the file system does not answer, leave the files as after a crash, because closing
	 * them in good order would wait.
	 */
	if (!s->placing.is_late)
		copy_leave_files(s);
	medium_close(s);
	member_fini(&s->member);
	meta_fini(&s->meta);
	mapfile_close(&s->data);
	mapfile_close(&s->meta_file);
	secret_forget(&s->secret);
	s->is_open = false;
}
