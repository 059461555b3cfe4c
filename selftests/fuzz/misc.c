// SPDX-License-Identifier: LGPL-2.1-or-later
/* Other system calls on the objects, processes that come and go, the administrator. */
#include <linux/dma-buf.h>
#include <poll.h>
#include <signal.h>

#include "fuzz.h"

#define PCI	"/sys/bus/pci/devices/"

/*
 * Linux's own udmabuf keeps its pages mapped for the first requested direction and syncs them in
 * any other. The DMA API's checks report that, rightly, but it is not our bug. A user without
 * privileges cannot read the exporter; then every buffer counts as one of udmabuf.
 */
static bool is_udmabuf(int fd)
{
	char text[2048];

	return !read_fdinfo(fd, text, sizeof(text)) || strstr(text, "udmabuf");
}

void check_udmabuf(void)
{
	int fd = foreign_dmabuf(64 * KIB);

	if (fd >= 0 && !is_udmabuf(fd))
		tap_bail("a udmabuf is not known from its fdinfo");
	close(fd);
}

static void sync_dmabuf(struct thread *t, int fd)
{
	struct rng *r = &t->rng;
	struct dma_buf_sync sync = { .flags = one_in(r, 8) ? rng_next(r) : below(r, 8) };
	/*
	 * Use a duplicate, with a number that no other thread closes by mistake: else another file
	 * could have the number at the time of the call.
	 */
	int own = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD);

	if (own < 0)
		return;
	if (!is_udmabuf(own))
		ioctl(own, DMA_BUF_IOCTL_SYNC, &sync);
	close(own);
}

void step_file(struct thread *t)
{
	struct rng *r = &t->rng;
	int fd = pool_fd(t, PICK(r, K_CHANNEL, K_CHANNEL, K_MAP, K_MAP, K_BUFFER, K_MEMORY, K_FPGA,
				 K_EVENTFD, K_NODE, K_WINDOW));
	char data[512], text[2048];
	size_t size = (size_t)PICK(r, 0, 1, 23, 24, 40, 41, 400, 512);
	struct pollfd p = { .fd = fd, .events = (short)below(r, 65536) };
	uint32_t what = below(r, 8);

	note(t, "file %u fd %d", what, fd);
	switch (what) {
	case 0:
	case 1:
		if (read(fd, one_in(r, 16) ? t->arg_ro : data, size) > (ssize_t)size)
			finding(t, "read of more than there is room for");
		break;
	case 2:
		/* an eventfd would block; a name for /dev/kmsg is not in the pool */
		if (write(fd, data, one_in(r, 2) ? 8 : size) < 0)
			break;
		break;
	case 3:
		poll(&p, 1, (int)below(r, 3));
		break;
	case 4:
		lseek(fd, (off_t)odd_number(r), (int)below(r, 6));
		break;
	case 5:
		fcntl(fd, F_SETFL, one_in(r, 2) ? O_NONBLOCK : O_ASYNC | O_NONBLOCK);
		break;
	case 6:
		read_fdinfo(fd, text, sizeof(text));
		break;
	default:
		if (ftruncate(fd, PAGE) || pread(fd, data, size, 0) < 0)
			break;
	}
}

void step_dmabuf(struct thread *t)
{
	struct rng *r = &t->rng;
	int fd = pool_fd(t, one_in(r, 3) ? K_WINDOW : K_BUFFER);
	struct dma_buf_export_sync_file file = { .flags = below(r, 4), .fd = -1 };
	char name[40] = "fuzz";

	note(t, "dma-buf fd %d", fd);
	switch (below(r, 4)) {
	case 0:
	case 1:
		sync_dmabuf(t, fd);
		break;
	case 2:
		if (!ioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &file))
			pool_put(t, file.fd, K_OTHER);
		break;
	default:
		ioctl(fd, DMA_BUF_SET_NAME, name);
	}
}

/* A child with all fds and mappings; it ends by exit, by exec, or by a signal. */
void step_fork(struct thread *t)
{
	uint32_t steps = below(&t->rng, 8), end = below(&t->rng, 4), i;
	int patience = 5, status;
	pid_t pid;

	note(t, "fork, %u steps, end %u", steps, end);
	pid = fork();
	if (pid < 0)
		return;
	if (!pid) {
		for (i = 0; i < steps; i++)
			step(t);
		if (end == 0)
			execl("/bin/true", "true", NULL);
		if (end == 1)
			raise(SIGKILL);
		_exit(0);
	}
	/* the timer of the thread interrupts it; a child may wait for an event for ever */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		if (!patience--)
			kill(pid, SIGKILL);
}

/* --------------------------------------------------------------- sysfs ---- */

static void write_device(struct thread *t, const struct fpga *f, const char *file,
			 const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), PCI "%s/%s", f->bdf, file);
	note(t, "%s %s", file, text);
	write_text(path, text);
}

static void read_device(struct thread *t, const struct fpga *f)
{
	static const char * const files[] = {
		"config", "resource", "uevent", "driver_override", "msi_irqs", "power/runtime_status",
		"reset_method",
	};
	char path[96], text[4096];

	snprintf(path, sizeof(path), PCI "%s/%s", f->bdf,
		 files[below(&t->rng, ARRAY_SIZE(files))]);
	note(t, "read %s", path);
	read_text(path, text, sizeof(text));
}

/* The last one takes a word. */
static const char * const parameters[] = {
	"limit_mib", "user_limit_mib", "poll_budget", "p2p_bridge",
};

static void set_parameter(struct thread *t)
{
	static const char * const words[] = { "allow", "allow", "auto", "deny", "" };
	uint32_t i = below(&t->rng, ARRAY_SIZE(parameters)), value = 1 + below(&t->rng, 96);
	char path[64], text[24];

	snprintf(path, sizeof(path), PARAMETERS "%s", parameters[i]);
	if (i + 1 == ARRAY_SIZE(parameters))
		snprintf(text, sizeof(text), "%s", words[value % ARRAY_SIZE(words)]);
	else
		snprintf(text, sizeof(text), "%u", value);
	note(t, "%s = %s", parameters[i], text);
	write_text(path, text);
}

void step_sysfs(struct thread *t)
{
	const struct fpga *f;

	if (one_in(&t->rng, 4) || !run.boards) {
		set_parameter(t);
		return;
	}
	f = &run.board[below(&t->rng, run.boards)];
	switch (below(&t->rng, 8)) {
	case 0:
	case 1:
		note(t, "unbind %s", f->bdf);
		fpga_unbind(f);
		if (one_in(&t->rng, 2))
			break;
		__attribute__((fallthrough));
	case 2:
	case 3:
	case 4:
		note(t, "bind %s", f->bdf);
		fpga_bind(f);
		break;
	case 5:
		write_device(t, f, "reset", "1");
		break;
	case 6:
		if (!one_in(&t->rng, 4))
			break;
		write_device(t, f, "remove", "1");
		write_text("/sys/bus/pci/rescan", "1");
		break;
	default:
		read_device(t, f);
	}
}
