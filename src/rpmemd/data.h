/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.h -- the data path of one pool: a port that is open while announced lanes are to come, their
 * proofs, and the memory, which is registered with the first lane that proves itself.
 *
 * One thread, which calls data_step() when the descriptor is readable or the time has come; the
 * general method has threads of its own.
 */
#ifndef RPMEMD_DATA_H
#define RPMEMD_DATA_H

#include "rpmem/wire/lane.h"
#include "rpmemd/device.h"
#include "rpmemd/persist.h"

#define DATA_CONNECT_MS 30000
/* From the end of the last lane to that of the session, so that an initiator that gives up has time
 * to say CLOSE. */
#define DATA_DESERTED_MS 2000

/* All of it must outlive the data path. */
struct data_opts {
	struct device *device;
	struct settings_ports ports;
	struct wire_key key;
	void *base;
	uint64_t size;
	enum wire_method method;
	unsigned lanes;    /* granted */
	unsigned nthreads; /* of the general method; 0: one a lane */
	int connect_ms;    /* for lanes that were announced; DATA_CONNECT_MS, but for tests */
	int deserted_ms;   /* DATA_DESERTED_MS, but for tests */
	struct persist *persist;
};

struct data;

/* Nothing listens yet. ERROR_LOCAL. */
int data_new(const struct data_opts *opts, struct data **data, struct error *err);
/* All lanes are gone when it returns, and the memory is not registered any more. */
void data_delete(struct data **data);

/* How many lanes this process has descriptors for, at most `lanes`. */
unsigned data_lanes_possible(unsigned lanes, enum wire_method method);

/* Let these lanes come, each once, to *port. ERROR_ARGUMENT: one of them came already. ERROR_LOCAL:
 * cannot listen. */
int data_expect(struct data *data, unsigned first, unsigned count, uint16_t *port,
		struct error *err);
/* Has a lane ever been accepted? Then something may have been stored through it. */
bool data_was_connected(const struct data *data);

/* The initiator has no lane any more, and none is to come: a lane ends once, and the first one
 * comes when the pool is opened, so its pool is of no use to it. The control stream may last for
 * hours if the initiator's machine has vanished, since sshd asks seldom. */
bool data_is_deserted(const struct data *data);

int data_get_fd(const struct data *data);
/* Handle what has happened. Milliseconds until the
 * next call, -1: when the descriptor is readable. */
int data_step(struct data *data);

#endif
