/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.h -- the data path of one pool: a port that is open while announced lanes are expected, the
 * proofs of the lanes, and the memory, which is registered for the first proven lane.
 *
 * One thread calls data_step(), when the descriptor is readable or when the time that data_step()
 * returned has passed. The general method has its own threads.
 */
#ifndef RPMEMD_DATA_H
#define RPMEMD_DATA_H

#include "rpmem/wire/lane.h"
#include "rpmemd/device.h"
#include "rpmemd/persist.h"

#define DATA_CONNECT_MS 30000
/*
 * Time between closing the last lane and closing the session. In this time an initiator that gives
 * up can send CLOSE.
 */
#define DATA_DESERTED_MS 2000

/* All objects here must outlive the data path. */
struct data_opts {
	struct device *device;
	struct settings_ports ports;
	struct wire_key key;
	void *base;
	uint64_t size;
	enum wire_method method;
	unsigned lanes;    /* number of granted lanes */
	unsigned nthreads; /* number of threads of the general method; 0: one for each lane */
	/* time limit for the arrival of announced lanes; DATA_CONNECT_MS, except in tests */
	int connect_ms;
	int deserted_ms; /* DATA_DESERTED_MS, except in tests */
	struct persist *persist;
};

struct data;

/* Make the data path, without opening a port. Returns 0 or ERROR_LOCAL. */
int data_new(const struct data_opts *opts, struct data **data, struct error *err);
/* On return all lanes are closed, and the memory is deregistered. */
void data_delete(struct data **data);

/* Returns the number of lanes for which this process has descriptors, at most `lanes`. */
unsigned data_lanes_possible(unsigned lanes, enum wire_method method);

/*
 * Accept these lanes, each only once, at *port. ERROR_ARGUMENT: one of the lanes is already
 * expected, or has been. ERROR_LOCAL: this end cannot listen.
 */
int data_expect(struct data *data, unsigned first, unsigned count, uint16_t *port,
		struct error *err);
/* Returns true if a lane was ever accepted. Then bytes may have been stored. */
bool data_was_connected(const struct data *data);

/*
 * Returns true if the initiator has no lane any more, and no further lane is expected. A lane is
 * closed only once, and the first lane is connected when the pool is opened, so the initiator
 * cannot use its pool any more. The control stream is no sign of this: if the initiator's machine
 * has vanished, the stream may last for hours, because sshd checks rarely.
 */
bool data_is_deserted(const struct data *data);

int data_get_fd(const struct data *data);
/*
 * Handle all pending events. Returns the milliseconds until the next call, or -1: call again when
 * the descriptor is readable.
 */
int data_step(struct data *data);

#endif
