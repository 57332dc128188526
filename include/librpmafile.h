/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpmafile.h -- access to a file of another machine: open, write, and sync, which makes the
 * written bytes durable on that machine.
 *
 * The server is `rpma serve`, or any program that calls rpma_file_serve(). A client opens a
 * *region* of the server, which is a file or memory with a name, and reads and writes bytes at
 * offsets. Written bytes are durable only after a sync has returned 0.
 *
 * These rules hold for every call, except where its comment states otherwise:
 * - The result is 0; or RPMA_E_INVAL (an argument is wrong), RPMA_E_NOMEM, RPMA_E_NOSUPP or
 *   RPMA_E_PROVIDER (this machine's device, file or system failed) of librpma.h; or one of
 *   RPMA_FILE_E_*. rpma_file_errormsg() then returns what failed, with which value, and what helps.
 *   On failure no output is written.
 * - A NULL where an object or an output is required, a range outside the file and an unknown flag
 *   give RPMA_E_INVAL and change nothing.
 * - Sizes and offsets are in bytes, times in milliseconds.
 * - Calls on one file may run in parallel, except rpma_file_close(), rpma_file_claim(),
 *   rpma_file_put_begin() and rpma_file_put_end(). While one thread waits for a sync, others may
 *   write and start syncs. Only one thread at a time uses a server.
 * - When the connection has ended, each call returns RPMA_FILE_E_LOST immediately, except
 *   rpma_file_get_undecided(), rpma_file_get_info(), rpma_file_get_generation(), rpma_file_size(),
 *   rpma_file_reopen() and rpma_file_close(), and rpma_file_sync_wait() for an operation that was
 *   answered before. The same holds for RPMA_FILE_E_MEDIUM, RPMA_FILE_E_GONE and
 *   RPMA_FILE_E_TAKEN: the first of these errors stays the result.
 * - A forked child must not use its parent's files and servers.
 *
 * There is a manual page for each function; librpmafile(7) describes the whole library.
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
/* the server refuses the region, the secret, the writer, or one more client */
#define RPMA_FILE_E_REFUSED (-300002)
#define RPMA_FILE_E_LOST    (-300003) /* the connection has ended: call rpma_file_reopen() */
#define RPMA_FILE_E_MEDIUM  (-300004) /* the server could not write back written bytes */
#define RPMA_FILE_E_GONE    (-300005) /* the file was removed, replaced or truncated */
#define RPMA_FILE_E_DIFFERS (-300006) /* the medium holds other bytes */
/* another writer has claimed a part of the range, or the server cannot exclude this: close the
 * file, open it again, read it */
#define RPMA_FILE_E_TAKEN (-300007)

/* Returns a static text for a result; "Unknown error" for other values. */
const char *rpma_file_err_2str(int ret);
/*
 * Returns the reason of the calling thread's last failed call, in one line; "" before the first
 * failure. Each thread has its own text, which stays until the thread's next failed call.
 * RPMA_E_AGAIN does not change the text.
 */
const char *rpma_file_errormsg(void);

/* Open and close */

struct rpma_file; /* an open region of a server */

#define RPMA_FILE_READONLY (1u << 0)
/* also accept memory that cannot be made persistent; then a sync only makes written bytes visible
 * to the server */
#define RPMA_FILE_VOLATILE_OK (1u << 1)
/* open for writing, but claim no part yet; rpma_file_claim() or rpma_file_put_begin() claims the
 * part */
#define RPMA_FILE_UNCLAIMED (1u << 2)

#define RPMA_FILE_PORT "7204" /* the port if the target has none */

/* The caller must set size; each other member may be zero, which selects its default. */
struct rpma_file_options {
	size_t size; /* sizeof(struct rpma_file_options); later versions may add members */
	uint32_t flags;
	int timeout_ms; /* time limit for an answer; 0: 60 s, -1: no limit */
	/* time for which to repeat opening while no server answers, the connection ends before the
	 * file is open, or another client has claimed a part of the range; 0: do not repeat, -1: no
	 * limit */
	int reconnect_ms;
	const char *secret_file; /* path of the secret that both ends have, or NULL */
	/* The part that this client writes. No other writer may claim a byte of this part. Length
	 * 0: to the end of the region. */
	uint64_t write_offset, write_length;
	/*
	 * A name of 1 to RPMA_CONN_OWNER_MAX characters that this program keeps when it is started
	 * again. Before the file opens, the server ends each connection that another process has
	 * made with that name, and places no more bytes of it. NULL: no name. Only one process at a
	 * time may use a name at a server.
	 */
	const char *owner;
};

/*
 * Connect and open. target: "HOST", "HOST:PORT", "HOST:REGION" or "HOST:PORT:REGION", with an IPv6
 * literal in brackets. A target without a region needs a server with only one region. options
 * NULL: the defaults, which open the whole region for writing. RPMA_E_NOSUPP: the server cannot
 * make the region persistent, and the options lack RPMA_FILE_VOLATILE_OK.
 *
 * RPMA_FILE_E_UNREACHED, RPMA_FILE_E_REFUSED. RPMA_FILE_E_GONE: the name of the served file now
 * leads to another file.
 */
int rpma_file_open(const char *target, const struct rpma_file_options *options,
		   struct rpma_file **file_ptr);

/*
 * Claim the part that this client writes, like write_offset and write_length of the options;
 * length 0: to the end. Only for a file opened with RPMA_FILE_UNCLAIMED, and only once. No other
 * call on the file may run meanwhile. After a failure other than RPMA_E_INVAL each call on the
 * file returns the same error; rpma_file_reopen() permits another attempt.
 */
int rpma_file_claim(struct rpma_file *file, uint64_t offset, uint64_t length);

/*
 * Sync all written bytes, ask the server whether the file is still found under its name, and
 * disconnect. 0: all written bytes are durable, and are found under the file's name. Afterwards the
 * file is closed and *file_ptr is NULL, also on failure. A NULL pointer is no error.
 */
int rpma_file_close(struct rpma_file **file_ptr);

/*
 * Connect again, as rpma_file_open() did. When this returns 0, the server places no more bytes of
 * the former connection, no other writer has claimed a part of the range since this file was
 * opened, and none can until this connection ends. Undecided ranges stay undecided until a sync:
 * write them again, or read them to find out what arrived. RPMA_FILE_E_TAKEN: another writer has
 * claimed a part of the range meanwhile, or the server cannot exclude this; close the file, open it
 * again, and read its content before any write. Any thread may call this. If the connection is not
 * lost, the call does nothing.
 */
int rpma_file_reopen(struct rpma_file *file);

/*
 * Get the generation of this file's claim of its range: each writer that opens the region gets a
 * greater number than all earlier writers. rpma_file_reopen() does not change the number. 0: the
 * file was opened with RPMA_FILE_READONLY. The server keeps the newest number in a record beside
 * the region's file. For a region of memory, and after the loss of the record, numbers begin at 1
 * again, and no former claim holds.
 */
int rpma_file_get_generation(struct rpma_file *file, uint64_t *generation);

struct rpma_file_range {
	uint64_t offset, length;
};

/*
 * Get the ranges that were written and may not be durable. After RPMA_FILE_E_LOST all, some or
 * none of their bytes may have arrived. The ranges ascend without overlaps; after very many writes
 * they may be too large, but never too small. *count: on entry, the length of the array; on
 * return, the number of ranges that exist. ranges NULL: return only the number.
 */
int rpma_file_get_undecided(struct rpma_file *file, struct rpma_file_range *ranges, size_t *count);

int rpma_file_size(struct rpma_file *file, uint64_t *size);

enum rpma_file_holds {
	RPMA_FILE_HOLDS_BYTES, /* no file was put into the region */
	/* a file is being put into the region, or the transfer has failed */
	RPMA_FILE_HOLDS_PARTIAL,
	RPMA_FILE_HOLDS_WHOLE, /* the region holds a whole file, from offset 0 on */
};

struct rpma_file_info {
	size_t size;                     /* sizeof(struct rpma_file_info), set by the caller */
	uint64_t length;                 /* length of the region, in bytes */
	enum rpma_durability durability; /* durability of the region's memory */
	char region[48];
	char server[280]; /* the server's HOST:PORT */
	char device[64];  /* name of this machine's device, such as "softrnic0" */
	char link[16];    /* kind of connection: "tcp", "shm" or "rdma" */
	/* The two members below are 0 unless the file is open for writing. */
	/* 1: a sync makes bytes durable; 0: a sync only makes them visible to the server */
	int persists;
	int verifies; /* 1: rpma_file_verify() and rpma_file_digest() are possible */
	/* The content of the region when the file was opened. With BYTES, the members below are
	 * 0. */
	enum rpma_file_holds holds;
	/* length of the file; UINT64_MAX: the length of a partial file is not known yet */
	uint64_t file_length;
	uint64_t file_time_ns;   /* the file's modification time, in ns since 1970 */
	uint8_t file_digest[32]; /* BLAKE2b-256 of a whole file */
};
int rpma_file_get_info(struct rpma_file *file, struct rpma_file_info *info);

/* The regions of a server */

#define RPMA_FILE_REGIONS_MAX 32 /* largest number of regions of a server */

struct rpma_file_region {
	char name[48];
	uint64_t length;
	enum rpma_durability durability;
	enum rpma_file_holds holds; /* with BYTES, the members below are 0 */
	/* length of the file; UINT64_MAX: the length of a partial file is not known yet */
	uint64_t file_length;
	uint64_t file_time_ns;   /* the file's modification time, in ns since 1970 */
	uint8_t file_digest[32]; /* BLAKE2b-256 of a whole file */
};

/*
 * List the regions of a server, and the files that 'rpma put' left in them. If the target names a
 * region, the list has only this region. The call uses timeout_ms, reconnect_ms and secret_file of
 * the options. *count: on entry, the length of the array; on return, the number of regions that
 * exist. regions NULL: return only the number.
 */
int rpma_file_list(const char *target, const struct rpma_file_options *options,
		   struct rpma_file_region *regions, size_t *count);

/* Put a file: afterwards the region holds either the whole file with its length, time and digest,
 * or no file */

/*
 * Begin to put a file; call this instead of rpma_file_claim(). This client will write a file of
 * this length (UINT64_MAX: not known yet) into the region, from offset 0 on. When this returns 0,
 * the server has recorded durably that the region holds no whole file until rpma_file_put_end().
 */
int rpma_file_put_begin(struct rpma_file *file, uint64_t length, uint64_t time_ns);
/*
 * Sync all written bytes, and let the server record that the region holds a whole file of this
 * length with this digest, the BLAKE2b-256 of its bytes. 0: the record is durable, and the file
 * will be found under its name. After this call nothing can be written. No other call on the file
 * may run meanwhile.
 */
int rpma_file_put_end(struct rpma_file *file, uint64_t length, const uint8_t digest[32]);

/* Write, read, sync */

/*
 * Write len bytes at offset. The caller may reuse the buffer after the return. Later reads through
 * this file return the written bytes immediately; a sync makes them durable. Nothing is written if
 * a part of the range is outside the file, or outside the range that this writer has claimed.
 */
int rpma_file_pwrite(struct rpma_file *file, const void *buf, size_t len, uint64_t offset);
/* Write from several buffers, one after the other; at most IOV_MAX buffers. */
int rpma_file_pwritev(struct rpma_file *file, const struct iovec *iov, int iovcnt, uint64_t offset);
int rpma_file_pread(struct rpma_file *file, void *buf, size_t len, uint64_t offset);
/* Begin a read of at least one byte; wait by rpma_file_sync_wait(). The library owns the buffer
 * until the ticket's operation has ended or the file is closed. */
int rpma_file_pread_start(struct rpma_file *file, void *buf, size_t len, uint64_t offset,
			  uint64_t *ticket);

/*
 * Make earlier writes into the ranges durable; count 0, or more than 8 ranges: all earlier writes
 * through this file. 0: the bytes are on the server's medium. RPMA_FILE_E_MEDIUM: bytes written
 * since the last sync may be lost.
 */
int rpma_file_sync(struct rpma_file *file, const struct rpma_file_range *ranges, size_t count);
/* Begin a sync and return its ticket. Tickets ascend, and operations with tickets end in the order
 * of their tickets. */
int rpma_file_sync_start(struct rpma_file *file, const struct rpma_file_range *ranges, size_t count,
			 uint64_t *ticket);
/*
 * Wait until the operation of this ticket (sync, store8 or read) and all earlier operations have
 * ended. Returns 0, or the operation's error. timeout_ms -1: only the file's own limit.
 * RPMA_E_AGAIN: the operation has not ended in time and goes on.
 */
int rpma_file_sync_wait(struct rpma_file *file, uint64_t ticket, int timeout_ms);

/*
 * Store eight aligned bytes, a number in this machine's byte order, after all earlier writes are
 * durable. A reader, and a restart after a crash, see either the former eight bytes or the new
 * ones. When this returns 0, the new bytes are durable. Takes one round trip if the server's device
 * is the software RNIC.
 */
int rpma_file_store8(struct rpma_file *file, uint64_t offset, uint64_t value);
/* Begin a store of eight bytes, as rpma_file_store8() does; wait by rpma_file_sync_wait(). */
int rpma_file_store8_start(struct rpma_file *file, uint64_t offset, uint64_t value,
			   uint64_t *ticket);

/*
 * Sync the range, and compare the bytes on the server's medium with buf, by a digest.
 * RPMA_FILE_E_DIFFERS: the medium holds other bytes. RPMA_E_NOSUPP: the server cannot read its
 * medium.
 */
int rpma_file_verify(struct rpma_file *file, const void *buf, size_t len, uint64_t offset);

#define RPMA_FILE_DIGEST_MAX (32u << 20)
/*
 * Sync the range, of 1 to RPMA_FILE_DIGEST_MAX bytes, and return the BLAKE2b digest of its bytes
 * on the server's medium. digest->source: the place from which the server read the bytes.
 * RPMA_E_NOSUPP: the server cannot read its medium.
 */
int rpma_file_digest(struct rpma_file *file, struct rpma_digest *digest, size_t len,
		     uint64_t offset);

/* The server: any program may serve regions, as `rpma serve` does */

struct rpma_file_server;

#define RPMA_FILE_SERVE_VOLATILE_OK (1u << 0) /* also serve memory that cannot be made persistent */
/* create each file with create_size bytes; an existing file is an error */
#define RPMA_FILE_SERVE_CREATE (1u << 1)

/* A region has either path, or addr and length. */
struct rpma_file_export {
	const char *name; /* 1 to 44 characters */
	const char *path; /* path of a file that no other process maps or serves */
	/* memory of the caller, which must outlive the server and stay mapped; a shared mapping
	 * of a file on a disk or on persistent memory is durable */
	void *addr;
	size_t length;
};

/* The caller must set size; each other member may be zero, which selects its default. */
struct rpma_file_server_options {
	size_t size; /* sizeof(struct rpma_file_server_options); later versions may add members */
	uint32_t flags;
	const char *secret_file; /* the secret that clients must prove; NULL: no secret */
	uint64_t create_size;
	unsigned max_clients; /* most clients at a time; 0: 256 */
	/* Receives one line about an event, such as a refused client; NULL: no lines.
	 * rpma_file_serve() and rpma_file_server_step() call this function. */
	void (*note)(void *arg, const char *text);
	void *note_arg;
};

/*
 * Serve the regions at address, "HOST" or "HOST:PORT"; port 0: a free port.
 * rpma_file_server_step() admits clients. The clients' writes and syncs need no call of this
 * program. RPMA_E_PROVIDER: a file, the device or the address cannot be used. RPMA_E_NOSUPP: a
 * region cannot be made persistent.
 */
int rpma_file_serve(const char *address, const struct rpma_file_export *exports, size_t count,
		    const struct rpma_file_server_options *options,
		    struct rpma_file_server **server_ptr);
/* Get a descriptor that is readable when rpma_file_server_step() has work. The library owns the
 * descriptor: do not read or close it. */
int rpma_file_server_get_fd(struct rpma_file_server *server, int *fd);
/*
 * Wait for work for at most timeout_ms (-1: no limit; 0: do not wait), and do the work. *next_ms:
 * the longest time until the next call; -1: call again when the descriptor is readable. next_ms
 * may be NULL.
 */
int rpma_file_server_step(struct rpma_file_server *server, int timeout_ms, int *next_ms);
int rpma_file_server_get_port(struct rpma_file_server *server, uint16_t *port);
/* Disconnect all clients and stop. *server_ptr is NULL afterwards. */
int rpma_file_server_delete(struct rpma_file_server **server_ptr);

#ifdef __cplusplus
}
#endif

#endif
