/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/openmetrics_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/newfile.h"

int openmetrics_save(const struct openmetrics *om, const char *path, struct error *err)
{
	struct newfile_opts opts = {.path = path};
	struct newfile nf;
	int rc = newfile_open(&nf, &opts, err);

	if (rc)
		return rc;
	rc = newfile_write(nf.fd, om->text, om->len);
	/* Let every user read the file, whatever the umask: node_exporter runs as another user. */
	if (!rc && fchmod(nf.fd, 0644))
		rc = -errno;
	if (rc)
		rc = error_set(err, ERROR_LOCAL, -rc, "cannot write %s: %s", path, strerror(-rc));
	else
		rc = newfile_commit(&nf, true, err);
	if (rc)
		newfile_abort(&nf);
	else
		close(nf.fd);
	return rc;
}

bool openmetrics_room(const char *path, double *avail, double *size)
{
	struct statvfs fs;

	if (statvfs(path, &fs) || !fs.f_blocks)
		return false;
	*avail = (double)fs.f_bavail * (double)fs.f_frsize;
	*size = (double)fs.f_blocks * (double)fs.f_frsize;
	return true;
}
