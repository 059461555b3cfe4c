// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A driver of HDF5 for files that are read. All that leads to another file, as links and virtual
 * datasets do, goes through the driver of the first one.
 */
#include "processing/hdf5-regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* before 1.13 the first header has it all */
#if __has_include("H5FDdevelop.h")
#include <H5FDdevelop.h>
#endif

struct regular {
	H5FD_t common;		/* first; HDF5's */
	int fd;
	struct stat status;
	haddr_t eoa;
};

static __thread char refused[128];

static H5FD_t *regular_open(const char *name, unsigned int flags, hid_t access, haddr_t most)
{
	struct regular *r = flags & H5F_ACC_RDWR ? NULL : calloc(1, sizeof(*r));

	(void)access;
	(void)most;
	if (!r)
		return NULL;
	r->fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (r->fd >= 0 && !fstat(r->fd, &r->status) && S_ISREG(r->status.st_mode))
		return &r->common;
	if (r->fd >= 0) {
		snprintf(refused, sizeof(refused), "%s", name);
		close(r->fd);
	}
	free(r);
	return NULL;
}

static herr_t regular_close(H5FD_t *file)
{
	struct regular *r = (struct regular *)file;

	close(r->fd);
	free(r);
	return 0;
}

/* HDF5 has each file once, whatever its names are. */
static int regular_cmp(const H5FD_t *first, const H5FD_t *second)
{
	const struct stat *a = &((const struct regular *)first)->status;
	const struct stat *b = &((const struct regular *)second)->status;

	if (a->st_dev != b->st_dev)
		return a->st_dev < b->st_dev ? -1 : 1;
	return a->st_ino < b->st_ino ? -1 : a->st_ino > b->st_ino;
}

static herr_t regular_query(const H5FD_t *file, unsigned long *flags)
{
	(void)file;
	*flags = H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
	return 0;
}

static haddr_t regular_eoa(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return ((const struct regular *)file)->eoa;
}

static herr_t regular_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t eoa)
{
	(void)type;
	((struct regular *)file)->eoa = eoa;
	return 0;
}

static haddr_t regular_eof(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return ((const struct regular *)file)->status.st_size;
}

/* Behind the end there are zeros, as HDF5's own driver has it. */
static herr_t regular_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t from, size_t size,
			   void *to)
{
	const struct regular *r = (const struct regular *)file;

	(void)type;
	(void)transfer;
	if (from > INT64_MAX - size)
		return -1;
	for (uint8_t *at = to; size;) {
		const ssize_t n = pread(r->fd, at, size, from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n) {
			memset(at, 0, size);
			return 0;
		}
		at += n;
		from += n;
		size -= n;
	}
	return 0;
}

static herr_t regular_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t from,
			    size_t size, const void *data)
{
	(void)file;
	(void)type;
	(void)transfer;
	(void)from;
	(void)size;
	(void)data;
	return -1;
}

/* Files that another process writes are refused, as by HDF5's own driver. */
static herr_t regular_lock(H5FD_t *file, hbool_t write)
{
	const int kind = write ? LOCK_EX : LOCK_SH;

	return flock(((struct regular *)file)->fd, kind | LOCK_NB) && errno == EWOULDBLOCK ? -1 : 0;
}

static herr_t regular_unlock(H5FD_t *file)
{
	flock(((struct regular *)file)->fd, LOCK_UN);
	return 0;
}

static const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION
	.version = H5FD_CLASS_VERSION, .value = 511,	/* in the range for testing */
#endif
	.name = "rashpa-regular", .maxaddr = INT64_MAX, .fc_degree = H5F_CLOSE_WEAK,
	.open = regular_open, .close = regular_close, .cmp = regular_cmp, .query = regular_query,
	.get_eoa = regular_eoa, .set_eoa = regular_set_eoa, .get_eof = regular_eof,
	.read = regular_read, .write = regular_write, .lock = regular_lock,
	.unlock = regular_unlock, .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t rpu_regular_access(void)
{
	const hid_t id = H5FDregister(&driver), access = H5Pcreate(H5P_FILE_ACCESS);

	*refused = '\0';
	if (id >= 0 && access >= 0 && H5Pset_driver(access, id, NULL) >= 0) {
		H5FDunregister(id);	/* the access list keeps the driver alive */
		return access;
	}
	if (id >= 0)
		H5FDunregister(id);
	if (access >= 0)
		H5Pclose(access);
	return -1;
}

const char *rpu_regular_refused(void)
{
	return *refused ? refused : NULL;
}

/* External files bypass the driver; their names are relative to the working folder. */
bool rpu_regular_storage(hid_t set)
{
	const hid_t how = H5Dget_create_plist(set);
	const int files = how < 0 ? 0 : H5Pget_external_count(how);
	char name[sizeof(refused)];
	struct stat status;
	bool good = true;

	for (int i = 0; i < files && good; i++) {
		memset(name, 0, sizeof(name));
		/* a missing file may exist in another folder, which is not searched: refuse */
		good = H5Pget_external(how, i, sizeof(name), name, NULL, NULL) >= 0 &&
		       !name[sizeof(name) - 1] && !stat(name, &status) && S_ISREG(status.st_mode);
		if (!good)
			snprintf(refused, sizeof(refused), "%.100s", name);
	}
	if (how >= 0)
		H5Pclose(how);
	return good;
}
