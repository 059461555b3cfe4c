// SPDX-License-Identifier: LGPL-2.1-or-later
/* check and plan: answers of the daemons before anything is started. */
#include "manager/manager.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"
#include "common/parse.h"
#include "common/shown.h"

#define UDP_HEADERS	(20 + 8)	/* of IPv4, and UDP */
#define SLOTS_LEAST	2
#define PATH_HEADERS	(40 + 8 + 36)	/* of IPv6, UDP, and RDMA: most that a packet has */
#define MESSAGE_LEAST	64	/* as remu takes it */
#define PAGE		4096	/* stacks begin at pages */
#define GAINS		3	/* gains of a JUNGFRAU */
#define UNIT_IMAGES	16	/* most images in a processing unit's ring (RFPGA_UNIT_SLOTS_MAX) */

/* --- asking: each daemon configures itself, reports the result, and forgets it --- */

static void ask_all(struct experiment *e, const struct options *o, const char *what,
		    const volatile bool *stop)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		if (!p->wire || (p->failed && strcmp(what, "reset")))
			continue;
		if (!strcmp(what, "configure"))
			ask(p, configuration(p));
		else if (p->asked)
			ask_simply(p, "stop");
		else
			ask_simply(p, what);
	}
	parties_settle(e, o, stop);
}

static void look_ahead(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	const volatile bool never = false;

	e->run = 1;
	ask_all(e, o, "configure", stop);
	ask_all(e, o, "get-status", stop);
	ask_all(e, o, "reset", &never);
}

/* --- what is there --- */

static const xmlNode *things(const struct party *p)
{
	return p->capabilities ? element_first(telegram_content(p->capabilities)) : NULL;
}

/* The element of this kind with this name, or NULL; name NULL: any name. */
static const xmlNode *thing(const struct party *p, const char *kind, const char *name)
{
	const xmlNode *node = things(p);

	for (; node; node = element_next(node)) {
		char text[256];

		if (!strcmp(element_name(node), kind) &&
		    (!name || !strcmp(attribute(node, "name", text, sizeof(text)), name)))
			return node;
	}
	return NULL;
}

static uint64_t number_of(const xmlNode *node, const char *name)
{
	uint64_t value = 0;

	return node && attribute_number(node, name, &value) ? value : 0;
}

static uint64_t number_setting(const struct party *p, const char *name, uint64_t otherwise)
{
	char text[64];
	uint64_t value;

	return parse_u64(setting(p, name, text, sizeof(text)), UINT64_MAX, &value) ? value :
	       otherwise;
}

/* Pixels per image that this detector sends: its regions, or the whole image (regions is 0). */
static uint64_t pixels(const struct party *p, unsigned int *regions)
{
	const xmlNode *node = element_first(p->node);
	char text[256];
	struct region r;
	uint64_t sum = 0;

	*regions = 0;
	for (; node; node = element_next(node)) {
		if (strcmp(element_name(node), "dtp") ||
		    !parse_region(element_text(node, text, sizeof(text)), &r))
			continue;
		sum += (uint64_t)r.width * r.height;
		++*regions;
	}
	return *regions ? sum : (uint64_t)p->width * p->height;
}

static uint64_t pixel_size(const struct party *p)
{
	const char *digits = strpbrk(p->pixel, "0123456789");

	return digits ? strtoull(digits, NULL, 10) / 8 : 0;
}

static uint64_t image_bytes(const struct party *p)
{
	unsigned int regions;

	return pixels(p, &regions) * pixel_size(p);
}

/* Share of the images that goes to one of its receivers: 1 of N. */
static unsigned int share_of(const struct flow *f)
{
	const struct experiment *e = f->from->experiment;
	unsigned int receivers = 0;

	for (unsigned int i = 0; i < e->flows; i++)
		receivers += e->flow[i].from == f->from;
	return has_setting(f->from, "share") ? receivers : 1;
}

/* --- check --- */

struct findings {
	struct json_object *list;	/* or NULL: as text */
	unsigned int problems;
};

__attribute__((format(printf, 4, 5)))
static void find(struct findings *to, const struct party *p, bool problem, const char *format, ...)
{
	char text[WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	to->problems += problem;
	if (!to->list) {
		printf("%-8s %-20s %s\n", problem ? "problem" : "note", p->name,
		       SHOWN(text));
		return;
	}
	struct json_object *o = json_object_new_object();

	put_text(o, "name", p->name);
	put_bool(o, "problem", problem);
	put_text(o, "text", text);
	json_object_array_add(to->list, o);
}

static bool same_machine(const struct flow *f)
{
	char a[1024] = "", b[1024] = "";

	if (f->from->capabilities)
		attribute(telegram_content(f->from->capabilities), "machine", a, sizeof(a));
	if (f->to->capabilities)
		attribute(telegram_content(f->to->capabilities), "machine", b, sizeof(b));
	return !strcmp(a, b);
}

/* As capabilities have it. */
static const char *board_of(const struct party *p, char *name, size_t size)
{
	char text[64];

	setting(p, "fpga", text, sizeof(text));
	snprintf(name, size, "fpga%s", strncmp(text, "fpga", 4) ? *text ? text : "0" : text + 4);
	return name;
}

static void check_board(struct findings *to, const struct flow *f)
{
	char text[64], name[80];
	const xmlNode *board, *buffer;
	unsigned int regions;

	board_of(f->from, name, sizeof(name));
	board = thing(f->from, "board", name);
	if (!same_machine(f))
		find(to, f->from, true, "it fills a buffer of another machine: use roce or udp");
	if (!strcmp(f->transport->name, "memory"))
		return;
	if (!board) {
		find(to, f->from, true, "there is no %s: see rashpactl list", name);
		return;
	}
	pixels(f->from, &regions);
	if (!regions)
		regions = number_setting(f->from, "split",
					 transport_regions(f->transport, f->from->height));
	if (number_of(board, "processes") && regions > number_of(board, "processes"))
		find(to, f->from, true, "%s has %" PRIu64 " processes, but %u are required", name,
		     number_of(board, "processes"), regions);
	buffer = thing(f->to, "buffer", setting(f->to, "buffer", text, sizeof(text)));
	if (buffer && number_of(buffer, "node") != number_of(board, "node"))
		find(to, f->to, false, "buffer %s is on NUMA node %" PRIu64 ", %s on node %" PRIu64,
		     text, number_of(buffer, "node"), name, number_of(board, "node"));
}

static void check_buffer(struct findings *to, const struct flow *f)
{
	const uint64_t bunch = number_setting(f->from, "bunch", 8);
	char name[256];
	const xmlNode *buffer;
	/* regions of several detectors make one image: this is the least; a payload is elsewhere */
	const uint64_t least = has_setting(f->from, "payload") || has_setting(f->to, "payload") ?
			       0 : SLOTS_LEAST * bunch * image_bytes(f->from);

	buffer = thing(f->to, "buffer", setting(f->to, "buffer", name, sizeof(name)));
	if (strchr(name, '/'))
		return;		/* a file, which its producer makes */
	if (!*name) {
		find(to, f->to, true, "the buffer is not named: give <buffer>");
	} else if (!buffer) {
		const xmlNode *memory = thing(f->to, "memory", NULL);

		find(to, f->to, true, "there is no buffer %s: rashpactl buffer create %s %" PRIu64
		     "M (free in one piece: %" PRIu64 " MiB)", name, name, (least >> 20) * 2 + 2,
		     number_of(memory, "free") >> 20);
	} else if (least && number_of(buffer, "bytes") < least) {
		find(to, f->to, true, "buffer %s has %" PRIu64 " bytes, and %d stacks of %" PRIu64
		     " images are %" PRIu64, name, number_of(buffer, "bytes"), SLOTS_LEAST, bunch,
		     least);
	}
}

/* --- a receiver that processes on a board: as the engine itself would refuse it --- */

/* Planes of a calibration: as many as the detector has gains. */
static unsigned int planes_of(const struct party *p)
{
	const xmlNode *node = element_find(p->node, "pipeline");
	char *text = node ? element_text_whole(node) : NULL;
	struct json_object *pipeline = text ? json_tokener_parse(text) : NULL, *pretreat, *detector;
	const bool known = json_object_object_get_ex(pipeline, "pretreat", &pretreat) &&
			   json_object_object_get_ex(pretreat, "detector", &detector);
	const char *name = known ? json_object_get_string(detector) : NULL;
	const unsigned int planes = name && !strcmp(name, "jungfrau") ? GAINS : 1;

	json_object_put(pipeline);
	free(text);
	return planes;
}

static uint64_t whole(uint64_t bytes, uint64_t of)
{
	return (bytes + of - 1) / of * of;
}

/* Images from another board, into the half of the memory that is offered. */
static void check_offer(struct findings *to, const struct flow *f, const char *engine,
			uint64_t half)
{
	const uint64_t bunch = number_setting(f->from, "bunch", 8);
	const uint64_t image = image_bytes(f->from), stack = whole(bunch * image, PAGE);
	const uint64_t fit = stack ? half / stack : 0;
	/* as many as fit, if nothing is said */
	const uint64_t slots = number_setting(f->from, "slots", fit > SLOTS_LEAST ? fit :
					      SLOTS_LEAST);
	char offer[64], payload[64];

	setting(f->to, "offer", offer, sizeof(offer));
	if (strcmp(setting(f->from, "payload", payload, sizeof(payload)), offer))
		find(to, f->from, true, "%s takes images from memory %s: give %s <payload>%s</payload>",
		     f->to->name, offer, f->from->name, offer);
	if (image && slots * stack > half)
		find(to, f->to, true, "%s offers %" PRIu64 " bytes of its memory, and %" PRIu64
		     " slots of %" PRIu64 " images take %" PRIu64
		     ": give %s fewer <slots>, or a smaller <bunch>", engine, half, slots, bunch,
		     slots * stack, f->from->name);
	else if (image && slots * bunch > UNIT_IMAGES)
		find(to, f->to, true, "the processing unit of %s takes %d images in its memory, and %"
		     PRIu64 " slots of %" PRIu64 " have %" PRIu64
		     ": give %s <slots>%" PRIu64 "</slots>, or a smaller <bunch>", engine,
		     UNIT_IMAGES, slots, bunch, slots * bunch, f->from->name, UNIT_IMAGES / bunch);
	if (bunch > 1 && stack != bunch * image)
		find(to, f->to, true, "%s takes no gaps, but gaps follow stacks of %" PRIu64
		     " images of %" PRIu64 " bytes: give %s <bunch>1</bunch>", engine, bunch, image,
		     f->from->name);
}

static void check_engine(struct findings *to, const struct flow *f)
{
	char engine[64], own[80], text[64];
	const uint64_t floats = pixels(f->from, &(unsigned int){ 0 }) * sizeof(float);
	const uint64_t planes = 2 * whole(planes_of(f->to) * floats, 64) + 2 * whole(floats, 64);
	uint64_t memory, raw;
	const xmlNode *board;

	setting(f->to, "engine", engine, sizeof(engine));
	if (strncmp(engine, "fpga", strlen("fpga")))
		return;
	board = thing(f->to, "board", engine);
	if (!board) {
		find(to, f->to, true, "there is no %s: see rashpactl list", engine);
		return;
	}
	if (!*f->address && same_machine(f) &&
	    !strcmp(engine, board_of(f->from, own, sizeof(own))))
		find(to, f->to, true, "%s is also the board of %s: use another board for one of them", engine,
		     f->from->name);
	if (*attribute(board, "pretreats", text, sizeof(text)) && strcmp(text, "true"))
		find(to, f->to, true, "%s has no processing unit: use <engine>cpu</engine>",
		     engine);
	memory = number_of(board, "memory");
	if (!memory)
		return;
	raw = 2 * whole(image_bytes(f->from), 64);
	if (has_setting(f->to, "offer")) {
		raw = memory / 2 / PAGE * PAGE;
		check_offer(to, f, engine, raw);
	}
	if (floats && raw + planes > memory)
		find(to, f->to, true, "%s has %" PRIu64 " bytes of memory, and images of %" PRIu64
		     " bytes with calibration and results take %" PRIu64
		     ": use <engine>cpu</engine>, or send smaller regions", engine, memory,
		     image_bytes(f->from), raw + planes);
}

static uint64_t most_mtu(const struct party *p)
{
	const xmlNode *node = things(p);
	uint64_t most = 0;

	for (; node; node = element_next(node)) {
		if (!strcmp(element_name(node), "nic") && number_of(node, "mtu") > most)
			most = number_of(node, "mtu");
	}
	return most;
}

/* A packet larger than the path's MTU is lost, or fragmented: one lost fragment loses all of it. */
static void check_path(struct findings *to, const struct flow *f)
{
	const uint64_t room = f->carries > PATH_HEADERS ? f->carries - PATH_HEADERS : 0;
	char instead[96] = "";

	if (f->carries >= f->needs)
		return;
	if (f->transport->has & TRANSPORT_DATAGRAMS && !f->transport->packet &&
	    room >= MESSAGE_LEAST) {
		snprintf(instead, sizeof(instead), ", or give %s <message>%" PRIu64 "</message>",
			 f->from->name, room);
	} else if (f->transport->has & TRANSPORT_RDMA) {
		uint64_t mtu = 4096;

		while (mtu > room)
			mtu /= 2;
		if (mtu >= 256)
			snprintf(instead, sizeof(instead), ", or give both <mtu>%" PRIu64 "</mtu>",
				 mtu);
	}
	find(to, f->from, true, "its packets to %s have %" PRIu64
	     " bytes, but the path carries %" PRIu64
	     " unfragmented: raise the MTU of interfaces, switches and routers on it to %" PRIu64
	     "%s", f->address, f->needs, f->carries, f->needs, instead);
}

static void check_network(struct findings *to, const struct flow *f)
{
	const struct party *const ends[] = { f->from, f->to };
	const uint32_t least = f->transport->packet + UDP_HEADERS;
	uint64_t mtu[2] = {};

	for (unsigned int i = 0; i < 2; i++) {
		char name[64];
		const xmlNode *nic = thing(ends[i], "nic",
					   setting(ends[i], "device", name, sizeof(name)));

		if (*name && !nic)
			find(to, ends[i], true, "there is no RDMA device %s", name);
		mtu[i] = number_setting(ends[i], "mtu", *name ? number_of(nic, "mtu") : 0);
		/* if the path was tried, its MTU need not be checked */
		if (f->transport->packet && !f->carries && most_mtu(ends[i]) < least)
			find(to, ends[i], true, "packets of a JUNGFRAU need an MTU of %u, and no interface has that: they may not be fragmented",
			     least);
	}
	if (mtu[0] && mtu[1] && mtu[0] != mtu[1] && f->transport->has & TRANSPORT_RDMA)
		find(to, f->to, true, "its packets have %" PRIu64 " bytes, those of %s %" PRIu64
		     ": give both the same <mtu>", mtu[1], f->from->name, mtu[0]);
	check_path(to, f);
}

static void check_disk(struct findings *to, const struct flow *f)
{
	const xmlNode *disk = thing(f->to, "disk", NULL);
	const uint64_t images = number_setting(f->from, "images", 0) / share_of(f);
	const uint64_t need = images * image_bytes(f->from);
	char path[1024];

	if (!disk || !has_setting(f->to, "write"))
		return;
	if (need > number_of(disk, "free"))
		find(to, f->to, true, "it writes %" PRIu64 " MiB, and %s has %" PRIu64 " MiB",
		     need >> 20, attribute(disk, "path", path, sizeof(path)),
		     number_of(disk, "free") >> 20);
}

int check(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	struct findings found = { .list = o->json ? json_object_new_array() : NULL };

	look_ahead(e, o, stop);
	for (unsigned int i = 0; i < e->parties; i++) {
		if (e->party[i].failed)
			find(&found, &e->party[i], true, "it refuses, or does not answer: see above");
	}
	for (unsigned int i = 0; i < e->flows; i++) {
		const struct flow *f = &e->flow[i];

		if (f->from->failed || f->to->failed)
			continue;
		if (*f->address)
			check_network(&found, f);
		else
			check_board(&found, f);
		check_buffer(&found, f);
		check_engine(&found, f);
		check_disk(&found, f);
	}
	if (!found.list && !found.problems)
		printf("nothing is in the way\n");
	if (found.list && json_finish(found.list))
		return EXIT_FAILED;
	return found.problems ? EXIT_FAILED : 0;
}

/* --- plan --- */

struct planned {
	uint64_t bytes;			/* bytes per image */
	double rate;			/* images per second; 0: as fast as it goes */
	double engine, link;		/* the same of who processes, of the NIC; 0: not known */
	const char *limit;
};

static double rate_of(const struct party *p)
{
	const xmlNode *own = thing(p, "rate", NULL);
	char text[64];
	double rate;

	/* that of the experiment, or else the one that the daemon was started with */
	if (!*setting(p, "rate", text, sizeof(text)) && own)
		element_text(own, text, sizeof(text));
	return parse_real(text, &rate) ? rate : 0;
}

static void lower(struct planned *p, double rate, const char *why)
{
	if (rate <= 0 || (p->rate > 0 && p->rate <= rate))
		return;
	p->rate = rate;
	p->limit = why;
}

static struct planned plan_flow(const struct flow *f)
{
	struct planned p = { .bytes = image_bytes(f->from), .limit = "detector" };
	char name[64], engine[64];
	const xmlNode *nic;

	p.rate = rate_of(f->from) / share_of(f) / number_setting(f->from, "sampling", 1);
	if (!p.bytes)
		return p;
	nic = thing(f->to, "nic", setting(f->to, "device", name, sizeof(name)));
	p.link = number_of(nic, "bits-per-second") / 8.0 / p.bytes;
	setting(f->to, "engine", engine, sizeof(engine));
	if (has_setting(f->to, "pipeline"))
		p.engine = number_of(thing(f->to, "engine", *engine ? engine : "cpu"),
				     "bytes-per-second") / (double)p.bytes;
	lower(&p, p.link, "link");
	lower(&p, p.engine, "engine");
	if (!p.rate)
		p.limit = "not known";
	return p;
}

static struct json_object *plan_json(const struct flow *f, const struct planned *p)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "from", f->from->name);
	put_text(o, "to", f->to->name);
	put_text(o, "transport", f->transport->name);
	put_text(o, "address", *f->address ? f->address : NULL);
	put_int(o, "width", f->from->width);
	put_int(o, "height", f->from->height);
	put_text(o, "pixel", f->from->pixel);
	put_u64(o, "image_bytes", p->bytes);
	put_int(o, "share", share_of(f));
	put_real(o, "images_per_second", p->rate);
	put_real(o, "bytes_per_second", p->rate * p->bytes);
	put_text(o, "limit", p->limit);
	return o;
}

static void plan_text(const struct flow *f, const struct planned *p)
{
	char size[32];

	snprintf(size, sizeof(size), "%" PRIu32 "x%" PRIu32 " %s", f->from->width, f->from->height,
		 f->from->pixel);
	printf("%-16s %-16s %-9s %-18s 1 of %-3u", f->from->name, f->to->name, f->transport->name,
	       size, share_of(f));
	if (p->rate)
		printf(" %12.6g %10.4f %s\n", p->rate, p->rate * p->bytes / 1e9,
		       SHOWN(p->limit));
	else
		printf(" %12s %10s %s\n", "as it goes", "-", SHOWN(p->limit));
}

int plan(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	struct json_object *list = o->json ? json_object_new_array() : NULL;

	look_ahead(e, o, stop);
	if (!list)
		printf("%-16s %-16s %-9s %-18s %-8s %12s %10s %s\n", "FROM", "TO", "TRANSPORT",
		       "IMAGE", "SHARE", "IMAGES/S", "GB/S", "LIMIT");
	for (unsigned int i = 0; i < e->flows; i++) {
		const struct planned p = plan_flow(&e->flow[i]);

		if (list)
			json_object_array_add(list, plan_json(&e->flow[i], &p));
		else
			plan_text(&e->flow[i], &p);
	}
	if (list && json_finish(list))
		return EXIT_FAILED;
	for (unsigned int i = 0; i < e->parties; i++) {
		if (e->party[i].failed)
			return EXIT_FAILED;
	}
	return 0;
}
