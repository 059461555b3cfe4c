// SPDX-License-Identifier: GPL-2.0-only
/* rashpactl event watch */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fpga.h"
#include "json-out.h"
#include "parse.h"
#include "rashpa.h"
#include "rashpactl.h"

#define VECTORS_MAX	63

struct watch {
	unsigned int number;
	uint32_t vector[VECTORS_MAX];
	unsigned int vectors;
	bool device, json;
	uint64_t count;		/* 0: for ever */
	double timeout;		/* seconds, 0: none */
};

static const struct argp_option watch_options[] = {
	{ "vector", 'v', "V", 0, "one more interrupt vector (default: all, and the device)", 0 },
	{ "device", 'd', NULL, 0, "state of the device", 0 },
	{ "count", 'c', "N", 0, "end after N events", 0 },
	{ "timeout", 't', "SECONDS", 0, "end with status 3 if no event comes for so long", 0 },
	{ "json", 'j', NULL, 0, "one JSON object per line", 0 },
	{}
};

static error_t parse_watch(int key, char *arg, struct argp_state *state)
{
	struct watch *w = state->input;

	switch (key) {
	case 'v':
		if (w->vectors == VECTORS_MAX || !parse_u32(arg, &w->vector[w->vectors++]))
			argp_error(state, "--vector: \"%s\" is not a vector, or there are more than %d",
				   arg, VECTORS_MAX);
		break;
	case 'd':
		w->device = true;
		break;
	case 'c':
		if (!parse_u64(arg, UINT64_MAX, &w->count))
			argp_error(state, "--count: \"%s\" is not a number", arg);
		break;
	case 't':
		if (!parse_real(arg, &w->timeout) || w->timeout > 1e6)
			argp_error(state, "--timeout: \"%s\" is not a number of seconds", arg);
		break;
	case 'j':
		w->json = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num || !parse_fpga(arg, &w->number))
			argp_error(state, "\"%s\" is not fpgaN", arg);
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "give fpgaN");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void print_event(const struct watch *w, const struct rashpa_event *e)
{
	const char *device = e->kind == RASHPA_SOURCE_DEVICE ? rashpa_device_event_name(e->value) : NULL;
	struct json_object *o;

	if (!w->json) {
		printf("%" PRIu64 ".%09" PRIu64 " %s ", (uint64_t)e->time_ns / 1000000000,
		       (uint64_t)e->time_ns % 1000000000, rashpa_source_name(e->kind));
		if (device)
			printf("%s", device);
		else
			printf("%" PRIu64, (uint64_t)e->value);
		printf(" sequence %" PRIu64, (uint64_t)e->sequence);
		if (e->lost)
			printf(" lost %" PRIu64, (uint64_t)e->lost);
		printf("\n");
		fflush(stdout);
		return;
	}
	o = json_object_new_object();
	put_u64(o, "time_ns", e->time_ns);
	put_text(o, "kind", rashpa_source_name(e->kind));
	put_int(o, "source", e->source);
	put_u64(o, "sequence", e->sequence);
	put_u64(o, "value", e->value);
	if (device)
		put_text(o, "event", device);
	put_u64(o, "lost", e->lost);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	fflush(stdout);
	json_object_put(o);
}

static int add_sources(const struct watch *w, const struct fpga *fpga, int channel)
{
	bool all = !w->vectors && !w->device;
	unsigned int n = all ? fpga->info.out_vectors : w->vectors;

	if (n > VECTORS_MAX)
		n = VECTORS_MAX;
	if ((w->device || all) && rashpa_source_add(channel, RASHPA_SOURCE_DEVICE, 0) < 0)
		return fail("fpga%u: %s", w->number, rashpa_reason());
	for (unsigned int i = 0; i < n; i++) {
		uint32_t vector = all ? i : w->vector[i];

		if (rashpa_source_add(channel, RASHPA_SOURCE_VECTOR, vector) < 0)
			return fail("fpga%u: vector %" PRIu32 ": %s", w->number, vector, rashpa_reason());
	}
	return 0;
}

static int watch(const struct watch *w, int channel)
{
	struct pollfd pollfd = { .fd = channel, .events = POLLIN };
	struct rashpa_event event[64];
	uint64_t printed = 0, last = now_ns(), idle;
	int ready;
	ssize_t n;

	while (!stop && (!w->count || printed < w->count)) {
		ready = poll(&pollfd, 1, w->timeout > 0 && w->timeout < 0.2 ? 20 : 200);
		idle = now_ns() - last;
		if (!ready && w->timeout > 0 && idle > w->timeout * 1e9) {
			say("fpga%u: no event for %g s", w->number, w->timeout);
			return EXIT_TIMEOUT;
		}
		if (ready <= 0)
			continue;
		n = read(channel, event, sizeof(event));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0 && errno == ENODEV)
			return fail("fpga%u: the function was removed", w->number);
		if (n < 0)
			return fail("fpga%u: event channel: %s", w->number, strerror(errno));
		for (size_t i = 0; i < n / sizeof(event[0]) && (!w->count || printed < w->count); i++) {
			print_event(w, &event[i]);
			printed++;
		}
		last = now_ns();
	}
	return 0;
}

int cmd_event_watch(int argc, char **argv)
{
	static const struct argp argp = {
		watch_options, parse_watch, "fpgaN", "Print the events of a function as they come.",
		NULL, NULL, NULL,
	};
	const struct sigaction action = { .sa_handler = on_signal };
	struct fpga fpga = FPGA_NONE;
	struct watch w = { .json = want_json };
	char why[WHY_SIZE];
	int channel, result;

	argp_parse(&argp, argc, argv, 0, NULL, &w);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (fpga_open(&fpga, w.number, why))
		return fail("%s", why);
	channel = rashpa_events(fpga.device, 0);
	if (channel < 0) {
		result = fail("fpga%u: %s", w.number, rashpa_reason());
	} else {
		fcntl(channel, F_SETFL, O_NONBLOCK);
		result = add_sources(&w, &fpga, channel);
		if (!result)
			result = watch(&w, channel);
		close(channel);
	}
	fpga_close(&fpga);
	return result;
}
