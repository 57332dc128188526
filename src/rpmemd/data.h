/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.h -- the data path of one pool: a port that is open while announced lanes are expected,
 * their proofs, and the memory, which is registered for the first proven lane.
 *
 * One thread calls data_step(), when the descriptor is readable or the time has come. The general
 * method has threads of its own.
 */
#ifndef RPMEMD_DATA_H
#define RPMEMD_DATA_H

#include "rpmem/wire/lane.h"
#include "rpmemd/device.h"
#include "rpmemd/persist.h"

#define DATA_CONNECT_MS 30000
/*
 * Time from the end of the last lane to the end of the session, in which an initiator that gives up
 * can send CLOSE.
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
	unsigned lanes;    /* granted */
	unsigned nthreads; /* threads of the general method; 0: one for each lane */
	int connect_ms;    /* time limit for announced lanes; DATA_CONNECT_MS, except in tests */
	int deserted_ms;   /* DATA_DESERTED_MS, except in tests */
	struct persist *persist;
};

struct data;

/* No port is open yet. ERROR_LOCAL. */
int data_new(const struct data_opts *opts, struct data **data, struct error *err);
/* On return all lanes are closed, and the memory is deregistered. */
void data_delete(struct data **data);

/* The number of lanes for which this process has descriptors, at most `lanes`. */
unsigned data_lanes_possible(unsigned lanes, enum wire_method method);

/*
 * Accept these lanes, each once, at *port. ERROR_ARGUMENT: one of the lanes was expected before.
 * ERROR_LOCAL: this end cannot listen.
 */
int data_expect(struct data *data, unsigned first, unsigned count, uint16_t *port,
		struct error *err);
/* Was a lane ever accepted? If so, bytes may have been stored. */
bool data_was_connected(const struct data *data);

/*
 * The initiator has no lane any more, and none is expected. A lane ends only once, and the first
 * one comes when the pool is opened, so the initiator cannot use its pool any more. If the
 * initiator's machine has vanished, the control stream may last for hours, because sshd checks
 * rarely.
 */
bool data_is_deserted(const struct data *data);

int data_get_fd(const struct data *data);
/*
 * Handle all pending events. Returns the milliseconds until the next call, or -1: call when the
 * descriptor is readable.
 */
int data_step(struct data *data);

#endif
