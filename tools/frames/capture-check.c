// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-capture-check: names what is wrong with frames of RoCE v2. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frames/capture.h"
#include "common/json-out.h"
#include "frames/opcode.h"
#include "common/options.h"
#include "common/shown.h"
#include "common/stop.h"

#define QUEUE_PAIRS_MAX	4096
#define LINES		100

enum { OPT_PATH_MTU = 1024, OPT_MTU, OPT_NO_IMMEDIATE, OPT_FAULTS, OPT_FRAMES, OPT_SECONDS };

struct options {
	const char *file, *interface;
	struct check_options check;
	struct queue_pair pairs[QUEUE_PAIRS_MAX];
	uint64_t lines, frames;
	double seconds;
	bool json;
};

struct report {
	uint64_t most, told;
	bool text;
	struct json_object *faults;	/* NULL: no JSON */
};

static const struct argp_option known[] = {
	{ "interface", 'i', "NAME", 0, "frames of this interface, instead of a file", 0 },
	{ "queue-pair", 'q', "QPN[:PSN]", 0,
	  "a known destination queue pair and its first PSN (may be repeated; default: any)",
	  0 },
	{ "path-mtu", OPT_PATH_MTU, "BYTES", 0,
	  "256, 512, 1024, 2048 or 4096 (default: size of the first packets of messages)", 0 },
	{ "mtu", OPT_MTU, "BYTES", 0, "largest allowed IP packet (default: no limit)", 0 },
	{ "no-immediate", OPT_NO_IMMEDIATE, NULL, 0, "immediate values are no sequence", 0 },
	{ "faults", OPT_FAULTS, "N", 0,
	  "name up to N faults, and count the others (default 100; 0: name all)", 0 },
	{ "frames", OPT_FRAMES, "N", 0, "end after N frames", 0 },
	{ "seconds", OPT_SECONDS, "S", 0, "end after S seconds, with --interface only", 0 },
	OPTION_JSON,
	{}
};

static void parse_pair(struct argp_state *state, struct options *o, char *arg)
{
	struct queue_pair *pair = o->pairs + o->check.n_queue_pairs;
	char *psn = strchr(arg, ':');

	if (o->check.n_queue_pairs == QUEUE_PAIRS_MAX)
		argp_error(state, "--queue-pair: at most %u are possible", QUEUE_PAIRS_MAX);
	if (psn) {
		*psn++ = '\0';
		pair->psn_told = true;
		option_u32(state, "--queue-pair: PSN", psn, 0, PSN_MASK, &pair->first_psn);
	}
	option_u32(state, "--queue-pair", arg, 0, QPN_MASK, &pair->qpn);
	o->check.n_queue_pairs++;
}

#define AT(member)	offsetof(struct options, member)

static const struct option_value values[] = {
	{ 'i', VALUE_TEXT, "--interface", AT(interface), 0, 0 },
	{ OPT_PATH_MTU, VALUE_POWER, "--path-mtu", AT(check.path_mtu), PATH_MTU_MIN, PATH_MTU_MAX },
	{ OPT_MTU, VALUE_U32, "--mtu", AT(check.mtu), 68, 65535 },
	{ OPT_NO_IMMEDIATE, VALUE_FLAG, "--no-immediate", AT(check.no_immediate), 0, 0 },
	{ OPT_FAULTS, VALUE_U64, "--faults", AT(lines), 0, 0x1p63 },
	{ OPT_FRAMES, VALUE_U64, "--frames", AT(frames), 1, 0x1p63 },
	{ OPT_SECONDS, VALUE_REAL, "--seconds", AT(seconds), 1e-9, 1e9 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'q':
		parse_pair(state, o, arg);
		break;
	case 'j':
		o->json = true;
		json_to(arg);
		break;
	case ARGP_KEY_ARG:
		if (o->file)
			argp_error(state, "unexpected argument \"%s\": use one file", arg);
		o->file = arg;
		break;
	case ARGP_KEY_END:
		if (!o->file == !o->interface)
			argp_error(state, "no frames to check: use a file, or --interface NAME");
		if (o->seconds && !o->interface)
			argp_error(state, "--seconds does not apply to a file: use --frames, or --interface");
		break;
	default:
		return option_set(values, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = known, .parser = parse, .args_doc = "FILE\n--interface NAME",
	.doc = "Name what is wrong with frames of RoCE v2.\v"
	       "Ends with 0 if nothing is wrong, 4 if there are faults, 1 if it failed or saw no frame "
	       "of RoCE v2, 2 if the options make no sense.",
};

static void tell(void *arg, const struct finding *f)
{
	struct report *r = arg;
	struct json_object *one;

	if (r->told++ >= r->most)
		return;
	if (r->text)
		puts(SHOWN(f->text));
	if (!r->faults)
		return;
	one = json_object_new_object();
	put_u64(one, "frame", f->frame);
	put_text(one, "kind", fault_names[f->fault]);
	put_u64(one, "expected", f->expected);
	put_u64(one, "got", f->got);
	put_text(one, "text", f->text);
	json_object_array_add(r->faults, one);
}

/* ------------------------------------------------------------ summary ---- */

static uint64_t flow_faults(const struct flow *f)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < FAULTS; i++)
		n += f->faults[i];
	return n;
}

static void show_count(const char *before, uint64_t n, const char *what)
{
	printf("%s%" PRIu64 " %s%s", before, n, what, n == 1 ? "" : "s");
}

static void show_flow(const struct flow *f)
{
	static const char transports[][3] = { "RC", "UC", "RD", "UD" };
	char name[FLOW_TEXT];
	const char *sep = " (";

	printf("%s: ", flow_text(name, f));
	if (!f->packets) {
		show_count("", f->responses, "response");
	} else {
		printf("%s", transports[f->opcode >> 5 & 3]);
		show_count(", ", f->packets, "packet");
		show_count(", ", f->messages, "message");
		show_count(", ", f->bytes, "byte");
		printf(", PSN 0x%06" PRIx32 " to 0x%06" PRIx32, f->first_psn, f->last_psn);
		if (f->path_mtu)
			printf(", path MTU %" PRIu32, f->path_mtu);
	}
	if (!flow_faults(f)) {
		puts(": nothing wrong");
		return;
	}
	show_count(": ", flow_faults(f), "fault");
	for (unsigned int i = 0; i < FAULTS; i++) {
		if (!f->faults[i])
			continue;
		printf("%s%s %" PRIu64, sep, fault_names[i], f->faults[i]);
		sep = ", ";
	}
	puts(")");
}

static struct json_object *faults_json(const uint64_t faults[FAULTS])
{
	struct json_object *all = json_object_new_object();

	for (unsigned int i = 0; i < FAULTS; i++) {
		if (faults[i])
			put_u64(all, fault_names[i], faults[i]);
	}
	return all;
}

static struct json_object *flow_json(const struct flow *f)
{
	static const char transports[][3] = { "rc", "uc", "rd", "ud" };
	struct json_object *one = json_object_new_object();
	char text[ADDRESS_TEXT];

	put_text(one, "source", frame_address(text, f->key.ip, f->key.from));
	put_text(one, "destination", frame_address(text, f->key.ip, f->key.to));
	put_u64(one, "queue_pair", f->key.qpn);
	put_text(one, "transport", f->packets ? transports[f->opcode >> 5 & 3] : NULL);
	put_u64(one, "packets", f->packets);
	put_u64(one, "messages", f->messages);
	put_u64(one, "bytes", f->bytes);
	put_u64(one, "responses", f->responses);
	put_u64(one, "first_psn", f->first_psn);
	put_u64(one, "last_psn", f->last_psn);
	put_u64(one, "path_mtu", f->path_mtu);
	put_u64(one, "packets_missing", f->missing);
	put_u64(one, "immediates_missing", f->immediates_missing);
	json_object_object_add(one, "faults", faults_json(f->faults));
	return one;
}

static int write_json(const struct check *c, const char *source, uint64_t lost,
		      struct json_object *faults)
{
	struct json_object *all = json_object_new_object(), *flows = json_object_new_array();

	put_text(all, "source", source);
	put_u64(all, "frames", c->frames);
	put_u64(all, "roce", c->roce);
	put_u64(all, "others", c->others);
	put_u64(all, "cut", c->cut);
	put_u64(all, "icrc_unknown", c->no_icrc);
	put_u64(all, "lost_by_capture", lost);
	put_u64(all, "not_followed", c->not_followed);
	for (unsigned int i = 0; i < c->n_flows; i++)
		json_object_array_add(flows, flow_json(c->flows[i]));
	json_object_object_add(all, "queue_pairs", flows);
	json_object_object_add(all, "counts", faults_json(c->faults));
	json_object_object_add(all, "faults", faults);
	return json_finish(all);
}

static int summary(const struct options *o, const struct check *c, uint64_t lost,
		   struct report *r)
{
	const char *source = o->file ? o->file : o->interface;
	uint64_t faults = check_faults(c);

	if (r->text) {
		if (r->told > r->most)
			printf("%" PRIu64 " more: --faults 0 names them all\n", r->told - r->most);
		for (unsigned int i = 0; i < c->n_flows; i++)
			show_flow(c->flows[i]);
		show_count("", c->frames, "frame");
		printf(", %" PRIu64 " of RoCE v2", c->roce);
		show_count(": ", faults, "fault");
		puts("");
	}
	if (c->cut || c->no_icrc)
		say("%" PRIu64 " frames are not whole in the capture: their ICRC is not known: capture whole frames (tcpdump -s 0)",
		    c->cut + c->no_icrc);
	if (lost)
		say("%" PRIu64 " frames came too fast to be captured: gaps may be theirs", lost);
	if (c->not_followed)
		say("%" PRIu64 " frames are of queue pairs beyond %u, which were not followed",
		    c->not_followed, CHECK_FLOWS_MAX);
	if (r->faults && write_json(c, source, lost, r->faults))
		return EXIT_FAILED;
	if (flush_output())
		return EXIT_FAILED;
	if (!c->roce)
		return fail("%s: no frame of RoCE v2 (UDP port %u) among %" PRIu64
			    ": choose the interface that they pass", source, ROCE_PORT, c->frames);
	return faults ? EXIT_DATA : EXIT_OK;
}

static int open_capture(const struct options *o, struct capture *capture, char *why)
{
	FILE *file;

	if (o->interface)
		return capture_open_interface(capture, o->interface, why);
	file = fopen(o->file, "re");
	if (!file)
		return because(why, -1, "%s: %s", o->file, strerror(errno));
	return capture_open_file(capture, file, o->file, why);
}

int main(int argc, char **argv)
{
	static struct options o = { .lines = LINES };
	struct capture capture = {};
	struct report report = {};
	char why[WHY_SIZE];
	uint64_t until = UINT64_MAX, lost;
	struct check check;
	int bad, status;

	argp_program_version = "rashpa-capture-check " RASHPA_VERSION;
	tool_begin(argc, argv);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	o.check.queue_pairs = o.pairs;
	report.most = o.lines ? o.lines : UINT64_MAX;
	report.text = !o.json || json_elsewhere();
	report.faults = o.json ? json_object_new_array() : NULL;
	if (o.interface)
		setvbuf(stdout, NULL, _IOLBF, 0);
	if (open_capture(&o, &capture, why)) {
		capture_close(&capture);
		json_object_put(report.faults);
		return fail("%s", why);
	}
	if (o.interface)
		say("looking at %s", o.interface);
	if (o.seconds)
		until = now_ns() + (uint64_t)(o.seconds * 1e9);
	check_begin(&check, &o.check, tell, &report);
	bad = capture_check(&capture, &check, stop_on_signals(), o.frames, until, why);
	check_end(&check);
	lost = capture_lost(&capture);
	status = summary(&o, &check, lost, &report);
	if (bad)
		status = fail("%s: %s", o.file ? o.file : o.interface, why);
	check_free(&check);
	capture_close(&capture);
	return status;
}
