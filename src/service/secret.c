/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LABEL_KEY "rpma serve key 1"
_Static_assert(sizeof(LABEL_KEY) - 1 == MAC_LABEL, "length");

/*
 * A service manager passes a credential in a folder that other users cannot enter. The group bits
 * of such a file may be the mask of an access list that gives no group any right.
 */
static bool secret_is_credential(const char *path)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	size_t len = folder ? strlen(folder) : 0;

	return len && !strncmp(path, folder, len) && path[len] == '/';
}

static int secret_check_file(int fd, const char *path, struct error *err)
{
	mode_t others = secret_is_credential(path) ? S_IRWXO : S_IRWXG | S_IRWXO;
	struct stat st;

	if (fstat(fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "secret file %s: %s", path,
				 strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_LOCAL, 0, "secret file %s is not a regular file", path);
	if (st.st_mode & others)
		return error_set(err, ERROR_LOCAL, 0,
				 "secret file %s is open to others than its owner (mode %04o); "
				 "'chmod 600 %s' closes it",
				 path, (unsigned)st.st_mode & 07777, path);
	return 0;
}

/* The buffer is one byte longer than the limit, so that a longer file is noticed. */
static ssize_t secret_read_all(int fd, uint8_t *buf, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, buf + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Ignore one newline after the text: an editor writes this newline, printf does not, and the same
 * text must give the same secret. */
static int secret_derive(struct secret *secret, const uint8_t *bytes, size_t len, const char *path,
			 struct error *err)
{
	if (len && bytes[len - 1] == '\n')
		len--;
	if (len < SECRET_MIN || len > SECRET_MAX)
		return error_set(err, ERROR_LOCAL, 0,
				 "secret file %s has %s than %d bytes; "
				 "'head -c 32 /dev/urandom | base64' makes a good one",
				 path, len < SECRET_MIN ? "less" : "more",
				 len < SECRET_MIN ? SECRET_MIN : SECRET_MAX);
	crypto_generichash_blake2b_salt_personal(secret->key, sizeof(secret->key), bytes, len, NULL,
						 0, NULL, (const uint8_t *)LABEL_KEY);
	return 0;
}

int secret_load(struct secret *secret, const char *path, struct error *err)
{
	uint8_t bytes[SECRET_MAX + 2];
	ssize_t len;
	int rc, fd;

	if (sodium_init() < 0)
		return error_set(err, ERROR_LOCAL, 0, "libsodium cannot be used on this machine");
	/*
	 * O_NONBLOCK: opening a pipe must not wait. A later check refuses a pipe with its own
	 * message.
	 */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot open secret file %s: %s", path,
				 strerror(errno));
	rc = secret_check_file(fd, path, err);
	if (!rc) {
		len = secret_read_all(fd, bytes, sizeof(bytes));
		rc = len < 0 ? error_set(err, ERROR_LOCAL, errno, "cannot read secret file %s: %s",
					 path, strerror(errno))
			     : secret_derive(secret, bytes, (size_t)len, path, err);
	}
	sodium_memzero(bytes, sizeof(bytes));
	close(fd);
	return rc;
}

void secret_forget(struct secret *secret)
{
	sodium_memzero(secret, sizeof(*secret));
}

void secret_nonce(uint8_t nonce[SECRET_NONCE])
{
	randombytes_buf(nonce, SECRET_NONCE);
}
