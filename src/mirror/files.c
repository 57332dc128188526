/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/files.h"

#include "mirror/set.h"

void files_note(struct rpmirror *m)
{
	m->own_meta = ownfd_of(m->hot.file.fd);
}

bool files_look(struct rpmirror *m)
{
	if (m->has_lost_files)
		return true;
	if (!ownfd_is_lost(&m->copy.own) && !ownfd_is_lost(&m->own_meta) &&
	    ownfd_is_marked(m->wake_fd) && ownfd_is_marked(m->events.fd))
		return false;
	m->has_lost_files = true;
	if (!m->ended)
		act_end(m, RPMIRROR_E_PROVIDER,
			"the application has closed descriptors of the library, as closefrom(3) "
			"does: unmap; this host's copy is free when the process has ended");
	return true;
}
