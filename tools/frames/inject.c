// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-inject: sends RDMA WRITE messages as an FPGA would, with faults on request. */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/ethernet.h>
#include <netinet/ether.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frames/arp.h"
#include "frames/fault.h"
#include "common/json-out.h"
#include "frames/line.h"
#include "frames/opcode.h"
#include "common/options.h"
#include "frames/plan.h"
#include "common/stop.h"

#define FROM_PORT	49152
#define MESSAGES_MAX	(UINT64_C(1) << 32)	/* keeps the number of packets below 2^64 */

enum {
	OPT_SOURCE_MAC = 1024, OPT_DESTINATION_MAC, OPT_SOURCE_PORT, OPT_PSN, OPT_RKEY,
	OPT_ADDRESS, OPT_REGION, OPT_PATH_MTU, OPT_TRANSPORT, OPT_IMMEDIATE, OPT_NO_IMMEDIATE,
	OPT_SOLICITED, OPT_RATE, OPT_PAYLOAD, OPT_FAULT, OPT_PKEY, OPT_TTL, OPT_TOS,
};

struct options {
	const char *interface, *file, *payload;
	bool from_mac, to_mac, from, to, qpn, json;
	struct plan plan;
	double frames_per_second, bits_per_second;
	struct injected_fault faults[FAULTS_MAX];
	unsigned int n_faults;
};

/* A frame that is kept back, to follow the frame with number "behind". */
struct kept {
	uint64_t behind;
	size_t size;
	uint64_t original;
	bool twice;
	uint8_t *data;
};

#define KEPT_MAX	64

struct sender {
	const struct options *o;
	struct injected_fault *faults;
	struct line line;
	struct kept kept[KEPT_MAX];
	unsigned int n_kept;
	uint64_t packets;
};

static const struct argp_option known[] = {
	{ "interface", 'i', "NAME", 0, "send from this interface", 0 },
	{ "write", 'w', "FILE", 0, "write the frames to a file of libpcap instead", 0 },
	{ "source", 's', "IP", 0, "IPv4 address of the sender (default: the interface's)", 1 },
	{ "destination", 'd', "IP", 0, "IPv4 address of the receiver", 1 },
	{ "source-mac", OPT_SOURCE_MAC, "MAC", 0, "MAC address of the sender (default: the interface's)", 1 },
	{ "destination-mac", OPT_DESTINATION_MAC, "MAC", 0,
	  "MAC address of the receiver or its router (default: resolved by ARP)", 1 },
	{ "source-port", OPT_SOURCE_PORT, "PORT", 0, "UDP port of the sender (default 49152)", 1 },
	{ "ttl", OPT_TTL, "N", 0, "time to live in the IP header (default 64)", 1 },
	{ "tos", OPT_TOS, "N", 0, "type of service: DSCP and ECN of the IP header (default 0)", 1 },
	{ "queue-pair", 'q', "QPN", 0, "queue pair of the receiver", 2 },
	{ "first-psn", OPT_PSN, "N", 0, "PSN of the first packet (default 0)", 2 },
	{ "rkey", OPT_RKEY, "N", 0, "key of the receiver's memory (default 0)", 2 },
	{ "address", OPT_ADDRESS, "N", 0, "address in the receiver's memory (default 0)", 2 },
	{ "region", OPT_REGION, "SIZE", 0,
	  "put messages one after another into SIZE bytes, then begin again "
	  "(default: all at one address)", 2 },
	{ "pkey", OPT_PKEY, "N", 0, "partition key (default 0xffff)", 2 },
	{ "transport", OPT_TRANSPORT, "uc|rc", 0, "service (default uc; answers of rc are not read)", 2 },
	{ "size", 'b', "SIZE", 0, "size of a message (default 4K)", 3 },
	{ "path-mtu", OPT_PATH_MTU, "BYTES", 0, "256, 512, 1024 (default), 2048 or 4096", 3 },
	{ "messages", 'n', "N", 0, "number of messages (default 1; 0: until a signal)", 3 },
	{ "immediate", OPT_IMMEDIATE, "N", 0,
	  "immediate of the first message, which counts up (default 0)", 3 },
	{ "no-immediate", OPT_NO_IMMEDIATE, NULL, 0, "messages without immediate", 3 },
	{ "solicited", OPT_SOLICITED, NULL, 0, "messages ask for an event at the receiver", 3 },
	{ "payload", OPT_PAYLOAD, "FILE", 0,
	  "fill messages with the bytes of FILE, repeatedly (default: a pattern)", 3 },
	{ "rate", 'r', "N|N[K|M|G]bit", 0,
	  "frames a second, or bits a second on the cable (default: no limit)", 4 },
	{ "fault", OPT_FAULT, "KIND@N[:VALUE]", 0, "inject this fault into frame N (may be repeated): "
	  FAULT_KINDS, 4 },
	OPTION_JSON,
	{}
};

static void option_ip(struct argp_state *state, const char *what, const char *arg, uint8_t *ip)
{
	if (inet_pton(AF_INET, arg, ip) != 1)
		argp_error(state, "%s: \"%s\" is not an IPv4 address like 192.0.2.1", what, arg);
}

static void option_mac(struct argp_state *state, const char *what, const char *arg, uint8_t *mac)
{
	if (!ether_aton_r(arg, (struct ether_addr *)mac))
		argp_error(state, "%s: \"%s\" is not an address like 02:00:00:00:00:01", what, arg);
}

static void option_rate(struct argp_state *state, struct options *o, const char *arg)
{
	static const char units[] = "KMG";
	char number[32], *unit;
	size_t n = strlen(arg);
	bool bits = n > 3 && !strcmp(arg + n - 3, "bit");
	double value, times = 1;

	n -= bits ? 3 : 0;
	if (n && n < sizeof(number)) {
		memcpy(number, arg, n);
		number[n] = '\0';
		unit = bits ? strchr(units, number[n - 1]) : NULL;
		for (const char *u = units; unit && u <= unit; u++)
			times *= 1000;
		if (unit)
			number[n - 1] = '\0';
		if (parse_real(number, &value) && value * times >= 0.001 && value * times <= 1e12) {
			o->bits_per_second = bits ? value * times : 0;
			o->frames_per_second = bits ? 0 : value;
			return;
		}
	}
	argp_error(state, "--rate: \"%s\" is not frames a second, or bits a second as in 1Gbit",
		   arg);
}

static void option_fault(struct argp_state *state, struct options *o, const char *arg)
{
	char why[WHY_SIZE];

	if (o->n_faults == FAULTS_MAX)
		argp_error(state, "--fault: at most %u are possible", FAULTS_MAX);
	if (fault_parse(arg, o->faults + o->n_faults, why))
		argp_error(state, "--fault %s", why);
	o->n_faults++;
}

static void check_options(struct argp_state *state, struct options *o)
{
	struct plan *p = &o->plan;
	char why[WHY_SIZE];

	if (!o->interface == !o->file)
		argp_error(state, "no destination of frames: use --interface NAME, or --write FILE");
	if (!o->to)
		argp_error(state, "no receiver: use --destination IP");
	if (!o->qpn)
		argp_error(state, "no queue pair: use --queue-pair QPN of the receiver");
	if (o->file && !o->from)
		argp_error(state, "no sender: --write requires --source IP");
	if (o->file && !p->messages)
		argp_error(state, "--messages: 0 needs --interface: use a number with --write");
	if (p->region && (!p->size || p->region < p->size))
		argp_error(state, "--region: %" PRIu64 " bytes have no room for a message of %"
			   PRIu32, p->region, p->size);
	for (unsigned int i = 0; i < o->n_faults; i++) {
		if (fault_fits(o->faults + i, p, why))
			argp_error(state, "--fault %s", why);
	}
}

#define AT(member)	offsetof(struct options, member)

static const struct option_value values[] = {
	{ 'q', VALUE_U32, "--queue-pair", AT(plan.like.qpn), 0, QPN_MASK },
	{ OPT_PSN, VALUE_U32, "--first-psn", AT(plan.like.psn), 0, PSN_MASK },
	{ OPT_SOURCE_PORT, VALUE_U16, "--source-port", AT(plan.like.from_port), 1, UINT16_MAX },
	{ OPT_TTL, VALUE_U8, "--ttl", AT(plan.like.ttl), 1, UINT8_MAX },
	{ OPT_TOS, VALUE_U8, "--tos", AT(plan.like.tos), 0, UINT8_MAX },
	{ OPT_PKEY, VALUE_U16, "--pkey", AT(plan.like.pkey), 0, UINT16_MAX },
	{ OPT_PATH_MTU, VALUE_POWER, "--path-mtu", AT(plan.path_mtu), PATH_MTU_MIN, PATH_MTU_MAX },
	{ OPT_RKEY, VALUE_U32, "--rkey", AT(plan.like.rkey), 0, UINT32_MAX },
	{ 'i', VALUE_TEXT, "--interface", AT(interface), 0, 0 },
	{ 'w', VALUE_TEXT, "--write", AT(file), 0, 0 },
	{ OPT_ADDRESS, VALUE_U64, "--address", AT(plan.address), 0, UINT64_MAX },
	{ OPT_REGION, VALUE_SIZE, "--region", AT(plan.region), 0, UINT64_MAX },
	{ 'b', VALUE_SIZE32, "--size", AT(plan.size), 0, 0x1p31 },
	{ 'n', VALUE_U64, "--messages", AT(plan.messages), 0, MESSAGES_MAX },
	{ OPT_IMMEDIATE, VALUE_U32, "--immediate", AT(plan.immediate), 0, UINT32_MAX },
	{ OPT_SOLICITED, VALUE_FLAG, "--solicited", AT(plan.solicited), 0, 0 },
	{ OPT_PAYLOAD, VALUE_TEXT, "--payload", AT(payload), 0, 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	struct plan *p = &o->plan;

	switch (key) {
	case OPT_TRANSPORT:
		if (strcmp(arg, "uc") && strcmp(arg, "rc"))
			argp_error(state, "--transport: \"%s\" is neither uc nor rc", arg);
		p->transport = *arg == 'u' ? TRANSPORT_UC : TRANSPORT_RC;
		break;
	case OPT_NO_IMMEDIATE:
		p->has_immediate = false;
		break;
	case 'r':
		option_rate(state, o, arg);
		break;
	case OPT_FAULT:
		option_fault(state, o, arg);
		break;
	case 'j':
		o->json = true;
		json_to(arg);
		break;
	case 's':
		option_ip(state, "--source", arg, p->like.from);
		o->from = true;
		break;
	case 'd':
		option_ip(state, "--destination", arg, p->like.to);
		o->to = true;
		break;
	case OPT_SOURCE_MAC:
		option_mac(state, "--source-mac", arg, p->like.from_mac);
		o->from_mac = true;
		break;
	case OPT_DESTINATION_MAC:
		option_mac(state, "--destination-mac", arg, p->like.to_mac);
		o->to_mac = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\": use options only", arg);
		break;
	case ARGP_KEY_END:
		check_options(state, o);
		break;
	case 'q':
		o->qpn = true;
		/* fall through */
	default:
		return option_set(values, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = known, .parser = parse,
	.doc = "Send RDMA WRITE messages of one queue pair as an FPGA would, as frames of RoCE v2.\v"
	       "Ends with 0 if all was sent, 1 if not, 2 if the options make no sense.",
};

/* ------------------------------------------------------------ sending ---- */

static void sent_as(struct sender *s, uint64_t original)
{
	for (unsigned int i = 0; i < s->o->n_faults; i++) {
		if (s->faults[i].frame == original && s->faults[i].kind != INJECT_DROP)
			s->faults[i].sent_as = s->line.frames;
	}
}

static int send_once(struct sender *s, const uint8_t *data, size_t size, uint64_t original,
		     bool twice, char *why)
{
	if (line_send(&s->line, data, size, why))
		return -1;
	/* the second one is too many */
	if (twice && line_send(&s->line, data, size, why))
		return -1;
	sent_as(s, original);
	return 0;
}

static int send_kept(struct sender *s, uint64_t behind, char *why)
{
	unsigned int i = 0;

	while (i < s->n_kept) {
		struct kept *k = s->kept + i;

		if (k->behind > behind) {
			i++;
			continue;
		}
		if (send_once(s, k->data, k->size, k->original, k->twice, why))
			return -1;
		free(k->data);
		memmove(k, k + 1, (--s->n_kept - i) * sizeof(*k));
	}
	return 0;
}

static int keep(struct sender *s, const uint8_t *data, size_t size, uint64_t original, bool twice,
		uint64_t behind, char *why)
{
	struct kept *k = s->kept + s->n_kept;

	if (s->n_kept == KEPT_MAX)
		return because(why, -1, "--fault reorder: at most %u frames at a time are possible",
			       KEPT_MAX);
	*k = (struct kept) {
		.behind = behind, .size = size, .original = original, .twice = twice,
		.data = malloc(size),
	};
	if (!k->data)
		return because(why, -1, "no memory");
	memcpy(k->data, data, size);
	s->n_kept++;
	return 0;
}

/* Packet n, from 1. */
static int send_packet(struct sender *s, uint64_t n, char *why)
{
	static uint8_t payload[FRAME_MAX], data[FRAME_MAX + FRAME_OVERHEAD];
	const struct injected_fault *fault;
	bool drop = false, twice = false;
	uint64_t behind = 0;
	struct frame f;
	unsigned int i;
	size_t size;

	plan_frame(&s->o->plan, n - 1, &f, payload);
	for (i = 0; i < s->o->n_faults; i++) {
		if (s->faults[i].frame == n)
			fault_in_frame(s->faults + i, &s->o->plan, &f, payload);
	}
	size = frame_encode(&f, data);
	for (i = 0; i < s->o->n_faults; i++) {
		fault = s->faults + i;
		if (fault->frame != n)
			continue;
		fault_in_bytes(fault, data, &size);
		drop |= fault->kind == INJECT_DROP;
		twice |= fault->kind == INJECT_DUPLICATE;
		if (fault->kind == INJECT_REORDER)
			behind = n + fault->value;
	}
	if (behind && !drop) {
		if (keep(s, data, size, n, twice, behind, why))
			return -1;
	} else if (!drop && send_once(s, data, size, n, twice, why)) {
		return -1;
	}
	return send_kept(s, n, why);
}

static int send_all(struct sender *s, char *why)
{
	const volatile bool *stop = stop_on_signals();
	uint64_t all = plan_frames(&s->o->plan);

	while (s->packets < all && !*stop) {
		if (send_packet(s, s->packets + 1, why))
			return -1;
		s->packets++;
	}
	return send_kept(s, UINT64_MAX, why);
}

/* ------------------------------------------------------------- report ---- */

static double seconds(const struct line *l)
{
	return (double)(l->last - l->begun) / 1e9;
}

static struct json_object *fault_json(const struct injected_fault *f)
{
	struct json_object *one = json_object_new_object();

	put_text(one, "kind", fault_name(f->kind));
	put_u64(one, "packet", f->frame);
	if (f->kind == INJECT_ICRC && (f->zero || f->swapped))
		put_text(one, "value", f->zero ? "zero" : "swapped");
	else
		put_u64(one, "value", f->value);
	if (f->sent_as)
		put_u64(one, "frame", f->sent_as);
	else
		json_object_object_add(one, "frame", NULL);
	return one;
}

static int write_json(const struct sender *s)
{
	struct json_object *all = json_object_new_object(), *faults = json_object_new_array();
	const struct plan *p = &s->o->plan;
	char text[ADDRESS_TEXT];

	put_text(all, "to", s->line.name);
	put_text(all, "transport", p->transport == TRANSPORT_UC ? "uc" : "rc");
	put_text(all, "source", frame_address(text, 4, p->like.from));
	put_text(all, "destination", frame_address(text, 4, p->like.to));
	put_u64(all, "queue_pair", p->like.qpn);
	put_u64(all, "first_psn", p->like.psn);
	put_u64(all, "next_psn", (p->like.psn + s->packets) & PSN_MASK);
	put_u64(all, "path_mtu", p->path_mtu);
	put_u64(all, "message_bytes", p->size);
	put_u64(all, "messages", s->packets / plan_per_message(p));
	put_u64(all, "packets", s->packets);
	put_u64(all, "frames", s->line.frames);
	put_u64(all, "bytes", s->line.bytes);
	put_real(all, "seconds", seconds(&s->line));
	put_u64(all, "late", s->line.late);
	for (unsigned int i = 0; i < s->o->n_faults; i++) {
		if (s->faults[i].frame <= s->packets)
			json_object_array_add(faults, fault_json(s->faults + i));
	}
	json_object_object_add(all, "faults", faults);
	return json_finish(all);
}

static int report(const struct sender *s)
{
	const struct plan *p = &s->o->plan;
	uint64_t done = s->packets / plan_per_message(p);
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->o->n_faults; i++)
		n += s->faults[i].frame <= s->packets;
	if (!s->o->json || json_elsewhere())
		printf("%s: %" PRIu64 " messages of %" PRIu32 " bytes, %" PRIu64 " frames, %" PRIu64
		       " bytes, PSN 0x%06" PRIx32 " to 0x%06" PRIx32 ", faults: %u, %.6f s, %"
		       PRIu64 " late\n", s->line.name, done, p->size, s->line.frames, s->line.bytes,
		       p->like.psn, (uint32_t)(p->like.psn + s->packets - 1) & PSN_MASK, n,
		       seconds(&s->line), s->line.late);
	return s->o->json ? write_json(s) : EXIT_OK;
}

/* -------------------------------------------------------------- begin ---- */

static int map_payload(struct options *o, char *why)
{
	struct stat st;
	void *at;
	int fd;

	fd = open(o->payload, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		because(why, -1, "%s: %s", o->payload, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return because(why, -1, "%s: %s", o->payload,
			       st.st_size ? strerror(errno) : "it is empty");
	o->plan.data = at;
	o->plan.data_size = (uint64_t)st.st_size;
	return 0;
}

static int open_line(struct options *o, struct line *l, char *why)
{
	struct frame *f = &o->plan.like;

	if (o->file)
		return line_open_file(l, o->file, why);
	if (line_open_interface(l, o->interface, why))
		return -1;
	if (!o->from_mac)
		memcpy(f->from_mac, l->mac, 6);
	if (!o->from && line_address(l, f->from))
		return because(why, -1, "%s has no IPv4 address: give --source", o->interface);
	if (!o->to_mac)
		return arp_ask(o->interface, l->index, f->from_mac, f->from, f->to, f->to_mac, why);
	return 0;
}

int main(int argc, char **argv)
{
	static struct options o = {
		.plan = {
			.like = {
				.from_mac = { 2, 0, 0, 0, 0, 1 }, .to_mac = { 2, 0, 0, 0, 0, 2 },
				.ip = 4, .ttl = 64, .from_port = FROM_PORT, .to_port = ROCE_PORT,
				.pkey = 0xffff,
			},
			.transport = TRANSPORT_UC, .path_mtu = 1024, .size = 4096, .messages = 1,
			.has_immediate = true,
		},
	};
	static struct sender s = { .o = &o, .faults = o.faults };
	char why[WHY_SIZE];
	int bad;

	argp_program_version = "rashpa-inject " RASHPA_VERSION;
	tool_begin(argc, argv);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (o.payload && map_payload(&o, why))
		return fail("%s", why);
	bad = open_line(&o, &s.line, why);
	s.line.frames_per_second = o.frames_per_second;
	s.line.bits_per_second = o.bits_per_second;
	if (!bad)
		bad = send_all(&s, why);
	if (bad)
		say("%s", why);
	if (line_close(&s.line, why))
		return fail("%s", why);
	if (bad && !s.packets)
		return EXIT_FAILED;
	return report(&s) || bad ? EXIT_FAILED : EXIT_OK;
}
