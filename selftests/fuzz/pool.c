// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Live objects. Threads share them without a lock: as in real programs, an fd may be closed, or
 * become another file's, while another thread uses it.
 */
#include <dirent.h>
#include <sys/eventfd.h>

#include "fuzz.h"

static struct {
	_Atomic int fd;
	_Atomic int kind;
} slot[SLOTS];

void pool_init(void)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		slot[i].fd = -1;
}

enum kind pool_kind(int fd)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (slot[i].fd == fd)
			return slot[i].kind;
	return K_NONE;
}

int pool_fd(struct thread *t, enum kind kind)
{
	uint32_t first = below(&t->rng, SLOTS), how = below(&t->rng, 64), i;

	if (how == 0)
		return (int)PICK(&t->rng, -1, -2, 1000, INT32_MAX, INT32_MIN);
	if (how < 4)
		return slot[first].fd;
	for (i = 0; i < SLOTS; i++)
		if (slot[(first + i) % SLOTS].kind == (int)kind &&
		    slot[(first + i) % SLOTS].fd >= 0)
			return slot[(first + i) % SLOTS].fd;
	return slot[first].fd;
}

void pool_put(struct thread *t, int fd, enum kind kind)
{
	uint32_t i = below(&t->rng, SLOTS), tries;
	int old;

	if (fd < 0)
		return;
	for (tries = 0; slot[i].fd >= 0 && tries < 4; tries++)
		i = (i + 1) % SLOTS;
	old = atomic_exchange(&slot[i].fd, fd);
	slot[i].kind = kind;
	if (old >= 0)
		close(old);
}

void pool_drop(struct thread *t)
{
	uint32_t i = below(&t->rng, SLOTS);
	int old = atomic_exchange(&slot[i].fd, -1);

	if (old >= 0)
		close(old);
}

void pool_drop_all(void)
{
	int i, old;

	for (i = 0; i < SLOTS; i++) {
		old = atomic_exchange(&slot[i].fd, -1);
		if (old >= 0)
			close(old);
	}
}

/* Path of one of the boards that are bound now; each bind gives it another number. */
void fpga_path(struct rng *r, char *path, size_t size)
{
	char names[8][24];
	struct dirent *entry;
	DIR *dir = opendir("/dev/rashpa");
	uint32_t which = below(r, 840), n = 0;

	while (dir && n < ARRAY_SIZE(names) && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "fpga", 4))
			snprintf(names[n++], sizeof(names[0]), "%.20s", entry->d_name);
	if (dir)
		closedir(dir);
	snprintf(path, size, "/dev/rashpa/%s", n ? names[which % n] : "fpga0");
}

static void open_node(struct thread *t, enum kind kind)
{
	int flags = (int)PICK(&t->rng, O_RDWR, O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY,
			      O_RDWR | O_EXCL, O_RDWR | O_NONBLOCK, O_ACCMODE);
	char path[96] = "/dev/rashpa/memory", name[RASHPA_NAME_SIZE + 1] = "";

	if (kind == K_FPGA) {
		fpga_path(&t->rng, path, sizeof(path));
	} else if (kind == K_NODE) {
		fill_name(&t->rng, name);
		snprintf(path, sizeof(path), "/dev/rashpa/buffer/%s", name);
		if (strchr(name, '/') || name[0] == '.')
			return;
	}
	note(t, "open %.40s %#x", path, flags);
	pool_put(t, open(path, flags | O_CLOEXEC), kind);
}

void step_open(struct thread *t)
{
	enum kind kind = PICK(&t->rng, K_MEMORY, K_FPGA, K_FPGA, K_NODE, K_EVENTFD, K_OTHER);

	switch (kind) {
	case K_EVENTFD:
		note(t, "eventfd");
		pool_put(t, eventfd(0, EFD_CLOEXEC | (one_in(&t->rng, 2) ? EFD_NONBLOCK : 0) |
				    (one_in(&t->rng, 4) ? EFD_SEMAPHORE : 0)), kind);
		break;
	case K_OTHER:
		note(t, "another file");
		if (one_in(&t->rng, 4))
			pool_put(t, foreign_dmabuf(64 * KIB), K_BUFFER);
		else if (one_in(&t->rng, 2))
			pool_put(t, open("/dev/null", O_RDWR | O_CLOEXEC), kind);
		else
			pool_put(t, memfd_create("fuzz", MFD_CLOEXEC), kind);
		break;
	default:
		open_node(t, kind);
	}
}

void step_close(struct thread *t)
{
	note(t, "close");
	if (one_in(&t->rng, 400))
		pool_drop_all();
	else
		pool_drop(t);
}

void step_dup(struct thread *t)
{
	int fd = pool_fd(t, 1 + below(&t->rng, KINDS - 1));

	note(t, "dup %d", fd);
	if (fd >= 0)
		pool_put(t, fcntl(fd, F_DUPFD_CLOEXEC, 0), pool_kind(fd));
}
