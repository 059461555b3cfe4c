// SPDX-License-Identifier: GPL-2.0-only
/* rashpa-fpga: the reference FPGA interface as a process that QEMU sees as a PCI device. */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fpga.h"
#include "log.h"

#define MEMORY_MIN	4096ull
#define MEMORY_MAX	(1ull << 40)

struct options {
	const char *socket;
	const char *control;
	const char *log;
	uint64_t memory;
	uint32_t dtps;
	uint32_t vectors;
	uint32_t entries;
	uint32_t features;
	uint32_t sources;
	uint32_t align;
	bool intx;
};

enum { OPT_INTX = 256, OPT_WITHOUT, OPT_LIVE, OPT_ALIGN };

static struct fpga fpga;

/* ------------------------------------------------------------ options --- */

static const struct argp_option option_list[] = {
	{ "socket", 's', "PATH", 0, "listen on this UNIX socket", 0 },
	{ "memory", 'm', "SIZE", 0,
	  "on-board memory, a power of two; K, M and G are known (64M)", 0 },
	{ "dtps", 'd', "N", 0, "data transfer processes, 1 to 16 (8)", 0 },
	{ "vectors", 'V', "N", 0, "MSI-X vectors, 1 to 16 (8)", 0 },
	{ "entries", 'e', "N", 0, "entries of the address table, 1 to 1024 (1024)", 0 },
	{ "without", OPT_WITHOUT, "FEATURE", 0,
	  "lack a feature: msix, lock, freerun, flush, group, drop or meta; may be given "
	  "several times", 0 },
	{ "live", OPT_LIVE, "N", 0, "live sources, 0 to 4 (1)", 0 },
	{ "align", OPT_ALIGN, "BYTES", 0,
	  "have offsets in memory be multiples of BYTES, a power of two up to 4096 (1)", 0 },
	{ "intx", OPT_INTX, NULL, 0,
	  "have an interrupt pin as well, for drivers without MSI-X", 0 },
	{ "control", 'c', "PATH", 0, "take commands for tests on this UNIX socket", 0 },
	{ "log", 'l', "FILE", 0, "append messages to FILE instead of standard error", 0 },
	{ "verbose", 'v', NULL, 0, "tell more", 0 },
	{ 0 },
};

static bool parse_size(const char *text, uint64_t *size)
{
	static const char units[] = "KMG";
	const char *unit;
	int shift;
	char *end;

	errno = 0;
	*size = strtoull(text, &end, 0);
	if (errno || end == text || *text == '-')
		return false;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return false;
		shift = 10 * (int)(unit - units + 1);
		if (*size > MEMORY_MAX >> shift)
			return false;
		*size <<= shift;
	}
	return *size >= MEMORY_MIN && *size <= MEMORY_MAX && !(*size & (*size - 1));
}

static uint32_t parse_count(const char *text, uint32_t least, uint32_t most, const char *what,
			    const struct argp_state *state)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (errno || end == text || *end || n < least || n > most)
		argp_error(state, "%s: %s is not a number from %u to %u", what, text, least,
			   most);
	return (uint32_t)n;
}

static uint32_t parse_feature(const char *text, const struct argp_state *state)
{
	static const struct { const char *name; uint32_t bit; } features[] = {
		{ "msix", RFPGA_FEATURE_MSIX }, { "lock", RFPGA_FEATURE_LOCK },
		{ "freerun", RFPGA_FEATURE_FREERUN }, { "flush", RFPGA_FEATURE_FLUSH },
		{ "group", RFPGA_FEATURE_GROUP }, { "drop", RFPGA_FEATURE_DROP },
		{ "meta", RFPGA_FEATURE_META },
	};
	size_t i;

	for (i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (!strcmp(text, features[i].name))
			return features[i].bit;
	argp_error(state, "without: %s is no feature", text);
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 's':
		o->socket = arg;
		return 0;
	case 'm':
		if (!parse_size(arg, &o->memory))
			argp_error(state, "memory: %s is not a power of two from 4K to 1024G", arg);
		return 0;
	case 'd':
		o->dtps = parse_count(arg, 1, RFPGA_DTPS_MAX, "dtps", state);
		return 0;
	case 'V':
		o->vectors = parse_count(arg, 1, FPGA_VECTORS_MAX, "vectors", state);
		return 0;
	case 'e':
		o->entries = parse_count(arg, 1, BUS_ENTRIES_MAX, "entries", state);
		return 0;
	case OPT_WITHOUT:
		o->features &= ~parse_feature(arg, state);
		return 0;
	case OPT_LIVE:
		o->sources = parse_count(arg, 0, FPGA_SOURCES_MAX, "live", state);
		return 0;
	case OPT_ALIGN:
		o->align = parse_count(arg, 1, 4096, "align", state);
		if (o->align & (o->align - 1))
			argp_error(state, "align: %s is no power of two", arg);
		return 0;
	case OPT_INTX:
		o->intx = true;
		return 0;
	case 'c':
		o->control = arg;
		return 0;
	case 'l':
		o->log = arg;
		return 0;
	case 'v':
		log_verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is %s?", arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->socket)
			argp_error(state, "--socket is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse_option,
	.doc = "A software FPGA: serves the reference FPGA interface of rashpa as a PCI "
	       "device to QEMU's vfio-user-pci.",
};

/* ------------------------------------------------------------- socket --- */

/*
 * Somebody who died left the socket there: it may go if nobody answers behind it. A file that
 * is no socket is refused as well, and one whose queue is full would have us wait.
 */
static bool is_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	bool stale = false;
	int fd;

	if (lstat(addr->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		stale = errno == ECONNREFUSED;
	close(fd);
	return stale;
}

int listen_at(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	if (err == -EADDRINUSE && is_stale(&addr)) {
		unlink(path);
		err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	}
	if (!err && listen(fd, 4))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int listen_for_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void accept_client(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		vfu_connect(fpga.vfu, fd);
}

/* One client at a time; the others wait in the backlog until it has gone. */
static void serve(int listener, int signals)
{
	for (;;) {
		bool connected = vfu_connected(fpga.vfu);
		struct pollfd p[] = {
			{ .fd = signals, .events = POLLIN },
			{ .fd = control_fd(), .events = POLLIN },
			{ .fd = connected ? vfu_fd(fpga.vfu) : listener, .events = POLLIN },
		};

		if (poll(p, 3, control_pending() ? 0 : -1) < 0)
			continue;
		if (p[0].revents)
			return;
		if (p[2].revents && !connected)
			accept_client(listener);
		else if (p[2].revents && vfu_receive(fpga.vfu) < 0)
			vfu_disconnect(fpga.vfu);
		if (p[1].revents || control_pending())
			control_serve(&fpga);
	}
}

int main(int argc, char **argv)
{
	struct options options = {
		.memory = 64ull << 20, .dtps = 8, .vectors = 8, .entries = BUS_ENTRIES_MAX,
		.features = FPGA_FEATURES, .sources = 1, .align = 1,
	};
	int listener, signals, err;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (options.log) {
		err = log_open(options.log);
		if (err) {
			log_msg("%s: %s", options.log, strerror(-err));
			return EXIT_FAILURE;
		}
	}
	signal(SIGPIPE, SIG_IGN);		/* nobody may read our messages any more */
	signals = listen_for_signals();		/* before there are threads */
	fpga.memory_size = options.memory;
	fpga.dtps = options.dtps;
	fpga.vectors = options.vectors;
	fpga.entries = options.entries;
	fpga.features = options.features;
	fpga.sources = options.sources;
	fpga.align = (uint32_t)__builtin_ctz(options.align);
	fpga.intx = options.intx;
	err = fpga_init(&fpga);
	if (err) {
		log_msg("cannot start: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	listener = listen_at(options.socket);
	if (listener < 0) {
		log_msg("%s: %s", options.socket, strerror(-listener));
		fpga_destroy(&fpga);
		return EXIT_FAILURE;
	}
	err = options.control ? control_open(options.control) : 0;
	if (err) {
		log_msg("%s: %s", options.control, strerror(-err));
		unlink(options.socket);
		fpga_destroy(&fpga);
		return EXIT_FAILURE;
	}
	log_msg("listening at %s: %u DTPs, %u vectors, %llu bytes of memory", options.socket,
		fpga.dtps, fpga.vectors, (unsigned long long)fpga.memory_size);
	serve(listener, signals);
	unlink(options.socket);
	if (options.control)
		control_close(options.control);
	close(listener);
	close(signals);
	fpga_destroy(&fpga);
	log_msg("ended");
	return EXIT_SUCCESS;
}
