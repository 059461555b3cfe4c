// SPDX-License-Identifier: LGPL-2.1-or-later
#include "conformance/client.h"

#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS	5000
#define VECTORS		(sizeof(((struct client *)NULL)->event) / sizeof(int))
#define RECORD_MAX	16384	/* bytes of a file */

struct header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

/* ------------------------------------------------------------ program --- */

void client_spawn(struct client *c, const char *program)
{
	const char *more[3] = { NULL };
	const pid_t parent = getpid();
	char vectors[16];
	int i, n = 0;

	snprintf(vectors, sizeof(vectors), "%d", CLIENT_VECTORS);
	if (c->option)
		more[n++] = c->option;
	if (getenv("RASHPA_VERBOSE"))
		more[n++] = "--verbose";
	c->fd = -1;
	c->pid = fork();
	if (c->pid < 0)
		die("fork: %s", strerror(errno));
	if (!c->pid) {
		/* it ends with us */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(127);
		execl(program, program, "--socket", c->path, "--control", c->control,
		      "--memory", "16M", "--dtps", "4", "--vectors", vectors, more[0], more[1],
		      NULL);
		_exit(127);
	}
	for (i = 0; i < 500 && access(c->path, F_OK); i++)
		usleep(10000);
	if (access(c->path, F_OK))
		die("%s does not listen at %s after 5 s: start it by hand to see why", program, c->path);
}

int client_wait(pid_t pid)
{
	int status, i;

	for (i = 0; i < 500; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
		usleep(10000);
	}
	kill(pid, SIGKILL);
	return -1;
}

int client_end(struct client *c)
{
	const pid_t pid = c->pid;

	c->pid = 0;
	kill(pid, SIGTERM);
	return client_wait(pid);
}

int client_try(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		die("socket: %s", strerror(errno));
	strcpy(addr.sun_path, path);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

int client_open(const char *path)
{
	int i, fd;

	for (i = 0; i < 500; i++) {
		fd = client_try(path);
		if (fd >= 0)
			return fd;
		usleep(10000);
	}
	die("%s: %s", path, strerror(errno));
}

void client_connect(struct client *c)
{
	c->fd = client_open(c->path);
}

void client_disconnect(struct client *c)
{
	size_t i;

	close(c->fd);
	c->fd = -1;
	if (c->memory)
		munmap(c->memory, c->memory_size);
	if (c->doorbell)
		munmap((void *)c->doorbell, RFPGA_BAR_DOORBELL_SIZE);
	c->memory = NULL;
	c->doorbell = NULL;
	for (i = 0; i < VECTORS; i++) {
		if (c->event[i] > 0)
			close(c->event[i]);
		c->event[i] = -1;
	}
}

/* ------------------------------------------------------------- record --- */

/*
 * With RASHPA_RECORD=FOLDER, messages between two resets are recorded in a file there, in the form
 * that selftests/fuzz/vfu_fuzz.c reads. Reads of registers become pauses, because they wait for
 * the engine.
 */
enum { RECORD_MESSAGE = 0, RECORD_WAIT = 5 };

static void record_step(FILE *file, uint8_t what, uint8_t arg, const void *data, size_t size)
{
	const uint8_t head[] = { what, arg, (uint8_t)size, (uint8_t)(size >> 8) };

	fwrite(head, 1, sizeof(head), file);
	fwrite(data, 1, size, file);
}

static void record(const struct client *c, const void *data, size_t size, unsigned int n_fds)
{
	const char *folder = getenv("RASHPA_RECORD");
	static unsigned int number;
	static bool waits;
	const struct header *h = data;
	static FILE *file;
	bool read = size >= 28 && h->command == 9 && !((const uint8_t *)data)[24];
	char path[256];

	if (!folder || size < sizeof(*h) || (h->flags & 0xf) || n_fds > 31 || size > UINT16_MAX)
		return;
	if (h->command == 13 || !file) {
		if (file)
			fclose(file);
		snprintf(path, sizeof(path), "%s/%03u", folder, number++);
		file = fopen(path, "we");
		if (!file)
			die("%s: %s", path, strerror(errno));
		/* the client is known already; the board has a pin */
		fputc((number > 1 ? 1 : 0) |
		      (c->option && !strcmp(c->option, "--intx") ? 2 : 0), file);
	}
	if (ftell(file) + (long)size > RECORD_MAX)
		return;
	if (!read)
		record_step(file, RECORD_MESSAGE, (uint8_t)n_fds, data, size);
	else if (!waits)
		record_step(file, RECORD_WAIT, 20, data, 0);
	waits = read;
}

/* ----------------------------------------------------------- messages --- */

void client_send(struct client *c, const void *data, size_t size, const int *fds, unsigned int n)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(64 * sizeof(int))]; } control;
	struct iovec iov = { (void *)data, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		struct cmsghdr *h;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(h), fds, n * sizeof(int));
	}
	record(c, data, size, n);
	while (iov.iov_len) {
		ssize_t sent = sendmsg(c->fd, &msg, MSG_NOSIGNAL);

		if (sent < 0 && errno == EPIPE)
			return;		/* the next read fails the test */
		if (sent < 0)
			die("send: %s", strerror(errno));
		iov.iov_base = (uint8_t *)iov.iov_base + sent;
		iov.iov_len -= (size_t)sent;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
}

static int patience(const struct client *c)
{
	return c->patience_ms ? c->patience_ms : PATIENCE_MS;
}

static bool wait_readable(struct client *c, int timeout_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static bool read_all(struct client *c, void *data, size_t size)
{
	while (size) {
		ssize_t n;

		if (!wait_readable(c, patience(c)))
			die("half an answer in %d s: see what the simulation has logged",
			    patience(c) / 1000);
		n = recv(c->fd, data, size, 0);
		if (n <= 0)
			return false;
		data = (uint8_t *)data + n;
		size -= (size_t)n;
	}
	return true;
}

static bool read_header(struct client *c, struct header *h, int *fd)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec iov = { h, sizeof(*h) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *m;
	ssize_t n;

	*fd = -1;
	if (!wait_readable(c, patience(c)))
		die("no answer in %d s: see what the simulation has logged", patience(c) / 1000);
	n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return false;
	m = CMSG_FIRSTHDR(&msg);
	if (m && m->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(m), sizeof(*fd));
	return read_all(c, (uint8_t *)h + n, sizeof(*h) - (size_t)n);
}

/* A DMA message of the FPGA; its header was read. */
static void serve_dma(struct client *c, const struct header *request)
{
	static uint8_t data[2 << 20];
	uint64_t access[2], at;
	uint8_t *here;
	struct header h = *request;
	bool write = request->command == 12;

	if (request->command != 11 && request->command != 12)
		die("the server sent command %u", request->command);
	if (!read_all(c, access, sizeof(access)))
		die("it hung up in a DMA message");
	if (access[1] > 1 << 20 || request->size - 32 != (write ? access[1] : 0))
		die("DMA message of %llu bytes in %u", (unsigned long long)access[1],
		    request->size);
	if (write && !read_all(c, data, access[1]))
		die("it hung up in a DMA message");
	c->remote_messages++;
	if (c->remote_mute)
		return;
	at = access[0] - c->remote_addr;
	if (at <= c->remote_size && access[1] <= c->remote_size - at)
		here = c->remote + at;
	else
		here = c->reach ? c->reach(access[0], access[1], write) : NULL;
	h.flags = 1;
	h.size = 16;
	if (!here) {
		h.flags |= 0x20;
		h.error = ENODEV;
		client_send(c, &h, sizeof(h), NULL, 0);
		return;
	}
	if (write) {
		memcpy(here, data, access[1]);
		client_send(c, &h, sizeof(h), NULL, 0);
		return;
	}
	h.size = (uint32_t)(32 + access[1]);
	memcpy(data, &h, sizeof(h));
	memcpy(data + 16, access, sizeof(access));
	memcpy(data + 32, here, access[1]);
	client_send(c, data, h.size, NULL, 0);
}

bool client_receive(struct client *c, struct reply *r)
{
	struct header h;

	for (;;) {
		if (!read_header(c, &h, &r->fd))
			return false;
		if ((h.flags & 0xf) == 1)
			break;
		serve_dma(c, &h);
	}
	r->error = h.flags & 0x20 ? h.error : 0;
	r->size = h.size - sizeof(h);
	if (r->size > sizeof(r->data))
		die("an answer of %u bytes is longer than any requested one: see what the simulation has logged",
		    h.size);
	return read_all(c, r->data, r->size);
}

void client_serve(struct client *c, int timeout_ms)
{
	struct header h;
	int fd;

	while (wait_readable(c, timeout_ms)) {
		if (!read_header(c, &h, &fd))
			die("it hung up: see what the simulation has logged");
		if ((h.flags & 0xf) != 0)
			die("it answered a command that was not sent: see what the simulation has logged");
		serve_dma(c, &h);
	}
}

void client_call(struct client *c, uint16_t command, const void *data, size_t size,
		 const int *fds, unsigned int n, struct reply *r)
{
	uint8_t frame[4096 + 64];
	struct header h = {
		.id = ++c->id, .command = command, .size = (uint32_t)(sizeof(h) + size),
	};
	struct reply mine;

	if (h.size > sizeof(frame))
		die("command %u: %zu bytes do not fit into one frame of a test", command, size);
	memcpy(frame, &h, sizeof(h));
	if (size)
		memcpy(frame + sizeof(h), data, size);
	client_send(c, frame, h.size, fds, n);
	if (!client_receive(c, r ? r : &mine))
		die("it hung up at command %u: see what the simulation has logged", command);
	if (!r && mine.error)
		die("command %u: %s", command, strerror((int)mine.error));
}

/* --------------------------------------------------------- conveniences --- */

struct access {
	uint64_t offset;
	uint32_t region, count;
	uint32_t data[2];
};

uint64_t client_read(struct client *c, uint32_t region, uint32_t offset, uint32_t count)
{
	struct access a = { .offset = offset, .region = region, .count = count };
	struct reply r;
	uint64_t value = 0;

	client_call(c, 9, &a, 16, NULL, 0, &r);
	if (r.error || r.size != 16 + count)
		die("read of region %u: %u", region, r.error);
	memcpy(&value, r.data + 16, count);
	return value;
}

void client_write(struct client *c, uint32_t region, uint32_t offset, uint64_t value,
		  uint32_t count)
{
	struct access a = { .offset = offset, .region = region, .count = count };

	memcpy(a.data, &value, sizeof(value));
	client_call(c, 10, &a, 16 + count, NULL, 0, NULL);
}

void client_config_write(struct client *c, uint32_t offset, uint32_t value, uint32_t size)
{
	client_write(c, 7, offset, value, size);
}

uint32_t client_config_read(struct client *c, uint32_t offset)
{
	return (uint32_t)client_read(c, 7, offset, 4);
}

uint32_t client_map(struct client *c, uint64_t addr, uint64_t size, uint64_t offset,
		    uint32_t flags, int fd)
{
	struct { uint32_t argsz, flags; uint64_t offset, addr, size; } m = {
		sizeof(m), flags, offset, addr, size,
	};
	struct reply r;

	client_call(c, 2, &m, sizeof(m), &fd, fd >= 0, &r);
	return r.error;
}

void client_unmap(struct client *c, uint64_t addr, uint64_t size)
{
	struct { uint32_t argsz, flags; uint64_t addr, size; } u = { sizeof(u), 0, addr, size };

	client_call(c, 3, &u, sizeof(u), NULL, 0, NULL);
}

void client_reset(struct client *c)
{
	client_call(c, 13, NULL, 0, NULL, 0, NULL);
}

/* Check the size of the answer to a command; @what names the command. */
static void answered(const struct reply *r, void *data, size_t size, const char *what,
		     unsigned int index)
{
	if (r->error)
		die("%s %u: %s", what, index, strerror((int)r->error));
	if (r->size < size)
		die("%s %u: an answer of %zu bytes, and not of %zu", what, index, r->size, size);
	memcpy(data, r->data, size);
}

static void region_info(struct client *c, struct vfio_region_info *info, int *fd)
{
	struct reply r;

	info->argsz = sizeof(*info);
	client_call(c, 5, info, sizeof(*info), NULL, 0, &r);
	answered(&r, info, sizeof(*info), "region", info->index);
	*fd = r.fd;
}

uint64_t client_region_size(struct client *c, uint32_t region)
{
	struct vfio_region_info info = { .index = region };
	int fd;

	region_info(c, &info, &fd);
	if (fd >= 0)
		close(fd);
	return info.size;
}

/* Map a BAR; NULL: the board serves it by messages. */
static void *map_bar(struct client *c, uint32_t index, size_t *size)
{
	struct vfio_region_info info = { .index = index };
	struct stat file;
	void *p;
	int fd;

	region_info(c, &info, &fd);
	*size = info.size;
	if (fd < 0)
		return NULL;
	/* a mapping past the end of a file faults only when touched */
	if (fstat(fd, &file) || info.offset > (uint64_t)file.st_size ||
	    info.size > (uint64_t)file.st_size - info.offset)
		die("BAR %u is %llu bytes, its file has %llu from there on", index,
		    (unsigned long long)info.size,
		    (unsigned long long)file.st_size - info.offset);
	p = info.flags & VFIO_REGION_INFO_FLAG_MMAP ?
		mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)info.offset) :
		NULL;
	close(fd);
	if (p == MAP_FAILED)
		die("mmap of BAR %u: %s", index, strerror(errno));
	return p;
}

static uint32_t vectors(struct client *c)
{
	struct vfio_irq_info info = { .argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX };
	struct reply r;

	client_call(c, 7, &info, sizeof(info), NULL, 0, &r);
	answered(&r, &info, sizeof(info), "interrupts of kind", info.index);
	return info.count < VECTORS ? info.count : (uint32_t)VECTORS;
}

/* Send the first message: does the peer speak vfio-user? */
static void shake_hands(struct client *c, const void *version, size_t size)
{
	struct header h = {
		.id = ++c->id, .command = 1, .size = (uint32_t)(sizeof(h) + size),
	};
	static const char hint[] =
		"it has one client at a time: end the other one; or it is no vfio-user server";
	uint8_t frame[128];
	struct reply r;
	ssize_t n;

	memcpy(frame, &h, sizeof(h));
	memcpy(frame + sizeof(h), version, size);
	client_send(c, frame, h.size, NULL, 0);
	if (!wait_readable(c, PATIENCE_MS))
		fprintf(stderr, "%s: no answer yet: %s\n", c->path, hint);
	if (!wait_readable(c, patience(c)))
		die("no answer in %d s: %s", (PATIENCE_MS + patience(c)) / 1000, hint);
	n = recv(c->fd, frame, sizeof(h), MSG_PEEK);
	if (n <= 0)
		die("it hung up at the first message: it is no vfio-user server, or does not want this client: see what it has logged");
	if (n < 4 || memcmp(frame, &h, 4))
		die("the peer does not speak vfio-user: give the socket that QEMU would use, which is that of --socket, and not that of --control, of rashpa-fpga");
	if (!client_receive(c, &r))
		die("it hung up in its first answer");
	if (r.error)
		die("it refuses vfio-user 0.0: %s", strerror((int)r.error));
}

void client_setup_on(struct client *c)
{
	/* a server of lines answers a line end at once */
	static const char version[] = "\0\0\0\0{\"capabilities\":\n{\"max_msg_fds\":8}}";
	struct vfio_irq_set set = {
		.argsz = sizeof(set), .index = VFIO_PCI_MSIX_IRQ_INDEX,
		.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, .count = 1,
	};
	uint32_t count;
	size_t size;

	shake_hands(c, version, sizeof(version));
	c->doorbell = map_bar(c, RFPGA_BAR_DOORBELL, &size);
	if (size != RFPGA_BAR_DOORBELL_SIZE)
		die("BAR 2 is %zu bytes, not %u", size, RFPGA_BAR_DOORBELL_SIZE);
	c->memory = map_bar(c, RFPGA_BAR_MEMORY, &c->memory_size);
	count = vectors(c);
	for (set.start = 0; set.start < count; set.start++) {
		c->event[set.start] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		client_call(c, 8, &set, sizeof(set), &c->event[set.start], 1, NULL);
	}
	client_config_write(c, 4, 6, 2);
}

void client_setup(struct client *c)
{
	client_connect(c);
	client_setup_on(c);
}
