// SPDX-License-Identifier: LGPL-2.1-or-later
/* remu: a detector that streams a dataset into a buffer. See remu(1). */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/contract.h"
#include "common/fpga.h"
#include "common/json-out.h"
#include "daemon/led.h"
#include "link/network-options.h"
#include <rashpa.h>
#include <rashpa-fpga.h>
#include "remu/remu.h"
#include "common/say.h"
#include "common/stop.h"

#define IMAGES_MAX	(UINT64_C(1) << 48)
/* From one image in eleven days to one in each tick; periods between them are whole ticks. */
#define RATE_MIN	0.000001
#define RATE_MAX	(1e9 / RFPGA_TICK_NS)

const char *argp_program_version = "remu " RASHPA_VERSION;

enum {
	OPT_DTP = 256, OPT_SPLIT, OPT_BUNCH, OPT_SLOTS, OPT_SAMPLING, OPT_RATE, OPT_TUNE,
	OPT_VECTOR, OPT_RESUME, OPT_TRANSPORT, OPT_LOCK, OPT_PERIOD, OPT_LIVE, OPT_POLICY,
	OPT_PAYLOAD, OPT_TO, OPT_SHARE, OPT_IMMEDIATE, OPT_MESSAGE, OPT_LINKED, OPT_WRITES,
	OPT_RAMP, OPT_CPUS, OPT_FIRST,
};

const char * const policies[] = {
	[RASHPA_STREAM_WAIT] = "wait", [RASHPA_STREAM_OVERWRITE] = "overwrite",
	[RASHPA_STREAM_DROP] = "drop",
};

static struct argp_option options[] = {
	OPTION_FPGA("the function that streams (default fpga0)"),
	{ "dtp", OPT_DTP, "X,Y,WxH[@DX,DY]", 0,
	  "one more DTP: a region of the image, and its target", 0 },
	{ "split", OPT_SPLIT, "N", 0,
	  "N processes, each with a horizontal band (default 2; 1 with --live or drop)", 0 },
	{ "bunch", OPT_BUNCH, "N", 0, "images per stack, that is per event (default 8)", 0 },
	{ "slots", OPT_SLOTS, "N[images]", 0,
	  "size of the buffer in stacks or images (default: as many as fit)", 0 },
	{ "rate", OPT_RATE, "HZ", 0, "images per second, not waiting for the receiver", 0 },
	{ "live", OPT_LIVE, NULL, 0,
	  "take the images from live source 0 of the board, at --rate", 0 },
	{ "policy", OPT_POLICY, "wait|overwrite|drop", 0,
	  "without a free slot: wait (default; a live source loses images), overwrite the oldest stack (default with a rate, but not --live; without a rate as fast as possible), or leave stacks out",
	  0 },
	{ "payload", OPT_PAYLOAD, "NAME", 0,
	  "memory for the images: a buffer, or a program's (default: in the buffer)", 0 },
	OPTION_TUNE(OPT_TUNE),
	{ "transport", OPT_TRANSPORT, NULL, 0, "transport of the images (default pcie)", 0 },
	{ NULL, 0, NULL, 0, "Over a network:", 1 },
	{ "to", OPT_TO, "[tls:]HOST:PORT", 0,
	  "address of a receiver; repeat it for several receivers", 1 },
	NETWORK_DEVICE
	{}
};

static const struct argp_option tunes[] = {
	{ "sampling", OPT_SAMPLING, "N[,PHASE]", 0,
	  "send 1 of N images, after the first PHASE ones (default 1)", 0 },
	{ "period", OPT_PERIOD, "TICKS", 0, "--rate in ticks of the board per image", 0 },
	{ "vector", OPT_VECTOR, "V", 0, "interrupt vector of the complete stacks (default 0)", 0 },
	{ "lock", OPT_LOCK, "NAME", 0,
	  "lock memory for the lock records (rashpactl lock create; default: in the buffer)", 0 },
	{ "resume", OPT_RESUME, NULL, 0, "go on where the receiver of the last run stopped", 0 },
	{ "share", OPT_SHARE, "images|stacks", 0,
	  "receivers share the images, in turn (default: each gets all)", 1 },
	{ "immediate", OPT_IMMEDIATE, "each|stack", 0,
	  "messages that notify the receiver: each one (default), or the last one of a stack (losses are not seen)",
	  1 },
	{ "message", OPT_MESSAGE, "BYTES", 0,
	  "most bytes of a message (default: a packet)", 1 },
	{ "linked", OPT_LINKED, "N", 0, "writes that are posted in one go (default 32)", 1 },
	{ "writes", OPT_WRITES, "N", 0, "writes of a process under way (default 256)", 1 },
	{ "cpus", OPT_CPUS, "LIST", 0, "processors of the processes, one each, in turn", 1 },
	{ "start-ramp", OPT_RAMP, "SECONDS", 0, "time until --rate is reached (default 0)", 1 },
	{ "first-immediate", OPT_FIRST, "N", 0, "number of the first message (default: any)", 1 },
	NETWORK_OPTIONS
	{}
};

/* Default of the policy for a stream without free slots, and combinations that are impossible. */
static void check_policy(struct argp_state *state, struct config *c)
{
	if (!c->policy_given && c->period && !c->live)
		c->policy = RASHPA_STREAM_OVERWRITE;
	if (c->live && !c->period)
		argp_error(state, "--live needs --rate");
	if (c->policy == RASHPA_STREAM_DROP && !c->period)
		argp_error(state, "--policy drop needs --rate");
	if (c->policy == RASHPA_STREAM_WAIT && c->period && !c->live)
		argp_error(state, "--policy wait excludes --rate without --live: images in memory wait for credit");
	if (c->policy == RASHPA_STREAM_DROP && (c->regions > 1 || c->split > 1))
		argp_error(state, "--policy drop: several processes would drop different images: use one (--split 1)");
	if (c->live && c->sampling > UINT16_MAX)
		argp_error(state, "--live: sampling is at most %d", UINT16_MAX);
}

static void parse_sampling(struct argp_state *state, const char *arg, struct config *c)
{
	char number[16] = "";
	const char *comma = strchr(arg, ',');

	if (comma && (size_t)(comma - arg) < sizeof(number))
		memcpy(number, arg, comma - arg);
	option_u32(state, "sampling", comma ? number : arg, 1, 1 << 20, &c->sampling);
	c->phase = 0;
	if (comma)
		option_u32(state, "sampling: phase", comma + 1, 0, c->sampling - 1, &c->phase);
}

static void parse_dtp(struct argp_state *state, const char *arg, struct config *c)
{
	struct region *r = &c->region[c->regions++];

	if (c->regions > RFPGA_DTPS_MAX)
		argp_error(state, "--dtp: at most %d processes", RFPGA_DTPS_MAX);
	if (!parse_region(arg, r))
		argp_error(state, "--dtp: \"%s\" is not X,Y,WxH or X,Y,WxH@DX,DY", arg);
	if (r->to_x + r->width > 65536 || r->to_y + r->height > 65536)
		argp_error(state, "--dtp: %s makes an image of more than 65536 pixels a side", arg);
}

static const char *parse_name(struct argp_state *state, const char *what, const char *arg)
{
	if (!*arg || strlen(arg) >= RASHPA_STREAM_NAME)
		argp_error(state, "%s: \"%s\" is not a name of 1 to %d characters", what, arg,
			   RASHPA_STREAM_NAME - 1);
	return arg;
}

/* Options that a transport does not have, and options that need one. */
static void check_transport(struct argp_state *state, struct config *c)
{
	const struct transport *t = c->net.transport;

	if (!(t->has & TRANSPORT_NETWORK) && c->net.receivers)
		argp_error(state, "--to: the network is missing: give --transport %s",
			   transport_names(TRANSPORT_NETWORK, ", ", " or "));
	if (t->has & TRANSPORT_NETWORK && !c->net.receivers)
		argp_error(state, "--transport %s: a receiver is missing: give --to %s", t->name,
			   t->to);
	if ((c->opt.buffer || c->lock || c->payload || c->live || c->resume || c->depth.n) &&
	    !(t->has & TRANSPORT_BUFFER))
		argp_error(state, "--transport %s: --buffer, --slots, --payload, --live, lock and resume need --transport %s: the receiver has the buffer",
			   t->name, transport_names(TRANSPORT_BUFFER, ", ", " or "));
	if (c->policy == RASHPA_STREAM_DROP && !(t->has & TRANSPORT_DROP))
		argp_error(state, "--transport %s: --policy drop needs --transport %s", t->name,
			   transport_names(TRANSPORT_DROP, ", ", " or "));
	if (c->policy == RASHPA_STREAM_WAIT && !(t->has & TRANSPORT_WAIT))
		argp_error(state, "--transport %s: a detector does not wait: give --rate or --policy overwrite",
			   t->name);
	if (!(t->has & TRANSPORT_NETWORK))
		return;
	if (c->net.immediate != CONTRACT_EACH && !(t->has & TRANSPORT_RDMA))
		argp_error(state, "--transport %s: immediate needs --transport %s", t->name,
			   transport_names(TRANSPORT_RDMA, ", ", " or "));
	if (t->packet && (c->net.message || c->net.first_given))
		argp_error(state, "--transport %s excludes message and first-immediate", t->name);
	if (c->net.share == SHARE_STACKS && c->sampling > 1)
		argp_error(state, "share=stacks and sampling exclude each other");
	if (c->net.ramp && !c->period)
		argp_error(state, "start-ramp: needs --rate");
}

#define SENDING(transport, ...) &sending_##transport,
static const struct sending * const sendings[] = { TRANSPORTS(SENDING) };

static void check(struct argp_state *state, struct config *c)
{
	c->net.sending = sendings[c->net.transport - transports];
	c->opt.without_buffer = !(c->net.transport->has & TRANSPORT_BUFFER) ||
				is_daemon(&c->daemon) || c->daemon.probe;
	/* the other settings arrive by telegram */
	if (is_daemon(&c->daemon) || c->daemon.probe)
		return;
	if (c->regions && c->split)
		argp_error(state, "--dtp and --split exclude each other");
	for (unsigned int i = 0; i < c->regions; i++) {
		for (unsigned int j = 0; j < i; j++) {
			if (regions_overlap(&c->region[i], &c->region[j]))
				argp_error(state, "--dtp number %u and %u write to the same pixels",
					   j + 1, i + 1);
		}
	}
	check_policy(state, c);
	check_transport(state, c);
	if (c->opt.darks && c->sampling > 1)
		argp_error(state, "darks: sampling would leave out images of a pair");
	c->slots = depth_stacks(&c->depth, c->bunch);
	c->images = depth_images(&c->opt.images, c->bunch);
	if (c->images > IMAGES_MAX)
		argp_error(state, "--images: %" PRIu64 " stacks of %" PRIu32 " images are more than 2^48 images",
			   c->opt.images.n, c->bunch);
}

/* Regions, and checks against the size of the images. */
static int plan_regions(struct config *c, const struct dataset *dataset)
{
	const struct geometry *g = &dataset->geometry;

	if (!c->regions) {
		c->regions = c->live || c->policy == RASHPA_STREAM_DROP ? 1 :
			     transport_regions(c->net.transport, g->height);
		if (c->split)
			c->regions = c->split;
		else if (c->regions > RFPGA_DTPS_MAX)
			c->regions = RFPGA_DTPS_MAX;
		if (c->regions > g->height) {
			say("--split %u: the images of %s have %" PRIu32 " lines", c->split,
			    dataset->source, g->height);
			return EXIT_USAGE;
		}
		split_regions(g->width, g->height, c->regions, c->region);
	}
	for (unsigned int i = 0; i < c->regions; i++) {
		const struct region *r = &c->region[i];

		if (r->x + r->width <= g->width && r->y + r->height <= g->height)
			continue;
		say("--dtp: %" PRIu32 ",%" PRIu32 ",%" PRIu32 "x%" PRIu32
		    " is outside the image of %" PRIu32 " x %" PRIu32 " pixels of %s", r->x, r->y,
		    r->width, r->height, g->width, g->height, dataset->source);
		return EXIT_USAGE;
	}
	return 0;
}

void plan_stream(struct rashpa_stream_plan *plan, struct rashpa_stream_process *process,
		 const struct config *c, const struct dataset *dataset)
{
	struct rashpa_stream_header *h = &plan->header;

	*plan = (struct rashpa_stream_plan) {
		.header = {
			.pixel = dataset->geometry.pixel, .bunch = c->bunch, .slots = c->slots,
			.policy = c->policy, .images = c->images, .sampling = c->sampling, .phase = c->phase,
			.dark_every = dataset->dark_every,
		},
		.process = process, .processes = c->regions, .flags = c->resume ? RASHPA_PLAN_RESUME : 0,
	};
	for (unsigned int i = 0; i < c->regions; i++) {
		const struct region *r = &c->region[i];

		process[i] = (struct rashpa_stream_process) {
			.number = i, .x = r->to_x, .y = r->to_y, .width = r->width, .height = r->height,
			.origin_x = r->x, .origin_y = r->y,
		};
		/* The image is as large as the regions reach. */
		if (h->width < r->to_x + r->width)
			h->width = r->to_x + r->width;
		if (h->height < r->to_y + r->height)
			h->height = r->to_y + r->height;
	}
	snprintf(h->dataset, sizeof(h->dataset), "%.63s", dataset->source);
	snprintf(h->lock_name, sizeof(h->lock_name), "%s", c->lock ?: "");
	snprintf(h->payload_name, sizeof(h->payload_name), "%s", c->payload ?: "");
}

#define AT(member)	offsetof(struct config, member)

static const struct option_value values[] = {
	{ OPT_LINKED, VALUE_U32, "linked", AT(net.linked), 1, 256 },
	{ OPT_WRITES, VALUE_U32, "writes", AT(net.writes), 2, 1 << 15 },
	{ OPT_RAMP, VALUE_REAL, "start-ramp", AT(net.ramp), 0, 3600 },
	{ OPT_SPLIT, VALUE_U32, "--split", AT(split), 1, RFPGA_DTPS_MAX },
	{ OPT_BUNCH, VALUE_U32, "--bunch", AT(bunch), 1, 1 << 20 },
	{ OPT_LIVE, VALUE_FLAG, "--live", AT(live), 0, 0 },
	{ OPT_PERIOD, VALUE_U64, "period", AT(period), 1, 0x1p48 - 1 },
	{ OPT_VECTOR, VALUE_U32, "vector", AT(vector), 0, 2047 },
	{ OPT_RESUME, VALUE_FLAG, "resume", AT(resume), 0, 0 },
	{}
};

/* Options of a network. */
static error_t parse_network(int key, char *arg, struct argp_state *state,
			     struct network_config *n)
{
	uint64_t bytes;

	switch (key) {
	case OPT_TO:
		if (n->receivers == RECEIVERS_MOST)
			argp_error(state, "--to: at most %d receivers", RECEIVERS_MOST);
		n->to[n->receivers++] = arg;
		break;
	case OPT_SHARE:
		n->share = option_word(state, "share", arg, "images|stacks") ? SHARE_STACKS : SHARE_IMAGES;
		break;
	case OPT_IMMEDIATE:
		n->immediate = option_word(state, "immediate", arg, "each|stack") ? CONTRACT_STACK : CONTRACT_EACH;
		break;
	case OPT_MESSAGE:
		if (!parse_size(arg, &bytes) || bytes < 64 || bytes > 1u << 31)
			argp_error(state, "message: \"%s\" is not 64 to 2G bytes", arg);
		n->message = bytes;
		break;
	case OPT_CPUS:
		cpus_option(state, arg, &n->cpus);
		break;
	case OPT_FIRST:
		option_u32(state, "first-immediate", arg, 0, UINT32_MAX, &n->first);
		n->first_given = true;
		break;
	default:
		return network_option(key, arg, state, &n->options);
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;
	double rate;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->opt;
		state->child_inputs[1] = &c->daemon;
		break;
	case 'f':
		option_fpga(state, "--fpga", arg, &c->fpga);
		break;
	case OPT_DTP:
		parse_dtp(state, arg, c);
		break;
	case OPT_SLOTS:
		if (!parse_depth(arg, UINT32_MAX, &c->depth) || !c->depth.n)
			argp_error(state, "--slots: \"%s\" is not a number of stacks, or of images (as 64images), from 1 to %"
				   PRIu32, arg, UINT32_MAX);
		break;
	case OPT_SAMPLING:
		parse_sampling(state, arg, c);
		break;
	case OPT_POLICY:
		c->policy = option_word(state, "--policy", arg, "wait|overwrite|drop");
		c->policy_given = true;
		break;
	case OPT_RATE:
		if (!parse_real(arg, &rate) || rate < RATE_MIN || rate > RATE_MAX)
			argp_error(state, "--rate: \"%s\" is not %g to %.0f images per second", arg,
				   RATE_MIN, RATE_MAX);
		c->period = RATE_MAX / rate + 0.5;
		break;
	case OPT_TUNE:
		return option_tune(state, arg, c->tunes);
	case OPT_LOCK:
		c->lock = parse_name(state, "lock", arg);
		break;
	case OPT_PAYLOAD:
		c->payload = parse_name(state, "--payload", arg);
		break;
	case OPT_TRANSPORT:
		c->net.transport = transport_named(arg);
		if (!c->net.transport)
			argp_error(state, "--transport: \"%s\" is not %s", arg,
				   transport_names(0, ", ", " or "));
		break;
	case ARGP_KEY_END:
		check(state, c);
		break;
	default:
		return option_set(values, key, arg, state) ? parse_network(key, arg, state, &c->net) : 0;
	}
	return 0;
}

static const struct argp_child children[] = {
	{ .argp = &stream_argp }, { .argp = &daemon_argp }, {}
};

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.doc = "Emulate a detector: stream images through an FPGA into a buffer."
	       "\vExit status: 0 done (or stopped by a signal), 1 failed, 2 usage, 3 no progress in time.",
};

/* Describe the images to the leader. */
static struct json_object *about(const struct config *c, const struct dataset *dataset)
{
	struct json_object *o = json_object_new_object(), *image = json_object_new_object();

	put_int(image, "width", dataset->geometry.width);
	put_int(image, "height", dataset->geometry.height);
	put_text(image, "pixel", pixel_name(dataset->geometry.pixel));
	json_object_object_add(o, "image", image);
	if (c->period)
		put_real(o, "rate", RATE_MAX / c->period);
	return o;
}

static void tell_configured(const struct config *c, struct dataset *dataset)
{
	struct json_object *o;

	if (!led())
		return;
	o = about(c, dataset);
	if (c->net.sending->paths)
		json_object_object_add(o, "paths", c->net.sending->paths(c, dataset));
	led_say("configured", o);
}

int main(int argc, char **argv)
{
	struct config config = {
		.bunch = 8, .sampling = 1,
		.net = { .transport = transports, .linked = 32, .writes = 256, .options = NETWORK_DEFAULTS },
	};
	volatile bool *stop = stop_on_signals();
	struct dataset dataset;
	char why[WHY_SIZE];
	int result;

	const struct tune tune[] = {
		{ tunes, parse, &config }, { stream_tunes, stream_argp.parser, &config.opt }, {}
	};

	config.tunes = tune;
	tool_begin(argc, argv);
	transport_option(options, OPT_TRANSPORT, 0);
	argp_parse(&argp, argc, argv, 0, NULL, &config);
	if (is_daemon(&config.daemon))
		return daemon_run(&config.daemon, true, argv, tune, stop);
	fpga_catch_removal();
	if (config.daemon.led && led_open(config.daemon.led, why))
		return fail("%s", why);

	if (dataset_open(&dataset, config.opt.dataset, &config.opt.geometry, why) ||
	    (config.opt.darks &&
	     dataset_add_darks(&dataset, config.opt.darks, &config.opt.geometry,
			       config.opt.dark_every, why)))
		return fail("%s", why);
	if (config.daemon.probe) {
		led_say("able", about(&config, &dataset));
		dataset_close(&dataset);
		return 0;
	}
	result = plan_regions(&config, &dataset);
	if (!result && config.daemon.files.certificate &&
	    wire_tls_open(&config.daemon.files, &config.net.tls, why))
		result = fail("%s", why);
	if (!result) {
		tell_configured(&config, &dataset);
		led_await(LED_ARM, stop);
	}
	if (!result && !*stop)
		result = config.net.sending->run(&config, &dataset, stop);
	wire_tls_close(config.net.tls);
	dataset_close(&dataset);
	return result;
}
