/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/rpmemd/peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/poll.h"
#include "system/lib/check.h"

#define PEER_WAIT_MS 30000

static char peer_dir[PATH_MAX];

const char *peer_folder(void)
{
	char cwd[PATH_MAX - 32];

	if (!peer_dir[0]) {
		assert_non_null(getcwd(cwd, sizeof(cwd)));
		snprintf(peer_dir, sizeof(peer_dir), "%s/sets.XXXXXX", cwd);
		assert_non_null(mkdtemp(peer_dir));
	}
	return peer_dir;
}

void peer_folder_remove(void)
{
	DIR *dir = peer_dir[0] ? opendir(peer_dir) : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && unlinkat(dirfd(dir), entry->d_name, 0))
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
	rmdir(peer_dir);
	peer_dir[0] = '\0';
}

const char *peer_path(const char *name)
{
	static char path[PATH_MAX + 256];

	snprintf(path, sizeof(path), "%s/%s", peer_folder(), name);
	return path;
}

void peer_make_set(const char *name, unsigned long size)
{
	FILE *f = fopen(peer_path(name), "w");

	assert_non_null(f);
	fprintf(f, "PMEMPOOLSET\n%lu %s/%s.part\nOPTION NOHDRS\n", size, peer_folder(), name);
	assert_int_equal(fclose(f), 0);
}

static void peer_exec(const char *const options[])
{
	const char *argv[32] = {SYSTEM_RPMEMD, "--log-file", "-",        "--poolset-dir",
				peer_folder(), "-c",         "/dev/null"};
	unsigned n = 7;

	for (unsigned i = 0; options && options[i] && n < 31; i++)
		argv[n++] = options[i];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(SYSTEM_RPMEMD, (char *const *)argv);
	_exit(127);
}

static void peer_zero(struct peer *p)
{
	memset(p, 0, sizeof(*p));
	p->in = p->out = p->err = -1;
	p->is_begun = true;
}

static void peer_take_greeting(struct peer *p)
{
	struct wire_frame frame;

	assert_int_equal(wire_stream_receive(&p->stream, &frame, poll_deadline(PEER_WAIT_MS)), 0);
	assert_int_equal(frame.type, WIRE_GREETING);
	assert_true(wire_greeting_decode(frame.body, frame.len, &p->greeting));
}

void peer_start(struct peer *p, const char *const options[])
{
	int to[2], from[2], errors[2];

	peer_zero(p);
	peer_folder();
	assert_false(pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || pipe2(errors, O_CLOEXEC));
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		dup2(errors[1], STDERR_FILENO);
		peer_exec(options);
	}
	close(to[0]);
	close(from[1]);
	close(errors[1]);
	p->out = to[1];
	p->in = from[0];
	p->err = errors[0];
	fcntl(p->err, F_SETFL, O_NONBLOCK);
	wire_stream_init(&p->stream, p->in, p->out);
	peer_take_greeting(p);
}

static int peer_socket(const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
	int fd;

	assert_int_equal(getaddrinfo("127.0.0.1", port, &hints, &found), 0);
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (connect(fd, found->ai_addr, found->ai_addrlen))
		fail_msg("connect to port %s: %s", port, strerror(errno));
	freeaddrinfo(found);
	return fd;
}

/* Send the daemon a proof of the secret, like direct.c of librpmem. */
static int peer_prove(struct peer *p, const struct secret *secret)
{
	struct wire_exchange exchange = {.greeting = p->greeting};
	struct wire_proven proven;
	struct wire_proof proof;
	struct wire_frame frame;
	struct wire_keys keys;
	uint8_t buf[WIRE_BODY_MAX], mac[WIRE_MAC];
	int rc;

	wire_random(exchange.nonce, sizeof(exchange.nonce));
	memcpy(proof.nonce, exchange.nonce, sizeof(proof.nonce));
	wire_prove_initiator(secret, &exchange, proof.mac);
	rc = wire_stream_send(&p->stream, WIRE_PROOF, buf, wire_proof_encode(&proof, buf),
			      poll_deadline(PEER_WAIT_MS));
	if (!rc)
		rc = wire_stream_receive(&p->stream, &frame, poll_deadline(PEER_WAIT_MS));
	if (rc)
		return -rc;
	assert_true(frame.type == WIRE_PROVEN &&
		    wire_proven_decode(frame.body, frame.len, &proven));
	if (proven.error)
		return (int)proven.error;
	wire_prove_daemon(secret, &exchange, &proven, mac);
	assert_true(mac_is_equal(mac, proven.mac));
	wire_keys_derive(secret, &exchange, &keys);
	wire_stream_seal(&p->stream, &keys.to_daemon, &keys.to_initiator);
	p->lane_key = keys.lanes;
	return 0;
}

int peer_connect(struct peer *p, const char *port, const struct secret *secret)
{
	peer_zero(p);
	p->in = p->out = peer_socket(port);
	wire_stream_init(&p->stream, p->in, p->out);
	peer_take_greeting(p);
	return secret ? peer_prove(p, secret) : 0;
}

unsigned peer_ask(struct peer *p, enum wire_type type, const uint8_t *body, size_t len)
{
	struct wire_frame frame;
	int rc = wire_stream_send(&p->stream, type, body, len, poll_deadline(PEER_WAIT_MS));

	if (!rc)
		rc = wire_stream_receive(&p->stream, &frame, poll_deadline(PEER_WAIT_MS));
	if (rc)
		fail_msg("%s is not answered: %s; %s", wire_type_name(type), strerror(-rc),
			 peer_stderr(p));
	assert_true(frame.type == WIRE_ANSWER);
	assert_true(wire_answer_decode(frame.body, frame.len, &p->answer));
	assert_int_equal(p->answer.request, type);
	return p->answer.status;
}

static unsigned peer_ask_pool(struct peer *p, enum wire_type type, const char *name, uint64_t size,
			      uint32_t lanes)
{
	static struct wire_pool_request req;
	uint8_t buf[WIRE_BODY_MAX];

	req = (struct wire_pool_request){
		.pool_size = size, .lanes = lanes, .method = WIRE_METHOD_NATIVE};
	snprintf(req.name, sizeof(req.name), "%s", name);
	if (peer_ask(p, type, buf, wire_pool_request_encode(&req, buf)))
		return p->answer.status;
	p->pool = p->answer.pool;
	/* over ssh the answer contains the key; in a sealed stream the key was derived before */
	if (!p->stream.tx.on)
		memcpy(p->lane_key.bytes, p->pool.lane_key, sizeof(p->lane_key.bytes));
	return WIRE_OK;
}

unsigned peer_create(struct peer *p, const char *name, uint64_t size, uint32_t lanes)
{
	return peer_ask_pool(p, WIRE_CREATE, name, size, lanes);
}

unsigned peer_open(struct peer *p, const char *name, uint64_t size, uint32_t lanes)
{
	return peer_ask_pool(p, WIRE_OPEN, name, size, lanes);
}

unsigned peer_lanes(struct peer *p, uint32_t first, uint32_t count)
{
	struct wire_lanes m = {first, count};
	uint8_t buf[WIRE_BODY_MAX];

	return peer_ask(p, WIRE_LANES, buf, wire_lanes_encode(&m, buf));
}

unsigned peer_deep(struct peer *p, uint64_t offset, uint64_t length)
{
	struct wire_deep m = {offset, length};
	uint8_t buf[WIRE_BODY_MAX];

	return peer_ask(p, WIRE_DEEP, buf, wire_deep_encode(&m, buf));
}

unsigned peer_close(struct peer *p, uint32_t flags)
{
	struct wire_close m = {flags};
	uint8_t buf[WIRE_BODY_MAX];

	return peer_ask(p, WIRE_CLOSE, buf, wire_close_encode(&m, buf));
}

int peer_wait(struct peer *p)
{
	uint64_t deadline = poll_deadline(PEER_WAIT_MS);
	int status = 0;
	pid_t got;

	while (!(got = waitpid(p->pid, &status, WNOHANG)) && poll_ms_left(deadline))
		usleep(1000);
	if (!got)
		fail_msg("the daemon does not end: %s", peer_stderr(p));
	p->pid = 0;
	return status;
}

const char *peer_stderr(struct peer *p)
{
	static char text[65536];
	size_t have = 0;
	ssize_t n;

	while (p->err >= 0 && have < sizeof(text) - 1 &&
	       (n = read(p->err, text + have, sizeof(text) - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	return text;
}

void peer_end(struct peer *p)
{
	if (!p->is_begun)
		return;
	peer_drop_lanes(p);
	rpma_mr_dereg(&p->mr);
	rpma_peer_delete(&p->rpma);
	free(p->memory);
	if (p->in >= 0)
		close(p->in);
	if (p->out >= 0 && p->out != p->in)
		close(p->out);
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	if (p->err >= 0)
		close(p->err);
	peer_zero(p);
}
