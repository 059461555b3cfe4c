// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The vfio-user server and its engine, fed with possible messages of a client. An input is a byte
 * of flags and a list of steps, each {what, arg, length (16 bits), bytes}. Messages of a real
 * client can be recorded in this form (RASHPA_RECORD, tools/conformance/client.c).
 *
 * Checked after each input, in addition to the sanitizers: bytes next to memory mapped for DMA are
 * unchanged, and nothing of the client is left.
 */
#include "board.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STEPS_MAX	400
#define KNOWN		1u	/* flag: version, memory, vectors, bus mastering are set up */
#define PIN		2u	/* flag: there is an interrupt pin, too */
#define FDS_MAX		20	/* more than the server takes */
#define ANSWER_MAX	(128u << 10)	/* most bytes that the engine requests in one message */

enum step {
	MESSAGE,	/* bytes are a message; its length is put right. arg: descriptors */
	RAW,		/* bytes as they are */
	SPLIT,		/* a message in two parts, the first one of arg bytes */
	CREDIT,		/* the doorbell of DTP arg: 32 bits */
	CONTROL,	/* a line of the control socket */
	WAIT,		/* serve until the engine is idle, at most arg * 5 us */
	POLICY,		/* arg: answers to DMA messages from now on */
	REGISTERS,	/* words {offset, value} for the registers of DTP arg, or the global ones */
	TRUNCATE,	/* the file of PLAIN memory, to arg * 4 KiB */
	STEPS,
};

enum policy { GOOD, ERROR, SHORT, MUTE, POLICIES };

enum memory {
	PLAIN,		/* eventfds for DEVICE_SET_IRQS, else memory without limits */
	GUARDED,	/* only [GUARD_FIRST, GUARD_LAST) of it is ever mapped */
	READ_ONLY,	/* never mapped for writing */
	SMALL, EVENT, PIPE, SOCKET, FOLDER, MEMORIES,
};

#define PLAIN_SIZE	(64u << 20)	/* as rashpa-fpga-selftest has, */
#define PLAIN_ADDR	0x100000000ull	/* and where */
#define GUARD_SIZE	0x10000u
#define GUARD_FIRST	0x4000u
#define GUARD_LAST	0x8000u
#define GUARD_BYTE	0xa5

struct header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

struct dma_map {
	struct header h;
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

static int memories[MEMORIES];
static uint8_t *guard, *read_only;
static int socket_pair[2];	/* ours, the server's */
static bool aligned;		/* the server is at the beginning of a message */
static _Atomic int policy;
static pthread_mutex_t send_lock = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------- client --- */

static bool send_all(const void *data, size_t size, const int *fds, unsigned int n)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))]; } control;
	struct iovec iov = { (void *)data, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t sent;

	if (!size)
		return true;
	if (n) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	pthread_mutex_lock(&send_lock);
	sent = sendmsg(socket_pair[0], &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	pthread_mutex_unlock(&send_lock);
	return sent == (ssize_t)size;
}

static bool read_all(void *data, size_t size)
{
	static uint8_t sink[4096];	/* never read */

	while (size) {
		size_t part = data || size < sizeof(sink) ? size : sizeof(sink);
		ssize_t n = recv(socket_pair[0], data ? data : sink, part, 0);

		if (n <= 0)
			return false;
		data = data ? (uint8_t *)data + n : NULL;
		size -= (size_t)n;
	}
	return true;
}

/* A DMA message of the engine, whose header was read. */
static bool answer(const struct header *request)
{
	static uint8_t frame[32 + ANSWER_MAX];
	struct header h = *request;
	uint64_t access[2];

	if (!read_all(access, sizeof(access)))
		return false;
	board_assert(access[1] && access[1] <= ANSWER_MAX);
	if (request->command == 12 && !read_all(NULL, access[1]))
		return false;
	h.flags = 1;
	h.size = sizeof(h);
	switch (policy) {
	case MUTE:
		return true;
	case ERROR:
		h.flags |= 0x20;
		h.error = ENXIO;
		break;
	case SHORT:
		h.size += sizeof(access);
		break;
	default:
		h.size += sizeof(access) + (request->command == 11 ? (uint32_t)access[1] : 0);
	}
	memcpy(frame, &h, sizeof(h));
	memcpy(frame + sizeof(h), access, sizeof(access));
	return send_all(frame, h.size, NULL, 0);
}

/* Takes what the server sends, as QEMU does: else the server would wait for it. */
static void *client_main(void *arg)
{
	struct header h;

	while (read_all(&h, sizeof(h))) {
		board_assert(h.size >= sizeof(h));
		if ((h.flags & 0xf) == 1) {
			if (!read_all(NULL, h.size - sizeof(h)))
				break;
			continue;
		}
		board_assert(h.command == 11 || h.command == 12);
		if (!answer(&h))
			break;
	}
	return arg;
}

/* ------------------------------------------------------------- server --- */

/* Serve what has arrived; false: the server would hang up. */
static bool serve(void)
{
	return vfu_receive(board_vfu) >= 0;
}

static bool serve_until_idle(unsigned int us)
{
	const struct timespec pause = { .tv_nsec = 10000 };
	uint64_t end = fpga_ticks() + us * 1000ull / RFPGA_TICK_NS;
	bool ok;

	do {
		ok = serve();
		if (!engine_busy(&board))
			break;
		nanosleep(&pause, NULL);
	} while (ok && fpga_ticks() < end);
	return ok;
}

/* Move a map of guarded memory into its window, whatever the input contains. */
static void keep_inside(struct dma_map *m, enum memory kind)
{
	m->offset = GUARD_FIRST + m->offset % (GUARD_LAST - GUARD_FIRST);
	if (!m->size || m->size > GUARD_LAST - m->offset)
		m->size = GUARD_LAST - m->offset;
	if (kind == READ_ONLY)
		m->flags &= ~HOST_WRITE;
}

static bool send_step(uint8_t what, uint8_t arg, uint8_t *bytes, size_t size)
{
	struct header *h = (struct header *)bytes;
	enum memory kind = arg >> 5;
	unsigned int n = what == MESSAGE ? arg & 31 : 0, i;
	int fds[FDS_MAX];

	if (size < sizeof(*h) || what == RAW) {
		aligned = false;
		return send_all(bytes, size, NULL, 0) && serve();
	}
	h->size = (uint32_t)size;
	if (kind == PLAIN && h->command == 8)
		kind = EVENT;
	if (!aligned && (kind == GUARDED || kind == READ_ONLY))
		kind = PLAIN;		/* it may end up with another message */
	if (n > FDS_MAX)
		n = FDS_MAX;
	for (i = 0; i < n; i++)
		fds[i] = memories[kind];
	if (n && (kind == GUARDED || kind == READ_ONLY)) {
		if (size < sizeof(struct dma_map))
			return true;
		keep_inside((struct dma_map *)bytes, kind);
	}
	if (what == SPLIT && arg < size)
		return send_all(bytes, arg, NULL, 0) && serve() &&
		       send_all(bytes + arg, size - arg, NULL, 0) && serve();
	return send_all(bytes, size, fds, n) && serve();
}

static bool write_registers(uint8_t dtp, const uint8_t *bytes, size_t size)
{
	struct {
		struct header h;
		uint64_t offset;
		uint32_t region, count, value;
	} __attribute__((packed)) m;
	uint32_t base = dtp < BOARD_DTPS ? RFPGA_DTP(dtp) : dtp & 1 ? 0 :
			dtp & 2 ? RFPGA_BOUNDS : RFPGA_TABLE;

	for (; size >= 6; bytes += 6, size -= 6) {
		uint16_t offset;

		memset(&m, 0, sizeof(m));
		memcpy(&offset, bytes, sizeof(offset));
		memcpy(&m.value, bytes + 2, sizeof(m.value));
		m.h.command = 10;
		m.h.size = sizeof(m);
		m.offset = base + (offset & (base == RFPGA_TABLE ? 0x7ffc : 0x1fc));
		m.count = sizeof(m.value);
		if (!send_all(&m, sizeof(m), NULL, 0) || !serve())
			return false;
	}
	return true;
}

static void ring(uint8_t dtp, const uint8_t *bytes, size_t size)
{
	uint32_t credit = 0;

	memcpy(&credit, bytes, size < sizeof(credit) ? size : sizeof(credit));
	__atomic_store_n((uint32_t *)(board.doorbell + dtp % BOARD_DTPS * RFPGA_DOORBELL_PAGE),
			 credit, __ATOMIC_RELEASE);
}

/*
 * A reset waits a second for an image that is "late", which one of 2^32 lines would take each time.
 * It is tried by rashpa-fpga-selftest.
 */
static void tell(const uint8_t *bytes, size_t size)
{
	char text[DEVICE_COMMAND_SIZE + 8] = "";

	memcpy(text, bytes, size < sizeof(text) - 1 ? size : sizeof(text) - 1);
	text[strcspn(text, "\n")] = '\0';	/* a line of the dictionary */
	if (!strstr(text, "late") && !fault_command(&board, text))
		misbehave(&board, text);
}

static bool run_step(uint8_t what, uint8_t arg, uint8_t *bytes, size_t size)
{
	switch (what) {
	case CREDIT:
		ring(arg, bytes, size);
		return true;
	case CONTROL:
		tell(bytes, size);
		return true;
	case WAIT:
		return serve_until_idle(arg * 5u);
	case POLICY:
		policy = arg % POLICIES;
		return true;
	case REGISTERS:
		return write_registers(arg, bytes, size);
	case TRUNCATE:
		return !ftruncate(memories[PLAIN], arg * 4096);
	default:
		return send_step(what, arg, bytes, size);
	}
}

/* The first messages of every client. */
static void introduce(void)
{
	static struct { struct header h; uint32_t version; } version = {
		.h = { .command = 1, .size = sizeof(version) },
	};
	static struct dma_map map = {
		.h = { .command = 2, .size = sizeof(map) }, .argsz = 32,
		.flags = HOST_READ | HOST_WRITE, .addr = PLAIN_ADDR, .size = PLAIN_SIZE,
	};
	static struct {
		struct header h;
		uint64_t offset;
		uint32_t region, count;
		uint16_t value;
	} __attribute__((packed)) master = {
		.h = { .command = 10, .size = sizeof(master) },
		.offset = 4, .region = 7, .count = 2, .value = 6,
	};
	static struct {
		struct header h;
		uint32_t argsz, flags, index, start, count;
	} vectors = {
		.h = { .command = 8, .size = sizeof(vectors) }, .argsz = 20,
		.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
	};
	const int event = memories[EVENT], events[BOARD_VECTORS] = { event, event, event, event };

	vectors.index = board.device.pin ? VFIO_PCI_INTX_IRQ_INDEX : VFIO_PCI_MSIX_IRQ_INDEX;
	vectors.count = board.device.pin ? 1 : BOARD_VECTORS;
	board_assert(send_all(&version, sizeof(version), NULL, 0) && serve() &&
		     send_all(&map, sizeof(map), &memories[PLAIN], 1) && serve() &&
		     send_all(&vectors, sizeof(vectors), events, vectors.count) && serve() &&
		     send_all(&master, sizeof(master), NULL, 0) && serve());
}

static void run_steps(const uint8_t *data, size_t size)
{
	static uint8_t bytes[UINT16_MAX + 8] __attribute__((aligned(8)));
	unsigned int i;
	uint16_t length;
	bool ok = true;

	if (size && *data++ & KNOWN)
		introduce();
	size -= !!size;
	for (i = 0; ok && size >= 4 && i < STEPS_MAX; i++) {
		memcpy(&length, data + 2, sizeof(length));
		if (length > size - 4)
			length = (uint16_t)(size - 4);
		memcpy(bytes, data + 4, length);
		ok = run_step(data[0] % STEPS, data[1], bytes, length);
		data += 4 + length;
		size -= 4u + length;
	}
	if (ok)
		serve_until_idle(100);
}

/* -------------------------------------------------------------- checks --- */

/* All bytes of [first, last) are as at the beginning. */
static bool untouched(const uint8_t *p, size_t first, size_t last)
{
	return p[first] == GUARD_BYTE && !memcmp(p + first, p + first + 1, last - first - 1);
}

static void check_guards(void)
{
	board_assert(untouched(read_only, 0, GUARD_SIZE));
	board_assert(untouched(guard, 0, GUARD_FIRST));
	board_assert(untouched(guard, GUARD_LAST, GUARD_SIZE));
}

static int memory_of(size_t size, uint8_t **shared)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	board_assert(fd >= 0 && !ftruncate(fd, (off_t)size));
	if (shared) {
		*shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		board_assert(*shared != MAP_FAILED);
		memset(*shared, GUARD_BYTE, size);
	}
	return fd;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fds[2];

	board_init();
	memories[PLAIN] = memory_of(PLAIN_SIZE, NULL);
	memories[GUARDED] = memory_of(GUARD_SIZE, &guard);
	memories[READ_ONLY] = memory_of(GUARD_SIZE, &read_only);
	memories[SMALL] = memory_of(100, NULL);
	memories[EVENT] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	board_assert(!pipe(fds));
	memories[PIPE] = fds[1];
	board_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	memories[SOCKET] = fds[0];
	memories[FOLDER] = open("/", O_RDONLY | O_DIRECTORY);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = board_begin(), room = 4 << 20;
	pthread_t client;

	board.device.pin = size && (*data & PIN);
	host_link(&board_host, true);	/* configuration space shows the pin */
	board_assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket_pair));
	setsockopt(socket_pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	board_assert(!ftruncate(memories[PLAIN], PLAIN_SIZE));
	policy = GOOD;
	aligned = true;
	board_assert(!pthread_create(&client, NULL, client_main, NULL));
	vfu_connect(board_vfu, socket_pair[1]);

	run_steps(data, size);

	vfu_disconnect(board_vfu);
	shutdown(socket_pair[0], SHUT_RDWR);
	pthread_join(client, NULL);
	close(socket_pair[0]);
	board_honest();
	board_assert(!engine_busy(&board) && !board_host.count && !board_host.backings &&
		     !board_host.master);
	board_assert(board_next_fd() == before);
	check_guards();
	return 0;
}
