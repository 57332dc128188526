/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h -- a listening socket, the handshakes on it and the requests it has delivered. */
#ifndef ENGINE_LISTENER_H
#define ENGINE_LISTENER_H

#include "softrnic/verbs/id.h"

/* Start to listen on the id's bound socket, which is taken over. 0 or -errno. */
int listener_open(struct cmid *id, int backlog);

#endif
