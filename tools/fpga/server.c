// SPDX-License-Identifier: LGPL-2.1-or-later
/* The program of a device: options, sockets, start and end. */
#include "fpga/device.h"

#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/parse.h"
#include <rashpa-fpga.h>
#include "fpga/control.h"
#include "fpga/log.h"
#include "fpga/vfu.h"

#define MEMORY_MIN	4096ull
#define MEMORY_MAX	(1ull << 40)

#define EXIT_USAGE	2		/* as in all tools; 1: it cannot serve */

struct server {
	const char *socket, *control, *log;
	struct device_options *options;
	void *more;			/* the device's own options */
	int end;			/* eventfd; readable after a signal */
	struct host host;
	struct vfu *vfu;		/* while the server runs */
};

static struct server server;

/* ------------------------------------------------------------ options --- */

enum { OPT_VECTORS = 1024 };

static const struct argp_option option_list[] = {
	{ "socket", 's', "PATH", 0, "listen on this UNIX socket", 0 },
	{ "memory", 'm', "SIZE", 0, "on-board memory, a power of two; K, M, G and T are known", 0 },
	{ "dtps", 'd', "N", 0, "data transfer processes, 1 to 16", 0 },
	{ "vectors", OPT_VECTORS, "N", 0, "MSI-X vectors, 1 to 16", 0 },
	{ "entries", 'e', "N", 0, "entries of the address table, 1 to 1024", 0 },
	{ "control", 'c', "PATH", 0, "take commands for tests on this UNIX socket", 0 },
	{ "log", 'l', "FILE", 0, "append messages to FILE instead of standard error", 0 },
	{ "verbose", 'v', NULL, 0, "tell more", 0 },
	{ NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

uint32_t option_count(const char *text, uint32_t least, uint32_t most, const char *what,
		      const struct argp_state *state)
{
	uint32_t n = 0;

	if (!parse_u32(text, &n) || n < least || n > most)
		argp_error(state, "%s: %s is not a number from %u to %u", what, text, least,
			   most);
	return n;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	const unsigned int entries_max = RFPGA_TABLE_SIZE / RFPGA_ENTRY_STRIDE;
	struct server *s = state->input;
	struct device_options *o = s->options;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = s->more;
		return 0;
	case 's':
		s->socket = arg;
		return 0;
	case 'm':
		if (!parse_size(arg, &o->memory) || o->memory < MEMORY_MIN ||
		    o->memory > MEMORY_MAX || o->memory & (o->memory - 1))
			argp_error(state, "memory: %s is not a power of two from 4K to 1024G", arg);
		return 0;
	case 'd':
		o->dtps = option_count(arg, 1, RFPGA_DTPS_MAX, "dtps", state);
		return 0;
	case OPT_VECTORS:
		o->vectors = option_count(arg, 1, DEVICE_VECTORS_MAX, "vectors", state);
		return 0;
	case 'e':
		o->entries = option_count(arg, 1, entries_max, "entries", state);
		return 0;
	case 'c':
		s->control = arg;
		return 0;
	case 'l':
		s->log = arg;
		return 0;
	case 'v':
		log_verbose = true;
		return 0;
	case 'h':
		argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument %s", arg);
		return 0;
	case ARGP_KEY_END:
		if (!s->socket)
			argp_error(state, "--socket is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static sigset_t end_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	return set;
}

/* Seconds. The last user of a client's memory frees it; 16 GiB take more than 5 s. */
static unsigned int end_patience(const struct server *s)
{
	const uint64_t gib = s->host.mapped_most >> 30;

	return HOST_PATIENCE + (gib < 30 ? 2 * gib : 60);
}

/*
 * A file of the client on a file system such as FUSE can block other threads without limit. This
 * thread does not touch files of the client.
 */
static void *await_signal(void *arg)
{
	const struct server *s = arg;
	const sigset_t set = end_signals();
	int number;

	prctl(PR_SET_NAME, "signals");
	sigwait(&set, &number);
	eventfd_write(s->end, 1);
	sleep(end_patience(s));
	log_msg("a thread is blocked by the client: ending without it");
	_exit(EXIT_FAILURE);
}

static int listen_for_signals(struct server *s)
{
	pthread_t thread;
	int err;

	s->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->end < 0)
		return -errno;
	err = pthread_create(&thread, NULL, await_signal, s);
	if (err)
		close(s->end);
	else
		pthread_detach(thread);
	return -err;
}

static int complain(const char *what, int err)
{
	log_msg("%s: %s", what, strerror(-err));
	return EXIT_FAILURE;
}

struct server *server_open(int argc, char **argv, struct device_options *options,
			   const struct argp *more, void *input)
{
	const struct argp_child children[] = { { more, 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.options = option_list, .parser = parse_option, .children = children,
		.doc = "Serves an FPGA as a PCI device to QEMU's vfio-user-pci.",
	};
	const sigset_t set = end_signals();
	int err;

	argp_err_exit_status = EXIT_USAGE;
	argp_program_version = "rashpa-fpga " RASHPA_VERSION;
	server.options = options;
	server.more = input;
	argp_parse(&argp, argc, argv, 0, NULL, &server);
	if (server.log) {
		err = log_open(server.log);
		if (err)
			exit(complain(server.log, err));
	}
	signal(SIGPIPE, SIG_IGN);		/* the reader of our messages may have gone */
	pthread_sigmask(SIG_BLOCK, &set, NULL);	/* also in later threads */
	err = listen_for_signals(&server);
	if (!err)
		err = host_init(&server.host);
	if (err)
		exit(complain("cannot start", err));
	return &server;
}

struct host *server_host(struct server *s)
{
	return &s->host;
}

/* ------------------------------------------------------------ serving --- */

static void accept_client(struct server *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		vfu_connect(s->vfu, fd);
}

/* Serve one client at a time; others wait in the backlog. */
static void serve(struct server *s, struct device *device, int listener)
{
	for (;;) {
		bool connected = vfu_connected(s->vfu);
		struct pollfd p[] = {
			{ .fd = s->end, .events = POLLIN },
			{ .fd = control_fd(), .events = POLLIN },
			{ .fd = connected ? vfu_fd(s->vfu) : listener, .events = POLLIN },
		};

		if (poll(p, 3, control_pending() ? 0 : -1) < 0)
			continue;
		if (p[0].revents)
			return;
		if (p[2].revents && !connected)
			accept_client(s, listener);
		else if (p[2].revents && vfu_receive(s->vfu) < 0)
			vfu_disconnect(s->vfu);
		if (p[1].revents || control_pending())
			control_serve(device, s->vfu);
	}
}

static int listen_and_serve(struct server *s, struct device *device)
{
	int listener = listen_at(s->socket), err;

	if (listener < 0)
		return complain(s->socket, listener);
	err = s->control ? control_open(s->control) : 0;
	if (err) {
		unlink(s->socket);
		close(listener);
		return complain(s->control, err);
	}
	log_msg("listening at %s: %u DTPs, %u vectors, %llu bytes of memory", s->socket,
		s->options->dtps, device->vectors, (unsigned long long)s->options->memory);
	serve(s, device, listener);
	unlink(s->socket);
	if (s->control)
		control_close(s->control);
	close(listener);
	return EXIT_SUCCESS;
}

int server_run(struct server *s, struct device *device)
{
	int status;

	s->vfu = vfu_new(device, &s->host, s->end);
	if (!s->vfu)
		return complain("cannot start", -ENOMEM);
	status = listen_and_serve(s, device);
	vfu_free(s->vfu);
	host_destroy(&s->host);
	if (!status)
		log_msg("ended");
	return status;
}
