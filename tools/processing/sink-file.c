// SPDX-License-Identifier: LGPL-2.1-or-later
#include "processing/sink-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/say.h"

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is it that file? Of "FILE:/path" the part in front counts. */
static bool is_input(const char *path, const struct stat *file)
{
	const char *inside = strstr(path, ":/");
	char name[RPU_PATH] = "";
	struct stat there;

	memcpy(name, path, inside && inside[2] ? (size_t)(inside - path) : strlen(path));
	return *name && !stat(name, &there) && same(&there, file);
}

/* Name of the input that is this file, or NULL. Compares files, since links have other names. */
static const char *input_of(const struct rashpa_pipeline *p, const struct stat *file)
{
	if (is_input(p->config, file))
		return "its configuration";
	for (unsigned int i = 0; i < p->inputs; i++) {
		if (is_input(p->input[i].path, file))
			return p->input[i].key;
	}
	return NULL;
}

/* A file that is there: may it be written? */
static int may_write(const struct rashpa_pipeline *p, const struct rpu_file *f,
		     const struct stat *there, char *why)
{
	const char *input = input_of(p, there);
	struct stat other;

	if (S_ISDIR(there->st_mode))
		return because(why, -1, "%s: it exists, and is a folder", f->path);
	if (!S_ISREG(there->st_mode))
		return f->is_stream ? 0 :
		       because(why, -1, "%s: it exists, and is no file", f->path);
	for (unsigned int i = 0; i < RPU_SINKS; i++) {
		if (p->file[i] && !fstat(p->file[i]->fd, &other) && same(&other, there))
			return because(why, -1, "%s: the sink %s writes it: give another name",
				       f->path, p->sink[i].sink->name);
	}
	if (input)
		return because(why, -1, "%s: the pipeline reads it (%s): give another name",
			       f->path, input);
	if (!f->overwrite && (!f->is_stream || there->st_size))
		return because(why, -1, "%s: it exists: give another name, or \"overwrite\": true",
			       f->path);
	return 0;
}

/* Of the open file, not of the process: another pipeline of this one is another writer, too. */
static bool lock(int fd)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	/* accept file systems without locks */
	return !fcntl(fd, F_OFD_SETLK, &all) || (errno != EAGAIN && errno != EACCES);
}

int rpu_file_error(const struct rpu_file *f, char *why)
{
	struct stat link;

	if (errno == EEXIST && !lstat(f->path, &link) && S_ISLNK(link.st_mode))
		return because(why, -1, "%s: it is a link to what does not exist", f->path);
	if (errno == EINTR)
		return because(why, -1, "%s: a signal came while no process read it: start the reader first",
			       f->path);
	return because(why, -1, "%s: %s", f->path, strerror(errno));
}

int rpu_file_open(struct rashpa_pipeline *p, enum rpu_sink_index sink, struct rpu_file *f,
		  char *why)
{
	struct stat there;
	const int missing = stat(f->path, &there) ? errno : 0;

	if (!missing && may_write(p, f, &there, why))
		return -1;
	f->fd = open(f->path, O_WRONLY | O_CLOEXEC | (missing == ENOENT ? O_CREAT | O_EXCL : 0),
		     0666);
	if (f->fd < 0)
		return rpu_file_error(f, why);
	f->made = missing == ENOENT;
	p->file[sink] = f;
	if (fstat(f->fd, &there) || !S_ISREG(there.st_mode) || lock(f->fd))
		return 0;
	f->made = false;	/* it is the other one's */
	return because(why, -1, "%s: another pipeline writes it", f->path);
}

bool rpu_file_is_gone(const struct rpu_file *f)
{
	struct stat there;

	/* a pipe may have no name from the beginning */
	return !fstat(f->fd, &there) && S_ISREG(there.st_mode) && !there.st_nlink;
}

int rpu_file_close(struct rpu_file *f)
{
	struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
	struct stat ours, there;
	const int fd = f->fd;

	f->fd = -1;
	if (fd < 0)
		return 0;
	if (f->made && !fstat(fd, &ours) && !stat(f->path, &there) && same(&ours, &there))
		unlink(f->path);
	/* a child that was forked meanwhile has the same open file, and its lock */
	fcntl(fd, F_OFD_SETLK, &all);
	return close(fd);
}
