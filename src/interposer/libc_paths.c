/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libc_paths.c -- replaces the calls of libc that take the name of a file. Names of the device's
 * files are redirected to the private tree (paths.h).
 *
 * Calls inside libc bypass the interposer. So each call that a program may use is here, including
 * its aliases for large files, for checked buffers, and of older versions of libc.
 */
#undef _FORTIFY_SOURCE /* without this line the headers of libc define some of the calls below */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "interposer/paths.h"

typedef int libc_filter(const struct dirent *entry);
typedef int libc_order(const struct dirent **a, const struct dirent **b);
typedef int libc_filter64(const struct dirent64 *entry);
typedef int libc_order64(const struct dirent64 **a, const struct dirent64 **b);

/* Columns: result type, name, parameters, arguments, result if libc lacks the call. The parameter
 * `path` is the file's name. */
/* clang-format off */
#define LIBC_PATH_CALLS(X)                                                                         \
	X(int, stat, (const char *path, struct stat *st), (path, st), -1)                          \
	X(int, stat64, (const char *path, struct stat64 *st), (path, st), -1)                      \
	X(int, lstat, (const char *path, struct stat *st), (path, st), -1)                         \
	X(int, lstat64, (const char *path, struct stat64 *st), (path, st), -1)                     \
	X(int, fstatat, (int dir, const char *path, struct stat *st, int flags),                   \
	  (dir, path, st, flags), -1)                                                              \
	X(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags),               \
	  (dir, path, st, flags), -1)                                                              \
	X(int, statx,                                                                              \
	  (int dir, const char *path, int flags, unsigned mask, struct statx *st),                 \
	  (dir, path, flags, mask, st), -1)                                                        \
	X(int, __xstat, (int version, const char *path, struct stat *st), (version, path, st), -1) \
	X(int, __xstat64, (int version, const char *path, struct stat64 *st),                      \
	  (version, path, st), -1)                                                                 \
	X(int, __lxstat, (int version, const char *path, struct stat *st), (version, path, st),    \
	  -1)                                                                                      \
	X(int, __lxstat64, (int version, const char *path, struct stat64 *st),                     \
	  (version, path, st), -1)                                                                 \
	X(int, __fxstatat,                                                                         \
	  (int version, int dir, const char *path, struct stat *st, int flags),                    \
	  (version, dir, path, st, flags), -1)                                                     \
	X(int, __fxstatat64,                                                                       \
	  (int version, int dir, const char *path, struct stat64 *st, int flags),                  \
	  (version, dir, path, st, flags), -1)                                                     \
	X(int, access, (const char *path, int mode), (path, mode), -1)                             \
	X(int, eaccess, (const char *path, int mode), (path, mode), -1)                            \
	X(int, euidaccess, (const char *path, int mode), (path, mode), -1)                         \
	X(int, faccessat, (int dir, const char *path, int mode, int flags),                        \
	  (dir, path, mode, flags), -1)                                                            \
	X(int, __open_2, (const char *path, int flags), (path, flags), -1)                         \
	X(int, __open64_2, (const char *path, int flags), (path, flags), -1)                       \
	X(int, __openat_2, (int dir, const char *path, int flags), (dir, path, flags), -1)         \
	X(int, __openat64_2, (int dir, const char *path, int flags), (dir, path, flags), -1)       \
	X(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)                 \
	X(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL)               \
	X(DIR *, opendir, (const char *path), (path), NULL)                                        \
	X(int, scandir,                                                                            \
	  (const char *path, struct dirent ***list, libc_filter *filter, libc_order *order),       \
	  (path, list, filter, order), -1)                                                         \
	X(int, scandir64,                                                                          \
	  (const char *path, struct dirent64 ***list, libc_filter64 *filter, libc_order64 *order), \
	  (path, list, filter, order), -1)                                                         \
	X(int, chdir, (const char *path), (path), -1)                                              \
	X(char *, realpath, (const char *path, char *real), (path, real), NULL)                    \
	X(char *, __realpath_chk, (const char *path, char *real, size_t size), (path, real, size), \
	  NULL)                                                                                    \
	X(char *, canonicalize_file_name, (const char *path), (path), NULL)                        \
	X(ssize_t, readlink, (const char *path, char *target, size_t size), (path, target, size),  \
	  -1)                                                                                      \
	X(ssize_t, __readlink_chk, (const char *path, char *target, size_t size, size_t limit),     \
	  (path, target, size, limit), -1)                                                          \
	X(ssize_t, readlinkat, (int dir, const char *path, char *target, size_t size),             \
	  (dir, path, target, size), -1)                                                           \
	X(ssize_t, __readlinkat_chk,                                                               \
	  (int dir, const char *path, char *target, size_t size, size_t limit),                     \
	  (dir, path, target, size, limit), -1)                                                     \
	X(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size),       \
	  (path, name, value, size), -1)                                                           \
	X(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size),      \
	  (path, name, value, size), -1)

/* The same columns for calls that create a file, which have the mode as last parameter. */
#define LIBC_OPEN_CALLS(X)                                                                         \
	X(open, (const char *path, int flags, ...), (path, flags, mode))                           \
	X(open64, (const char *path, int flags, ...), (path, flags, mode))                         \
	X(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))           \
	X(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
/* clang-format on */

static struct {
#define MEMBER(ret, name, params, ...) ret(*name) params;
	LIBC_PATH_CALLS(MEMBER)
#define OPEN_MEMBER(name, params, ...) int(*name) params;
	LIBC_OPEN_CALLS(OPEN_MEMBER)
} next;

/* Symbol version of older calls: newer versions of libc keep these calls only in this version, for
 * older programs. */
#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#else
#define FIRST_GLIBC "GLIBC_2.17"
#endif

/* Find a call of libc. If a program loads this library under a name of rdma-core, libc may come
 * before it in the search order. */
static void *libc_find(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name), *libc;

	if (!found)
		found = dlvsym(RTLD_NEXT, name, FIRST_GLIBC);
	if (found || !(libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)))
		return found;
	found = dlsym(libc, name);
	if (!found)
		found = dlvsym(libc, name, FIRST_GLIBC);
	dlclose(libc);
	return found;
}

/* Look up all symbols when the library is loaded. Later this would not be safe: a look-up takes a
 * lock of the loader, and signal handlers use these calls. */
__attribute__((constructor)) static void libc_find_all(void)
{
#define FIND(ret, name, ...) *(void **)&next.name = libc_find(#name);
	LIBC_PATH_CALLS(FIND)
#define OPEN_FIND(name, ...) FIND(int, name)
	LIBC_OPEN_CALLS(OPEN_FIND)
}

/* A constructor of another library may call these functions before libc_find_all() has run. */
#define NEEDS(name)                                                                                \
	if (!next.name)                                                                            \
		*(void **)&next.name = libc_find(#name);

/* Newer headers of libc do not declare the older names. */
#define DECLARE(ret, name, params, ...) ret name params;
LIBC_PATH_CALLS(DECLARE)

#define LEAD(ret, name, params, args, lacked)                                                      \
	ret name params                                                                            \
	{                                                                                          \
		struct paths_room room;                                                            \
                                                                                                   \
		NEEDS(name)                                                                        \
		if (!next.name) {                                                                  \
			errno = ENOSYS;                                                            \
			return lacked;                                                             \
		}                                                                                  \
		path = paths_lead(path, &room);                                                    \
		return next.name args;                                                             \
	}
LIBC_PATH_CALLS(LEAD)

#define CREATES(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

#define LEAD_OPEN(name, params, args)                                                              \
	int name params                                                                            \
	{                                                                                          \
		struct paths_room room;                                                            \
		mode_t mode = 0;                                                                   \
		va_list ap;                                                                        \
                                                                                                   \
		if (CREATES(flags)) {                                                              \
			va_start(ap, flags);                                                       \
			mode = va_arg(ap, mode_t);                                                 \
			va_end(ap);                                                                \
		}                                                                                  \
		NEEDS(name)                                                                        \
		if (!next.name) {                                                                  \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		path = paths_lead(path, &room);                                                    \
		return next.name args;                                                             \
	}
LIBC_OPEN_CALLS(LEAD_OPEN)
