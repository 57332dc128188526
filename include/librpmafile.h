/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpmafile.h -- a file of another machine: open it, write, sync, and it is durable there.
 *
 * The server is `rpma serve`, or any program that calls rpma_file_serve(). A client opens a
 * *region* of it, a file or memory with a name, and reads and writes bytes at offsets. What was
 * written is durable when a sync has returned 0, and not before.
 *
 * What holds for every call unless it says otherwise:
 * - The result is 0, or RPMA_E_INVAL (an argument is wrong), RPMA_E_NOMEM, RPMA_E_NOSUPP,
 *   RPMA_E_PROVIDER (this machine's device, file or system failed) of librpma.h, or one of
 *   RPMA_FILE_E_*. rpma_file_errormsg() then says what failed, with which value, and what helps. On
 *   failure no output is written.
 * - A NULL where an object or an output is required, a range outside the file and an unknown flag
 *   give RPMA_E_INVAL and change nothing.
 * - Sizes and offsets are in bytes, times in milliseconds.
 * - Calls on one file may run in parallel, but rpma_file_close(), _claim(), _put_begin() and
 *   _put_end(), which are called alone. While one thread waits for a sync, others write and start
 *   syncs. A server is used by one thread at a time.
 * - When the connection has ended, each call but rpma_file_get_undecided(), rpma_file_get_info(),
 *   rpma_file_get_generation(), rpma_file_size(), rpma_file_reopen() and rpma_file_close() returns
 *   RPMA_FILE_E_LOST at once. The same holds for RPMA_FILE_E_MEDIUM, RPMA_FILE_E_GONE and
 *   RPMA_FILE_E_TAKEN: the first of them stays the result.
 * - A forked child must not use its parent's files and servers.
 *
 * There is a manual page for each function, and librpmafile(7) for the whole.
 */
#ifndef LIBRPMAFILE_H
#define LIBRPMAFILE_H 1

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <librpma.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RPMA_FILE_E_UNREACHED (-300001) /* no server answers at the address */
#define RPMA_FILE_E_REFUSED   (-300002) /* the server refuses: region, secret, writer, limit */
#define RPMA_FILE_E_LOST      (-300003) /* the connection has ended: rpma_file_reopen() */
#define RPMA_FILE_E_MEDIUM    (-300004) /* the server could not write back what was written */
#define RPMA_FILE_E_GONE      (-300005) /* the file was removed, replaced or truncated */
#define RPMA_FILE_E_DIFFERS   (-300006) /* the medium holds something else */
#define RPMA_FILE_E_TAKEN     (-300007) /* another writer has taken over: close, open, read again */

/* A static text for a result; "Unknown error" for other values. */
const char *rpma_file_err_2str(int ret);
/* Why the calling thread's last failed call failed, in one line; "" as long as none has. The text
 * is the thread's own and stays until its next failed call. RPMA_E_AGAIN leaves it as it is. */
const char *rpma_file_errormsg(void);

/* Open and close */

struct rpma_file; /* an open region of a server */

#define RPMA_FILE_READONLY (1u << 0)
/* also memory that cannot be persisted; a sync then only makes what was written visible to its
 * server */
#define RPMA_FILE_VOLATILE_OK (1u << 1)
/* for writing, and no part of it yet: rpma_file_claim() or rpma_file_put_begin() takes one */
#define RPMA_FILE_UNCLAIMED (1u << 2)

#define RPMA_FILE_PORT "7204" /* where a target names none */

/* What is zero, but for size, is the default. */
struct rpma_file_options {
	size_t size; /* sizeof(struct rpma_file_options); later versions may add members */
	uint32_t flags;
	int timeout_ms;   /* how long an answer may take; 0: 60 s, -1: no limit */
	int reconnect_ms; /* repeat opening for so long while no server answers, or another client
			     writes there; 0: do not, -1: no limit */
	const char *secret_file; /* the secret that both ends have, or NULL */
	/* The part that this client writes: no other writer may have any of it. Length 0: to the
	 * end. */
	uint64_t write_offset, write_length;
	/* A name that this program keeps when it is started again, 1 to RPMA_CONN_OWNER_MAX
	 * characters: what a former process of that name has under way at the server is ended before
	 * the file opens. NULL: none. One process at a time may use a name at a server. */
	const char *owner;
};

/*
 * Connect and open. target: "HOST", "HOST:PORT", "HOST:REGION" or "HOST:PORT:REGION", with an IPv6
 * literal in brackets; without a region the only one that is served. options NULL: the defaults,
 * which open the whole region for writing. Without RPMA_FILE_VOLATILE_OK a region that its server
 * cannot persist is RPMA_E_NOSUPP.
 *
 * RPMA_FILE_E_UNREACHED, _REFUSED, _GONE: the server serves a file that is no more what its name
 * leads to.
 */
int rpma_file_open(const char *target, const struct rpma_file_options *options,
		   struct rpma_file **file_ptr);

/*
 * Of a file that was opened with RPMA_FILE_UNCLAIMED, and once: take the part that this client
 * writes, length 0 to the end, as write_offset and write_length of the options do. No other call
 * on the file may be under way. After a failure but RPMA_E_INVAL each call returns the same;
 * rpma_file_reopen() makes another try possible.
 */
int rpma_file_claim(struct rpma_file *file, uint64_t offset, uint64_t length);

/*
 * Sync what was written, ask the server whether the file is still found under its name, and
 * disconnect. 0: everything that was written is durable, and will be found under the file's name.
 * *file_ptr is NULL and the file closed afterwards, also on failure. A pointer that is NULL already
 * is no error.
 */
int rpma_file_close(struct rpma_file **file_ptr);

/*
 * Connect anew, as rpma_file_open() did. When this returns 0, nothing of the former connection is
 * placed any more, and no other writer has claimed any of the range since this file was opened, nor
 * can from now on. Ranges that are undecided stay so until they are synced: write them again, or
 * read them to see what arrived. RPMA_FILE_E_TAKEN: another writer has claimed a part of the range
 * meanwhile, or the server cannot exclude that; close the file, open it anew, and read what it
 * holds before anything is written. Any thread may call it; on a connection that is not lost it
 * does nothing.
 */
int rpma_file_reopen(struct rpma_file *file);

/*
 * The generation of this file's claim of its range: each writer that opens the region gets a number
 * that is greater than all before it. rpma_file_reopen() leaves it as it is. 0: a file that was
 * opened with RPMA_FILE_READONLY. The server keeps the newest number in a record beside the
 * region's file. For memory, and when that record was lost, numbers begin at 1 again, and no former
 * claim holds.
 */
int rpma_file_get_generation(struct rpma_file *file, uint64_t *generation);

struct rpma_file_range {
	uint64_t offset, length;
};

/*
 * Which ranges were written and are not known to be durable: after RPMA_FILE_E_LOST their bytes may
 * have arrived, in part, or not. In ascending order, without overlaps; too large rather than too
 * small where very many were written. *count: in, how many fit into ranges; out, how many there
 * are. ranges NULL: return only that.
 */
int rpma_file_get_undecided(struct rpma_file *file, struct rpma_file_range *ranges, size_t *count);

int rpma_file_size(struct rpma_file *file, uint64_t *size);

enum rpma_file_holds {
	RPMA_FILE_HOLDS_BYTES,   /* no file was put into the region */
	RPMA_FILE_HOLDS_PARTIAL, /* a file is being put there, or its put has failed */
	RPMA_FILE_HOLDS_WHOLE,   /* a file that was put there, from offset 0 on */
};

struct rpma_file_info {
	size_t size;                     /* sizeof(struct rpma_file_info), set by the caller */
	uint64_t length;                 /* of the region */
	enum rpma_durability durability; /* of its memory */
	char region[48];
	char server[280]; /* HOST:PORT */
	char device[64];  /* of this machine, such as "softrnic0" */
	char link[16];    /* "tcp", "shm" or "rdma" */
	/* Of a file that is open for writing, else 0. */
	int persists; /* 1: a sync makes durable; 0: it only makes visible to the server */
	int verifies; /* 1: rpma_file_verify() and rpma_file_digest() are possible */
	/* What the region held when the file was opened. If BYTES, the members that follow are 0. */
	enum rpma_file_holds holds;
	uint64_t file_length;    /* UINT64_MAX: of a partial one not known yet */
	uint64_t file_time_ns;   /* its modification, since 1970 */
	uint8_t file_digest[32]; /* of a whole one: BLAKE2b-256 */
};
int rpma_file_get_info(struct rpma_file *file, struct rpma_file_info *info);

/* Which regions there are */

#define RPMA_FILE_REGIONS_MAX 32 /* of one server */

struct rpma_file_region {
	char name[48];
	uint64_t length;
	enum rpma_durability durability;
	enum rpma_file_holds holds; /* if BYTES, the members that follow are 0 */
	uint64_t file_length;       /* UINT64_MAX: of a partial one not known yet */
	uint64_t file_time_ns;      /* its modification, since 1970 */
	uint8_t file_digest[32];    /* of a whole one: BLAKE2b-256 */
};

/*
 * The regions of a server and the files that 'rpma put' left there; of a target that names a region
 * only that one. Of the options timeout_ms, reconnect_ms and secret_file count. *count: in, how
 * many fit into regions; out, how many there are. regions NULL: return only that.
 */
int rpma_file_list(const char *target, const struct rpma_file_options *options,
		   struct rpma_file_region *regions, size_t *count);

/* Put a file: the region holds it as a whole, with its length, time and digest, or not at all */

/*
 * Instead of rpma_file_claim(): the region is going to hold a file of that length (UINT64_MAX: not
 * known yet), which this client writes from offset 0 on. When this returns 0, the server knows
 * durably that the region holds no whole file until rpma_file_put_end().
 */
int rpma_file_put_begin(struct rpma_file *file, uint64_t length, uint64_t time_ns);
/*
 * Sync what was written, and have the server record that the region holds a whole file of that
 * length with that digest, BLAKE2b-256 of its bytes. 0: this is durable, and the file will be found
 * under its name. Nothing can be written afterwards. No other call on the file may be under way.
 */
int rpma_file_put_end(struct rpma_file *file, uint64_t length, const uint8_t digest[32]);

/* Write, read, sync */

/*
 * Write len bytes at offset. The buffer may be used again when this returns. What was written is
 * read by later calls on this file at once, and durable after a sync. Nothing is written if a part
 * of the range is outside the file, or outside what options reserved for this writer.
 */
int rpma_file_pwrite(struct rpma_file *file, const void *buf, size_t len, uint64_t offset);
/* The same from several buffers, one after the other. At most IOV_MAX of them. */
int rpma_file_pwritev(struct rpma_file *file, const struct iovec *iov, int iovcnt, uint64_t offset);
int rpma_file_pread(struct rpma_file *file, void *buf, size_t len, uint64_t offset);
/* Begin a read of at least one byte; wait with rpma_file_sync_wait(). Until the ticket has ended or
 * the file is closed, the buffer is the library's. */
int rpma_file_pread_start(struct rpma_file *file, void *buf, size_t len, uint64_t offset,
			  uint64_t *ticket);

/*
 * Make durable what was written before into the ranges; count 0: all that was written. 0: it is on
 * the server's medium. RPMA_FILE_E_MEDIUM: what was written since the last sync may be lost.
 */
int rpma_file_sync(struct rpma_file *file, const struct rpma_file_range *ranges, size_t count);
/* Begin a sync and return its ticket. Tickets ascend, and operations with tickets end in the order
 * of their tickets. */
int rpma_file_sync_start(struct rpma_file *file, const struct rpma_file_range *ranges, size_t count,
			 uint64_t *ticket);
/* Wait until the sync, store8 or read with that ticket, and so all before, has ended: 0, or why it
 * failed. -1: no limit but that of the file. RPMA_E_AGAIN: it has not ended in time and goes on. */
int rpma_file_sync_wait(struct rpma_file *file, uint64_t ticket, int timeout_ms);

/*
 * After all that was written before is durable, store eight aligned bytes, a number in the order of
 * this machine's bytes: a reader and a crash see the former eight or the new ones. When this
 * returns 0, they are durable. One round trip, where the server is rpma's.
 */
int rpma_file_store8(struct rpma_file *file, uint64_t offset, uint64_t value);
/* Begin that; wait with rpma_file_sync_wait(). */
int rpma_file_store8_start(struct rpma_file *file, uint64_t offset, uint64_t value,
			   uint64_t *ticket);

/*
 * Sync the range and compare what the server's medium holds with buf, by a digest.
 * RPMA_FILE_E_DIFFERS: it holds something else. RPMA_E_NOSUPP: the server cannot read its medium.
 */
int rpma_file_verify(struct rpma_file *file, const void *buf, size_t len, uint64_t offset);

#define RPMA_FILE_DIGEST_MAX (32u << 20)
/*
 * Sync the range, of 1 to RPMA_FILE_DIGEST_MAX bytes, and return the BLAKE2b digest of what the
 * server's medium holds there; its source is from where the server read it. RPMA_E_NOSUPP: the
 * server cannot read its medium.
 */
int rpma_file_digest(struct rpma_file *file, struct rpma_digest *digest, size_t len,
		     uint64_t offset);

/* The other half: serve regions from a program of one's own */

struct rpma_file_server;

#define RPMA_FILE_SERVE_VOLATILE_OK (1u << 0) /* also memory that cannot be persisted */
#define RPMA_FILE_SERVE_CREATE      (1u << 1) /* make each file, with create_size bytes; none exists */

/* A region: either path, or addr and length. */
struct rpma_file_export {
	const char *name; /* 1 to 44 characters */
	const char *path; /* a file that nothing else maps or serves */
	void *addr; /* memory of the caller's, which outlives the server and stays mapped; a shared
		       mapping of a file on a disk or on persistent memory is durable */
	size_t length;
};

/* What is zero, but for size, is the default. */
struct rpma_file_server_options {
	size_t size; /* sizeof(struct rpma_file_server_options); later versions may add members */
	uint32_t flags;
	const char *secret_file; /* clients need this secret; NULL: none */
	uint64_t create_size;
	unsigned max_clients; /* at a time; 0: 256 */
	/* A line about something that happened, such as a client that was refused; NULL: none.
	 * Called by rpma_file_serve() and rpma_file_server_step(). */
	void (*note)(void *arg, const char *text);
	void *note_arg;
};

/*
 * Serve the regions at address, "HOST" or "HOST:PORT"; port 0: a free one. Clients are admitted by
 * rpma_file_server_step(); what they write and sync needs no call of this program.
 * RPMA_E_PROVIDER: a file, the device or the address cannot be used. RPMA_E_NOSUPP: a region cannot
 * be persisted.
 */
int rpma_file_serve(const char *address, const struct rpma_file_export *exports, size_t count,
		    const struct rpma_file_server_options *options,
		    struct rpma_file_server **server_ptr);
/* Readable when rpma_file_server_step() has something to do. It is the library's: do not close. */
int rpma_file_server_get_fd(struct rpma_file_server *server, int *fd);
/*
 * Wait for at most timeout_ms (-1: no limit; 0: do not wait) until there is something to do, and do
 * it. *next_ms: call it again after so long at the latest, -1: when the descriptor is readable.
 * NULL: not wanted.
 */
int rpma_file_server_step(struct rpma_file_server *server, int timeout_ms, int *next_ms);
int rpma_file_server_get_port(struct rpma_file_server *server, uint16_t *port);
/* Disconnect all clients and stop. *server_ptr is NULL afterwards. */
int rpma_file_server_delete(struct rpma_file_server **server_ptr);

#ifdef __cplusplus
}
#endif

#endif
