/* SPDX-License-Identifier: BSD-3-Clause */
/* link_impl.h -- the functions that the files of a link share. */
#ifndef MIRROR_PEER_LINK_IMPL_H
#define MIRROR_PEER_LINK_IMPL_H

#include "mirror/peer/link.h"

/* link_hello.c: handles greeting, proof and grant. Each call may end the link. */
void link_on_established(struct link *l);
void link_on_grant(struct link *l, const struct message *m);

#endif
