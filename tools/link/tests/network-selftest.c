// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=1 run=build/tools/network-selftest */
/*
 * Tests of the control messages of two machines before images flow: TAP. With a folder as argument:
 * writes initial messages for a fuzzer there instead.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/contract.h"
#include "link/cpus.h"
#include "common/json-out.h"
#include "link/control-link.h"
#include "link/packet.h"
#include "link/tests/network-selftest.h"
#include "common/say.h"
#define TAP_LINKAGE	/* other files use the functions, too */
#include "tests/tap.h"

/* --- regions --- */

/* Is each byte of the region in one message, in order, and no message too long? */
static bool covers(const struct cut *c, uint32_t most)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < c->messages; i++) {
		const struct piece p = cut_piece(c, i);

		if (!p.bytes || p.bytes > most || at != (uint64_t)p.y * c->line_bytes + p.offset)
			return false;
		at += p.bytes;
	}
	return at == (uint64_t)c->height * c->line_bytes;
}

static void test_cut(void)
{
	static const struct {
		uint32_t width, height, pixel, most, lines, parts, messages;
		bool adjacent;
	} cases[] = {
		{ 1024, 512, 2, 4096, 2, 1, 256, true },	/* two lines fit */
		{ 1024, 512, 2, 4096, 1, 1, 512, false },	/* but have a gap between them */
		{ 1024, 512, 2, 1024, 0, 2, 1024, true },
		{ 1030, 3, 2, 1024, 0, 3, 9, true },		/* 1024, 1024 and 12 bytes */
		{ 7, 5, 4, 64, 2, 1, 3, true },			/* two, two and one line */
		{ 1, 1, 1, 64, 1, 1, 1, true },
		{ 100, 3, 8, 100, 0, 9, 27, false },		/* 12 pixels, not 12.5 */
		{ 65536, 65536, 4, 1u << 31, 8192, 1, 8, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct cut c = cut_region(cases[i].width, cases[i].height, cases[i].pixel,
						cases[i].adjacent, cases[i].most);

		ok(c.lines == cases[i].lines && (c.lines || c.parts == cases[i].parts) &&
		   c.messages == cases[i].messages && covers(&c, cases[i].most),
		   "x-pixels-bytes: %u x %u pixels of %u bytes, messages of %u: %u messages", cases[i].width,
		   cases[i].height, cases[i].pixel, cases[i].most, c.messages);
	}
}

/* --- hello and accept --- */

static struct contract_process processes[2] = {
	{ .width = 1024, .height = 256, .first = 0xfffffff0,
	  .end.address = { .gid = { 0, [10] = 0xff, 0xff, 10, 1, 0, 1 }, .qpn = 0x11,
			   .psn = 0xffffff } },
	{ .y = 256, .width = 1024, .height = 256, .origin_x = 3, .origin_y = 4,
	  .end.address = { .gid = { 1 }, .qpn = 0x12 } },
};

static struct hello hello = {
	.mtu = 4096, .message = 4096, .adjacent = 1, .paced = 1, .pixel = RASHPA_PIXEL_U16,
	.bunch = 8, .images = 100, .sampling = 2, .phase = 1, .dark_every = 2, .dataset_images = 10,
	.dataset_sum = UINT64_MAX, .dataset = "generate:10", .processes = 2, .process = processes,
};

static struct contract_end ends[2] = {
	{ .address = { .gid = { 7 }, .qpn = 1, .psn = 2 } }, { .address.qpn = 3 },
};

static const struct accept accept_ = {
	.address = UINT64_MAX - 4096, .key = UINT32_MAX, .slots = 5, .width = 1024, .mtu = 4096,
	.line_stride = 2048, .image_stride = 1 << 20, .slot_stride = 8 << 20, .first_stack = 77,
	.ends = 2, .end = ends,
};

static void test_hello(void)
{
	struct json_object *o = hello_write(&hello);
	struct hello read = {};
	char why[WHY_SIZE];
	bool same = !hello_read(o, &read, why);

	same = same && !memcmp(read.process, processes, sizeof(processes));
	free(read.process);
	read.process = processes;
	ok(same && !memcmp(&read, &hello, sizeof(read)), "hello-read-written: a hello is read as it was written");
	json_object_put(o);
}

static void test_accept(void)
{
	struct json_object *o = accept_write(&hello, &accept_);
	struct accept read = {};
	char why[WHY_SIZE];
	bool same = !accept_read(o, &hello, &read, why);

	same = same && !memcmp(read.end, ends, sizeof(ends));
	free(read.end);
	read.end = ends;
	ok(same && !memcmp(&read, &accept_, sizeof(read)), "acceptance-read-written: an accept is read as it was written");
	json_object_put(o);
}

/*
 * Is a message refused with another value of a member, or without it? A key that starts with a dot
 * is a member of the first element of "processes" or "ends".
 */
static bool refuses(bool of_hello, const char *key, const char *value)
{
	struct json_object *o = of_hello ? hello_write(&hello) : accept_write(&hello, &accept_);
	struct json_object *at = o;
	struct hello h = {};
	struct accept a = {};
	char why[WHY_SIZE] = "";
	bool refused;

	if (*key == '.') {
		json_object_object_get_ex(o, of_hello ? "processes" : "ends", &at);
		at = json_object_array_get_idx(at, 0);
		key++;
	}
	json_object_object_del(at, key);
	if (value)
		json_object_object_add(at, key, json_tokener_parse(value));
	refused = of_hello ? hello_read(o, &h, why) : accept_read(o, &hello, &a, why);
	hello_free(&h);
	accept_free(&a);
	json_object_put(o);
	return refused && strstr(why, key);
}

static void test_refusals(void)
{
	static const struct {
		bool of_hello;
		const char *key, *value;
	} cases[] = {
		{ true, "version", "2" }, { true, "version", NULL },
		{ true, "transport", "\"tcp\"" }, { true, "transport", "\"jungfrau\"" }, { true, "mtu", "10" },
		{ true, "mtu", "1000000" }, { true, "message", "0" }, { true, "pixel", "0" },
		{ true, "pixel", "99" }, { true, "bunch", "0" }, { true, "bunch", "-1" },
		{ true, "bunch", "\"8\"" }, { true, "bunch", "8.5" }, { true, "bunch", "null" },
		{ true, "images", "1e30" }, { true, "images", "18446744073709551615" },
		{ true, "sampling", "0" }, { true, "phase", "2" }, { true, "dataset", "17" },
		{ true, "dataset", "\"a\\u0000b\"" }, { true, "dataset", "\"\\u001b[2J\"" },
		{ true, "dataset", "\"\\u007f\"" }, { true, "processes", "[]" },
		{ true, "processes", "{}" }, { true, "processes", "[1]" }, { true, ".width", "0" },
		{ true, ".width", "65537" }, { true, ".height", NULL }, { true, ".x", "65536" },
		{ true, ".qpn", "16777216" }, { true, ".psn", "-1" }, { true, ".gid", "\"\"" },
		{ true, ".gid", "\"zz00000000000000ffff00000a010001\"" },
		{ false, "slots", "0" }, { false, "mtu", "90000" }, { false, "line_stride", "0" },
		{ false, "slot_stride", "-5" }, { false, "ends", "[]" },
		{ false, "ends", "[{}, {}, {}]" }, { false, "ends", "[1, 2]" },
		{ false, ".qpn", NULL },
	};
	unsigned int refused = 0, n = sizeof(cases) / sizeof(cases[0]);

	for (unsigned int i = 0; i < n; i++) {
		const char *value = cases[i].value;

		if (refuses(cases[i].of_hello, cases[i].key, value)) {
			refused++;
			continue;
		}
		printf("# %s: %s is accepted, or not named\n", cases[i].key, value ?: "no value");
	}
	ok(refused == n, "wrong-members-refused: %u of %u wrong members are refused, and named", refused, n);
}

/* Is a message refused because of the combination of its members? */
static bool refuses_all(const struct hello *h, const char *name)
{
	struct json_object *o = hello_write(h);
	struct hello read = {};
	char why[WHY_SIZE] = "";
	const bool refused = hello_read(o, &read, why);

	hello_free(&read);
	json_object_put(o);
	return refused && strstr(why, name);
}

static void test_together(void)
{
	struct contract_process tall = { .width = 1, .height = 65536 };
	struct hello many = hello, udp = hello;

	many.processes = udp.processes = 1;
	many.process = udp.process = &tall;
	many.transport = udp.transport = transport_named("udp");
	/* 2^31 messages: one image more than the limit */
	many.bunch = 32768;
	ok(refuses_all(&many, "too many for a stack"), "messages-counted-refused: more messages than can be counted are refused");
	many.bunch--;
	ok(!refuses_all(&many, ""), "one-image-less: one image less is accepted");
	udp.immediate = CONTRACT_STACK;
	ok(refuses_all(&udp, "immediate"), "packets-udp-without: UDP packets without message numbers are refused");
}

static void test_element(void)
{
	static const char * const wrong[] = { "-1", "101", "\"7\"", "7.0", "null", "[7]", "1e2" };
	struct json_object *list = json_tokener_parse("[7, 100]");
	char why[WHY_SIZE] = "";
	uint64_t value = 0;
	unsigned int refused = 0, n = sizeof(wrong) / sizeof(wrong[0]);

	ok(link_element(list, "sent", 1, 7, 100, &value, why) && value == 100, "element-read: an element is read");
	ok(!link_element(list, "sent", 2, 0, 100, &value, why) && strstr(why, "sent[2]"),
	   "one-not-missed: a missing element is refused: %s", why);
	json_object_put(list);
	for (unsigned int i = 0; i < n; i++) {
		list = json_object_new_array();
		json_object_array_add(list, json_tokener_parse(wrong[i]));
		refused += !link_element(list, "sent", 0, 0, 100, &value, why);
		json_object_put(list);
	}
	ok(refused == n, "wrong-elements-refused: %u of %u wrong elements are refused", refused, n);
}

static void test_messages(void)
{
	struct json_object *list = json_tokener_parse("[7, 100]");
	struct json_object *sent = sent_write(CONTRACT_END, 11, list), *credit = credit_write(CONTRACT_GO, 12);
	struct json_object *bye = bye_write(13, 14), *error = link_error("no room");
	uint64_t a = 0, b = 0;
	char why[WHY_SIZE], text[16];

	ok(!sent_read(sent, 2, 11, 11, &a, &list, why) && a == 11 &&
	   !sent_element(list, 1, 7, 100, &b, why) && b == 100, "sent-read-written: an end is read as it was written");
	ok(sent_read(sent, 3, 0, 11, &a, &list, why) && sent_read(sent, 2, 0, 10, &a, &list, why) &&
	   sent_read(sent, 2, 12, 20, &a, &list, why), "sent-limits: other processes, and images out of limits, are refused");
	ok(!credit_read(credit, &a, why) && a == 12 && credit_read(bye, &a, why),
	   "credit-read-written: credit is read as it was written");
	ok(!bye_read(bye, &a, &b, why) && a == 13 && b == 14 && bye_read(credit, &a, &b, why),
	   "bye-read-written: a bye is read as it was written");
	ok(link_error_read(error, text, sizeof(text)) && !strcmp(text, "no room") &&
	   !link_error_read(bye, text, sizeof(text)), "error-read-written: an error is read as it was written");
	json_object_put(sent);
	json_object_put(credit);
	json_object_put(bye);
	json_object_put(error);
}

/* --- packets --- */

static void test_packets(void)
{
	const struct packet p = { .token = 0x01020304, .process = 5, .number = 0xfffffff0 };
	const struct jungfrau j = { .frame = 1ull << 40, .packet = 127, .timestamp = 9, .row = 2, .column = 3 };
	static const size_t wrong[] = { 12, 46, 47 };	/* number of the packet, type, version */
	static char data[sizeof(j) + JUNGFRAU_BYTES];
	struct packet packet;
	struct jungfrau jungfrau;
	unsigned int refused = 0;

	packet_write(p, data);
	ok(!memcmp(data, "RSUS\4\3\2\1\5\0\0\0\xf0\xff\xff\xff", sizeof(p)), "packet-layout: a header is little-endian");
	ok(packet_read(&packet, data, sizeof(p) + 1) && packet.token == p.token &&
	   packet.process == 5 && packet.number == p.number, "packet-read-written: a header is read as it was written");
	*data ^= 1;
	ok(!packet_read(&packet, data, sizeof(p) + 1), "packet-strange: a packet of others is refused");
	*data ^= 1;
	ok(!packet_read(&packet, data, sizeof(p)), "packet-empty: a packet without pixels is refused");
	jungfrau_write(j, data);
	ok(jungfrau_read(&jungfrau, data, sizeof(data)) && jungfrau.frame == j.frame && jungfrau.packet == 127 &&
	   jungfrau.timestamp == 9 && jungfrau.row == 2 && jungfrau.column == 3, "jungfrau-read-written: a header is read as it was written");
	refused += !jungfrau_read(&jungfrau, data, sizeof(data) - 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		data[wrong[i]]++;
		refused += !jungfrau_read(&jungfrau, data, sizeof(data));
		data[wrong[i]]--;
	}
	memset(data, 0, sizeof(j.frame));
	refused += !jungfrau_read(&jungfrau, data, sizeof(data));
	ok(refused == 5, "jungfrau-strange: %u of 5 wrong packets are refused", refused);
}

/* --- the link --- */

static bool two_ends(struct link *a, struct link *b)
{
	struct wire_listener listener;
	char why[WHY_SIZE];
	bool there;

	*a = (struct link)LINK_NONE;
	*b = (struct link)LINK_NONE;
	there = !wire_listen_open("127.0.0.1:0", NULL, &listener, why) &&
		!link_connect(a, listener.at, NULL, why);
	if (there) {
		struct pollfd pollfd = { .fd = listener.fd, .events = POLLIN };

		there = poll(&pollfd, 1, -1) == 1 && !link_accept(&listener, b, why);
	}
	wire_unlisten(&listener);
	return there;
}

/* A message arrives after a moment, also on this machine. */
static int take(struct link *l, struct json_object **message, char *why)
{
	struct pollfd pollfd = link_poll(l);

	poll(&pollfd, 1, -1);
	return link_take(l, message, why);
}

static bool put_bytes(const struct link *l, uint32_t length, const char *text)
{
	const int fd = wire_fd(l->wire);
	const uint32_t big = htonl(length);

	return write(fd, &big, sizeof(big)) == sizeof(big) &&
	       write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static void test_link(void)
{
	struct json_object *o = NULL;
	struct link a, b;
	char why[WHY_SIZE] = "";
	bool whole = true;

	if (!two_ends(&a, &b))
		return;
	o = link_message("credit");
	put_u64(o, "credit", 5);
	ok(!link_send(&a, o, why) && take(&b, &o, why) == 1 && !strcmp(link_kind(o), "credit"),
	   "message-sent: a message arrives as it was sent");
	json_object_put(o);
	/* send a message byte by byte */
	for (const char *c = "\0\0\0\x0e{\"kind\":\"end\"}", *end = c + 18; c < end; c++) {
		const int found = write(wire_fd(a.wire), c, 1) == 1 ? take(&b, &o, why) : -1;

		whole &= found == (c + 1 == end);
	}
	ok(whole && o && !strcmp(link_kind(o), "end"), "message-pieces-one: a message in pieces is taken after the last piece");
	json_object_put(o);
	link_close(&a);
	ok(take(&b, &o, why) < 0 && strstr(why, "closed"), "end: the end of a link is an error: %s", why);
	link_close(&b);
	if (!two_ends(&a, &b))
		return;
	ok(!link_send(&a, link_message("hello"), why) && !link_gone(&b, why),
	   "one-something-not: a peer with unread data has not gone");
	link_close(&a);
	ok(link_gone(&b, why) && strstr(why, "closed"), "one-closed-whatever: a peer that has closed has gone, also with unread data");
	link_close(&b);
}

static bool is_refused(uint32_t length, const char *text)
{
	struct json_object *o = NULL;
	struct link a, b;
	char why[WHY_SIZE] = "";
	bool refused;

	if (!two_ends(&a, &b))
		return false;
	refused = put_bytes(&a, length, text) && take(&b, &o, why) < 0 && !o && *why;
	link_close(&a);
	link_close(&b);
	return refused;
}

static void test_nonsense(void)
{
	static const char * const texts[] = {
		"{}", "[]", "null", "17", "{\"kind\":17}", "{\"kind\":\"end\"", "{'kind':'end'}",
		"{\"kind\":\"end\"}x", "[[[[[[[[[[[[1]]]]]]]]]]]]", "\xff\xfe",
		"{\"kind\":\"a\",\"x\":[[[[[[[[[[[[1]]]]]]]]]]]]}", "{\"kind\":\"\xff\"}",
		"{\"kind\":\"\\u001b]0;\"}", "{\"kind\":\"e\\u0000nd\"}",
	};
	unsigned int refused = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (is_refused(strlen(texts[i]), texts[i]))
			refused++;
		else
			printf("# %s is accepted\n", texts[i]);
	}
	ok(refused == sizeof(texts) / sizeof(texts[0]), "no-message-refused: invalid messages are refused");
	ok(is_refused(0, "") && is_refused(WIRE_MOST + 1, "x") && is_refused(0x47455420, "/ HTTP"),
	   "lengths-cannot-refused: invalid lengths are refused before data are read");
}

/* The first byte sets the size of the pieces in which the fuzzer sends the message. */
static bool write_seed(const char *folder, const char *name, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	const uint32_t length = htonl(strlen(text));
	char path[PATH_MAX];
	bool written = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (f) {
		written = fputc(0xff, f) != EOF && fwrite(&length, sizeof(length), 1, f) == 1 &&
			  fputs(text, f) != EOF;
		written = !fclose(f) && written;
	}
	json_object_put(o);
	return written;
}

static int write_seeds(const char *folder)
{
	const bool written = write_seed(folder, "hello", hello_write(&hello)) &&
			     write_seed(folder, "accept", accept_write(&hello, &accept_)) &&
			     write_seed(folder, "ready", link_message(CONTRACT_READY)) &&
			     write_seed(folder, "credit", credit_write(CONTRACT_CREDIT, 7)) &&
			     write_seed(folder, "bye", bye_write(1, 2)) &&
			     write_seed(folder, "error", link_error("no room")) &&
			     write_seed(folder, "end", sent_write(CONTRACT_END, 9, json_tokener_parse("[1, 2]")));

	return written ? 0 : 1;
}

/* --- threads on processors --- */

static void *where(void *arg)
{
	pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), arg);
	return NULL;
}

static void test_cpus(void)
{
	hwloc_bitmap_t list = hwloc_bitmap_alloc();
	unsigned int wrong = 0, n = 0, cpu;
	cpu_set_t mine, its[CPU_SETSIZE];
	pthread_t thread;

	sched_getaffinity(0, sizeof(mine), &mine);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &mine))
			hwloc_bitmap_set(list, cpu);
	}
	/* a thread for each processor, and one more */
	for (n = 0; n <= (unsigned int)CPU_COUNT(&mine); n++) {
		if (cpus_thread(&thread, where, &its[n % CPU_COUNT(&mine)], list, n)) {
			wrong++;
			continue;
		}
		pthread_join(thread, NULL);
	}
	n = 0;
	hwloc_bitmap_foreach_begin(cpu, list) {
		wrong += CPU_COUNT(&its[n]) != 1 || !CPU_ISSET(cpu, &its[n]);
		n++;
	}
	hwloc_bitmap_foreach_end();
	ok(n && !wrong, "threads-processors-list: threads run on the processors of a list, in turn");
	hwloc_bitmap_free(list);
}

int main(int argc, char **argv)
{
	hello.transport = transport_named("roce");
	if (argc > 1)
		return write_seeds(argv[1]);
	test_cut();
	test_hello();
	test_accept();
	test_refusals();
	test_together();
	test_element();
	test_messages();
	test_packets();
	test_link();
	test_nonsense();
	test_cpus();
	test_intake();
	return tap_end();
}
