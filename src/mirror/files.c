/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/files.h"

#include "mirror/set.h"

void files_note(struct rpmirror *m)
{
	m->own_meta = ownfd_of(m->hot.file.fd);
}

static bool files_are_lost(const struct rpmirror *m)
{
	return ownfd_is_lost(&m->copy.own) || ownfd_is_lost(&m->own_meta) ||
	       !ownfd_is_marked(m->wake_fd) || !ownfd_is_marked(m->events.fd);
}

bool files_look(struct rpmirror *m)
{
	if (m->has_lost_files || !files_are_lost(m))
		return m->has_lost_files;
	m->has_lost_files = true;
	if (!m->ended)
		act_end(m, RPMIRROR_E_PROVIDER,
			"the application has closed descriptors of the library, as closefrom(3) "
			"does: unmap; this host's copy is free when the process has ended");
	return true;
}
