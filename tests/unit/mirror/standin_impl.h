/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_MIRROR_STANDIN_IMPL_H
#define TESTS_MIRROR_STANDIN_IMPL_H

#include <stdio.h>
#include <stdlib.h>
#include <librpma.h>
#include <pthread.h>

#include "mirror/core/intent.h"
#include "mirror/core/meta.h"
#include "mirror/wire/packet.h"
#include "standin.h"

#define STANDIN_CONNS 16

struct standin_conn {
	struct rpma_conn *conn; /* NULL: this entry is free */
	struct greeting greeting;
	bool established;
	uint8_t buffers[2][8][MESSAGE_SIZE]; /* buffers for receives and sends */
	unsigned out;
	struct rpma_mr_local *mr, *data, *ring;
};

struct standin_member {
	int fd;
	uint8_t *copy, *ring;
	struct rpma_ep *ep; /* NULL: the member is cut off */
	char port[8];
	struct standin_conn conns[STANDIN_CONNS];
	struct mirror_epoch promised, epoch; /* epoch: the copy may have flushes of this epoch */
	bool is_syncing;                     /* a resync from member 0 is under way */
	struct mirror_view seen;
	struct mirror_range records[4];
	unsigned record_count;
	unsigned asked[MESSAGE_TYPE_END];
	/* offset from which the copy cannot be read; 0: the whole copy can be read */
	uint64_t bad_from;
	int bad_error;
};

struct standin {
	pthread_mutex_t lock;
	pthread_t thread;
	bool stop, register_works, silent, lease_renewed, unmapped, unmapped_clean;
	char dir[64], path[96], meta_path[96];
	int meta_fd;
	int listener, client;
	struct rpma_peer *peer;
	unsigned count;
	struct standin_member members[MIRROR_MEMBERS_MAX];
	struct mirror_record record;
	uint64_t revision;
	uint8_t buf[PACKET_MAX];
	struct packet packet, answer;
	struct packet_ordered ordered;
	bool has_ordered;
	struct message_status status; /* the last status that arrived */
};

void standin_step_member(struct standin *s, unsigned slot);
void standin_open_socket(struct standin *s);
void standin_close_member(struct standin *s, unsigned slot);
void standin_listen(struct standin *s, unsigned slot);
void standin_answer(struct standin *s, unsigned slot, const struct message *q, struct message *a);
void standin_step_daemon(struct standin *s);
void standin_send_order(struct standin *s, const struct packet_order_request *order);

/* Unlike assert(), this check is always compiled. */
#define STANDIN_MUST(condition)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
