// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl event watch, event stat */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"
#include "rashpactl/listen.h"
#include "common/options.h"
#include "rashpactl/rashpactl.h"
#include "common/stop.h"

enum { OPT_TIME = 256 };

struct watch {
	struct listen listen;
	uint64_t count;		/* 0: for ever */
	double timeout;		/* seconds, 0: none */
	double time;		/* seconds, of stat */
	volatile bool *stop;
};

static const struct option_value values[] = {
	{ 'c', VALUE_U64, "--count", offsetof(struct watch, count), 0, UINT64_MAX },
	{ 't', VALUE_REAL, "--timeout", offsetof(struct watch, timeout), 0, 1e6 },
	{ OPT_TIME, VALUE_REAL, "--time", offsetof(struct watch, time), 0, 1e6 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct watch *w = state->input;

	if (key != ARGP_KEY_INIT)
		return option_set(values, key, arg, state);
	state->child_inputs[0] = &w->listen;
	return 0;
}

static const struct argp_child listen_child[] = { { .argp = &listen_argp }, {} };

/* --- one record --- */

/* Name of a value; NULL: it is a number. */
static const char *event_name(const struct rashpa_event *e)
{
	if (e->kind == RASHPA_SOURCE_DEVICE)
		return rashpa_device_event_name(e->value);
	if (e->kind == RASHPA_SOURCE_MAP)
		return rashpa_map_state_name((uint32_t)e->value);
	return NULL;
}

static void print_text(const struct rashpa_event *e, const char *label)
{
	const char *name = event_name(e);

	printf("%" PRIu64 ".%09" PRIu64 " ", (uint64_t)e->time_ns / 1000000000,
	       (uint64_t)e->time_ns % 1000000000);
	switch (e->kind) {
	case RASHPA_SOURCE_VECTOR:
		printf("%s", label);
		break;
	case RASHPA_SOURCE_MAP:
		printf("map %" PRIu64 " %s", (uint64_t)e->value >> 32, name);
		break;
	case RASHPA_SOURCE_OVERRUN:
	case RASHPA_SOURCE_FULL:
		/* the sequence is the number */
		printf("%s of %s at %" PRIu64 ": %" PRIu64, rashpa_source_name(e->kind), label,
		       (uint64_t)e->value, (uint64_t)e->sequence);
		break;
	default:
		if (name)
			printf("%s %s", label, name);
		else
			printf("%s: %" PRIu64, label, (uint64_t)e->value);
	}
	if (e->kind != RASHPA_SOURCE_OVERRUN && e->kind != RASHPA_SOURCE_FULL)
		printf(" sequence %" PRIu64, (uint64_t)e->sequence);
	if (e->lost)
		printf(" records lost %" PRIu64, (uint64_t)e->lost);
	printf("\n");
}

static int print_json(const struct rashpa_event *e, const struct source *s,
		       const struct listen *l)
{
	struct json_object *o = json_object_new_object();

	put_u64(o, "time_ns", e->time_ns);
	put_text(o, "kind", rashpa_source_name(e->kind));
	put_int(o, "source", e->source);
	put_text(o, "label", s ? s->label : NULL);
	if (s && s->fpga != UINT32_MAX)
		put_int(o, "fpga", s->fpga);
	else if (!l->memory)
		put_int(o, "fpga", l->number);
	put_u64(o, "sequence", e->sequence);
	put_u64(o, "value", e->value);
	if (event_name(e))
		put_text(o, "event", event_name(e));
	if (e->kind == RASHPA_SOURCE_MAP)
		put_int(o, "map", e->value >> 32);
	put_u64(o, "records_lost", e->lost);
	return json_line(o);
}

static int print_event(const struct watch *w, const struct rashpa_event *e)
{
	const struct source *s = listen_source(&w->listen, e->source);

	if (!command_json)
		print_text(e, s ? s->label : "?");
	if (command_json ? print_json(e, s, &w->listen) : flush_output())
		return EXIT_FAILED;
	/* We are the consumer: a printed event is done. */
	if (e->kind == RASHPA_SOURCE_GROUP)
		rashpa_channel_ack(w->listen.channel, e->source, e->value);
	return 0;
}

/* Taken events are done: sources at rest may report what happened meanwhile. */
static void arm_all(const struct listen *l)
{
	for (unsigned int i = 0; i < l->sources; i++)
		if (l->source[i].add.head.flags & RASHPA_SOURCE_ONE_SHOT)
			rashpa_channel_arm(l->channel, l->source[i].id);
}

/* Read available records. Returns their number, 0, or -1 after a message. */
static ssize_t take(const struct listen *l, struct rashpa_event *event, size_t room)
{
	ssize_t n = read(l->channel, event, room * sizeof(*event));

	if (n >= 0)
		return n / sizeof(*event);
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	if (errno == ENODEV)
		say("%s: the function was removed", l->name);
	else
		say("%s: event channel: %s", l->name, strerror(errno));
	return -1;
}

/* --- watch --- */

static const struct argp_option watch_options[] = {
	{ "count", 'c', "N", 0, "end after N events", 0 },
	{ "timeout", 't', "SECONDS", 0, "end with status 3 after SECONDS without an event", 0 },
	OPTION_JSON,
	{}
};

static int watch(const struct watch *w)
{
	struct pollfd pollfd = { .fd = w->listen.channel, .events = POLLIN };
	struct rashpa_event event[64];
	uint64_t printed = 0, end = UINT64_MAX;
	ssize_t n;

	while (!*w->stop && (!w->count || printed < w->count)) {
		if (w->timeout > 0)
			end = now_ns() + w->timeout * 1e9;
		if (stop_poll(&pollfd, 1, end) <= 0) {
			if (*w->stop || now_ns() < end)
				continue;
			say("%s: no event for %g s", w->listen.name, w->timeout);
			return EXIT_TIMEOUT;
		}
		n = take(&w->listen, event, sizeof(event) / sizeof(event[0]));
		if (n < 0)
			return EXIT_FAILED;
		for (ssize_t i = 0; i < n && (!w->count || printed < w->count); i++, printed++) {
			if (print_event(w, &event[i]))
				return EXIT_FAILED;
		}
		arm_all(&w->listen);
	}
	return 0;
}

int cmd_event_watch(int argc, char **argv)
{
	static const struct argp argp = { .options = watch_options, .parser = parse, .children = listen_child };
	static struct watch w = { .listen = LISTEN_NONE };
	int result;

	command_parse(&argp, argc, argv, &w);
	w.stop = stop_on_signals();
	result = listen_open(&w.listen);
	if (!result)
		result = watch(&w);
	listen_close(&w.listen);
	return result;
}

/* --- stat --- */

static const struct argp_option stat_options[] = {
	{ "time", OPT_TIME, "SECONDS", 0, "listen for SECONDS (default: 1)", 0 },
	OPTION_JSON,
	{}
};

/* Take the records before the queue overflows, and acknowledge groups. */
static int collect(const struct watch *w)
{
	struct pollfd pollfd = { .fd = w->listen.channel, .events = POLLIN };
	const uint64_t end = now_ns() + w->time * 1e9;
	struct rashpa_event event[256];
	ssize_t n;

	while (!*w->stop && now_ns() < end) {
		if (stop_poll(&pollfd, 1, end) <= 0)
			continue;
		n = take(&w->listen, event, sizeof(event) / sizeof(event[0]));
		if (n < 0)
			return EXIT_FAILED;
		for (ssize_t i = 0; i < n; i++) {
			if (event[i].kind == RASHPA_SOURCE_GROUP)
				rashpa_channel_ack(w->listen.channel, event[i].source,
						   event[i].value);
		}
	}
	return 0;
}

struct source_stat {
	const struct source *source;
	struct rashpa_source_info info;
	struct rashpa_group_info group;
	struct rashpa_member_info member[RASHPA_MEMBERS_MAX];
	uint64_t most;		/* position of the first of them */
};

static int ask(const struct watch *w, const struct source *s, struct source_stat *stat)
{
	stat->source = s;
	stat->most = 0;
	stat->info = (struct rashpa_source_info) { .id = s->id };
	if (rashpa_source_get_info(w->listen.channel, &stat->info))
		return fail("%s: %s", s->label, rashpa_reason());
	if (!s->members)
		return 0;
	stat->group = (struct rashpa_group_info) {
		.id = s->id, .members = (uintptr_t)stat->member, .n_members = RASHPA_MEMBERS_MAX,
		.member_size = sizeof(stat->member[0]),
	};
	if (rashpa_group_get_info(w->listen.channel, &stat->group))
		return fail("%s: %s", s->label, rashpa_reason());
	for (uint32_t k = 0; k < s->members; k++) {
		if (stat->member[k].position > stat->most)
			stat->most = stat->member[k].position;
	}
	return 0;
}

static const char *label_of(const struct watch *w, uint32_t id)
{
	const struct source *s = listen_source(&w->listen, id);

	return s ? s->label : "?";
}

static void stat_text(const struct watch *w, const struct source_stat *stat, double time)
{
	const struct rashpa_source_info *i = &stat->info;
	const struct rashpa_group_info *g = &stat->group;
	uint32_t members = stat->source->members;

	printf("%-40s %10" PRIu64 " events %10.1f/s  records lost %" PRIu64 "  value %" PRIu64 "\n",
	       stat->source->label, (uint64_t)i->out_events, i->out_events / time,
	       (uint64_t)i->out_lost, (uint64_t)i->out_value);
	if (stat->source->add.head.flags & RASHPA_SOURCE_POLL)
		printf("  looked at %" PRIu64 " times, every %.1f us, %.2f %% of a CPU\n",
		       (uint64_t)i->out_looks, i->out_period_ns / 1e3,
		       i->out_since_ns ? 100.0 * i->out_look_ns / i->out_since_ns : 0);
	if (!members)
		return;
	printf("  position %" PRIu64 "  acknowledged %" PRIu64 "  overruns %" PRIu64 "\n",
	       (uint64_t)g->out_position, (uint64_t)g->out_ack, (uint64_t)g->out_overruns);
	for (uint32_t k = 0; k < members && k < g->out_members; k++) {
		const struct rashpa_member_info *m = &stat->member[k];

		printf("  %-38s %10" PRIu64 "  lag %" PRIu64 "  overruns %" PRIu64 "\n",
		       label_of(w, m->source), (uint64_t)m->position,
		       stat->most - (uint64_t)m->position, (uint64_t)m->overruns);
	}
}

static struct json_object *member_json(const struct watch *w, const struct rashpa_member_info *m,
				       uint64_t most)
{
	struct json_object *o = json_object_new_object();

	put_int(o, "source", m->source);
	put_text(o, "label", label_of(w, m->source));
	put_u64(o, "position", m->position);
	put_u64(o, "lag", most - m->position);
	put_u64(o, "overruns", m->overruns);
	put_u64(o, "time_ns", m->time_ns);
	return o;
}

static struct json_object *stat_json(const struct watch *w, const struct source_stat *stat)
{
	const struct rashpa_source_info *i = &stat->info;
	struct json_object *o = json_object_new_object(), *members;

	put_int(o, "source", stat->source->id);
	put_text(o, "kind", rashpa_source_name(i->out_kind));
	put_text(o, "label", stat->source->label);
	if (i->out_device >= 0)
		put_int(o, "fpga", i->out_device);
	put_u64(o, "events", i->out_events);
	put_u64(o, "records_lost", i->out_lost);
	put_u64(o, "value", i->out_value);
	if (stat->source->add.head.flags & RASHPA_SOURCE_POLL) {
		put_u64(o, "looks", i->out_looks);
		put_u64(o, "look_ns", i->out_look_ns);
		put_u64(o, "since_ns", i->out_since_ns);
		put_u64(o, "period_ns", i->out_period_ns);
	}
	if (!stat->source->members)
		return o;
	put_u64(o, "position", stat->group.out_position);
	put_u64(o, "acknowledged", stat->group.out_ack);
	put_u64(o, "overruns", stat->group.out_overruns);
	members = json_object_new_array();
	for (uint32_t k = 0; k < stat->source->members && k < stat->group.out_members; k++)
		json_object_array_add(members, member_json(w, &stat->member[k], stat->most));
	json_object_object_add(o, "members", members);
	return o;
}

static struct json_object *device_json(const struct rashpa_device_info *before,
				       const struct rashpa_device_info *after)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "state", rashpa_state_name(after->out_state));
	put_u64(o, "interrupts", after->out_interrupts);
	put_u64(o, "interrupts_meanwhile", after->out_interrupts - before->out_interrupts);
	put_u64(o, "quiesces", after->out_quiesces);
	put_int(o, "maps", after->out_maps);
	put_int(o, "windows", after->out_windows);
	return o;
}

/* The function of the channel, if any: print it, or add it to o. */
static int report_device(const struct listen *l, struct json_object *o)
{
	struct rashpa_device_info device;

	if (l->memory)
		return 0;
	if (rashpa_device_get_info(l->fpga.device, &device))
		return fail("%s: %s", l->name, rashpa_reason());
	if (o) {
		put_node(o, l->number);
		json_object_object_add(o, "device", device_json(&l->fpga.info, &device));
		return 0;
	}
	printf("%s: %s, %" PRIu64 " interrupts, %" PRIu64 " of them meanwhile, stopped %" PRIu64
	       " times, %" PRIu32 " maps, %" PRIu32 " windows\n",
	       l->name, rashpa_state_name(device.out_state), (uint64_t)device.out_interrupts,
	       (uint64_t)(device.out_interrupts - l->fpga.info.out_interrupts),
	       (uint64_t)device.out_quiesces, device.out_maps, device.out_windows);
	return 0;
}

static int report(const struct watch *w, double time)
{
	const struct listen *l = &w->listen;
	struct json_object *o = command_json ? json_object_new_object() : NULL, *list = NULL;
	static struct source_stat stat;

	if (report_device(l, o)) {
		json_object_put(o);
		return EXIT_FAILED;
	}
	if (command_json) {
		list = json_object_new_array();
		put_real(o, "seconds", time);
		json_object_object_add(o, "sources", list);
	}
	for (unsigned int i = 0; i < l->sources; i++) {
		if (ask(w, &l->source[i], &stat)) {
			json_object_put(o);
			return EXIT_FAILED;
		}
		if (command_json)
			json_object_array_add(list, stat_json(w, &stat));
		else
			stat_text(w, &stat, time);
	}
	return command_json ? json_finish(o) : 0;
}

int cmd_event_stat(int argc, char **argv)
{
	static const struct argp argp = { .options = stat_options, .parser = parse, .children = listen_child };
	static struct watch w = { .listen = LISTEN_NONE, .time = 1 };
	uint64_t begin;
	int result;

	command_parse(&argp, argc, argv, &w);
	w.stop = stop_on_signals();
	result = listen_open(&w.listen);
	begin = now_ns();
	if (!result)
		result = collect(&w);
	if (!result)
		result = report(&w, (now_ns() - begin) / 1e9);
	listen_close(&w.listen);
	return result;
}
