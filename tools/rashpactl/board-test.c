// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl board test: promises of a profile, tried with its board. Nothing else may use the board. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/fpga.h"
#include "common/json-out.h"
#include "common/stats.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

#define LENGTH		65536u
#define STOPS		10
#define TRANSFERS	20
#define INTERRUPT_MS	2000
#define QUIET_MS	200	/* a write that is under way arrives within */
#define PATTERN		0x5a

enum verdict { PASSED, FAILED, SKIPPED };

struct test {
	struct fpga fpga;
	int memory, dmabuf, channel, map;
	unsigned char *data;
	uint64_t table_size;
	bool runs;			/* the board interrupts after PROGRAM */
	unsigned int failed;
	struct json_object *results, *transfers;	/* NULL: print */
};

static void __attribute__((format(printf, 4, 5)))
verdict(struct test *t, enum verdict v, const char *name, const char *format, ...)
{
	static const char *const words[] = { "passed", "failed", "skipped" };
	struct json_object *o;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	t->failed += v == FAILED;
	if (!t->results) {
		printf("%-8s%-12s%s\n", words[v], name, text);
		return;
	}
	o = json_object_new_object();
	put_text(o, "test", name);
	put_text(o, "verdict", words[v]);
	put_text(o, "text", text);
	json_object_array_add(t->results, o);
}

static bool is_ready(struct test *t)
{
	return !rashpa_device_get_info(t->fpga.device, &t->fpga.info) &&
	       t->fpga.info.out_state == RASHPA_STATE_READY;
}

/* Program the map, after events of earlier interrupts were taken. Return: 0 or an error. */
static int program(struct test *t, struct rashpa_program *program)
{
	struct pollfd channel = { .fd = t->channel, .events = POLLIN };
	struct rashpa_event event[64];

	while (poll(&channel, 1, 0) > 0 && read(t->channel, event, sizeof(event)) > 0)
		;
	*program = (struct rashpa_program) { .first = 0 };
	return rashpa_map_program(t->map, program);
}

static bool interrupted(const struct test *t)
{
	struct pollfd channel = { .fd = t->channel, .events = POLLIN };

	return poll(&channel, 1, INTERRUPT_MS) > 0;
}

/* Map the begin of the memory, in one segment or more. */
static bool map(struct test *t, uint32_t length, uint32_t *segments)
{
	struct rashpa_map_make make = { .fd = t->dmabuf, .length = length };

	if (t->map >= 0)
		close(t->map);
	t->map = rashpa_device_map(t->fpga.device, &make);
	t->table_size = make.out_table_size;
	if (segments)
		*segments = make.out_segments;
	return t->map >= 0;
}

/* Has the memory stayed as it is filled now? */
static bool quiet(struct test *t)
{
	memset(t->data, PATTERN, LENGTH);
	usleep(QUIET_MS * 1000);
	for (uint32_t i = 0; i < LENGTH; i++)
		if (t->data[i] != PATTERN)
			return false;
	return true;
}

/* --- the tests, in order --- */

static void test_stop(struct test *t)
{
	uint64_t ns, most = 0;

	for (int i = 0; i < STOPS; i++) {
		if (rashpa_device_quiesce(t->fpga.device, &ns)) {
			verdict(t, FAILED, "stop", "%s", rashpa_reason());
			return;
		}
		most = ns > most ? ns : most;
	}
	verdict(t, PASSED, "stop", "%d times, %.3f ms at most", STOPS, most / 1e6);
}

static void test_mask(struct test *t)
{
	const uint32_t bits = t->fpga.info.out_dma_bits;
	const struct rashpa_table *table;
	bool above = false;
	int error;

	if (!map(t, LENGTH, NULL)) {
		verdict(t, FAILED, "map", "%s", rashpa_reason());
		return;
	}
	error = rashpa_table_map(t->map, t->table_size, &table);
	if (error) {
		verdict(t, error == -EPERM ? SKIPPED : FAILED, "mask", "%s", rashpa_reason());
		return;
	}
	for (uint32_t i = 0; i < table->count; i++)
		above |= bits < 64 && (table->segment[i].address + table->segment[i].length - 1) >>
			 bits;
	verdict(t, above ? FAILED : PASSED, "mask", "%" PRIu32 " segments, %s %" PRIu32 " bits",
		table->count, above ? "not all within" : "all within", bits);
	rashpa_table_unmap(table, t->table_size);
	/* a process that maps addresses makes the end of a map stop the whole board */
	map(t, LENGTH, NULL);
}

static void test_program(struct test *t)
{
	struct rashpa_program p;
	const int error = t->map < 0 ? -EBADF : program(t, &p);

	if (error) {
		verdict(t, error == -ENOENT ? SKIPPED : FAILED, "program", "%s", rashpa_reason());
		return;
	}
	verdict(t, PASSED, "program", "%" PRIu64 " entries, %" PRIu64 " descriptors",
		(uint64_t)p.out_entries, (uint64_t)p.out_descriptors);
	t->runs = interrupted(t);
	verdict(t, t->runs ? PASSED : SKIPPED, "interrupt", t->runs ? "after the addresses" :
		"none in 2 s: the board does not start with its addresses; run this while it streams");
}

/* Median and maximum in ns from PROGRAM to the interrupt. False: the board did not run, or takes several segments. */
static bool transfer(struct test *t, uint32_t length, uint64_t *median, uint64_t *most)
{
	struct rashpa_program p;
	struct samples all = {};
	struct timespec begin, end;
	uint32_t segments;
	bool all_came;

	for (int i = 0; i < TRANSFERS; i++) {
		if (!map(t, length, &segments) || segments > 1)
			break;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		if (program(t, &p) || !interrupted(t))
			break;
		clock_gettime(CLOCK_MONOTONIC, &end);
		samples_add(&all, (end.tv_sec - begin.tv_sec) * UINT64_C(1000000000) + end.tv_nsec - begin.tv_nsec);
	}
	samples_sort(&all);
	*median = percentile(all.value, all.count, 50);
	*most = all.max;
	all_came = all.count == TRANSFERS;
	samples_free(&all);
	return all_came;
}

static void test_transfer(struct test *t)
{
	uint64_t median, most;
	struct json_object *o;

	for (uint32_t length = 4096; t->runs && length <= LENGTH; length *= 4) {
		if (!transfer(t, length, &median, &most)) {
			verdict(t, SKIPPED, "transfer", "%" PRIu32 " bytes need several segments, or came without an interrupt",
				length);
			break;
		}
		verdict(t, PASSED, "transfer", "%" PRIu32 " bytes in %.1f us, at most %.1f us, %.3f GB/s",
			length, median / 1e3, most / 1e3, (double)length / median);
		if (!t->transfers)
			continue;
		o = json_object_new_object();
		put_u64(o, "size_bytes", length);
		put_u64(o, "p50_ns", median);
		put_u64(o, "max_ns", most);
		json_object_array_add(t->transfers, o);
	}
	map(t, LENGTH, NULL);
}

static void test_load(struct test *t)
{
	struct rashpa_program p;
	uint64_t ns;
	bool silent;

	if (!t->runs) {
		verdict(t, SKIPPED, "load", "the board did not run");
		return;
	}
	/* an engine may have been done after one transfer */
	if (program(t, &p) || rashpa_device_quiesce(t->fpga.device, &ns) || !is_ready(t)) {
		verdict(t, FAILED, "load", "%s", rashpa_reason());
		return;
	}
	verdict(t, PASSED, "load", "stopped in %.3f ms while it ran", ns / 1e6);
	silent = quiet(t);
	verdict(t, silent ? PASSED : FAILED, "silence", "%d ms after the stop, %s", QUIET_MS,
		silent ? "nothing was written" : "the board wrote");
}

/* The end of a running map: stopped, and its addresses are gone. */
static void test_end(struct test *t)
{
	struct rashpa_program p;
	const bool again = t->runs && map(t, LENGTH, NULL) && !program(t, &p) && interrupted(t);
	bool good;

	if (t->map >= 0)
		close(t->map);
	t->map = -1;
	good = quiet(t);
	verdict(t, !is_ready(t) || !good ? FAILED : again || !t->runs ? PASSED : FAILED, "end",
		"%s map has ended, %s", again ? "a running" : "a",
		!is_ready(t) ? "and the board is stuck" : !good ? "and the board still writes" :
		!again && t->runs ? "but the board did not run again" : "nothing is written");
}

static void test_reset(struct test *t)
{
	const int error = rashpa_device_reset(t->fpga.device);

	if (error)
		verdict(t, error == -EOPNOTSUPP || error == -EPERM ? SKIPPED : FAILED, "reset", "%s",
			rashpa_reason());
	else
		verdict(t, is_ready(t) ? PASSED : FAILED, "reset", "%s", is_ready(t) ?
			"the board is ready again" : "the board is stuck");
}

static void run(struct test *t)
{
	const struct rashpa_device_info *i = &t->fpga.info;

	if (!is_ready(t)) {
		verdict(t, FAILED, "state", "the board is stuck: reset it, or correct its profile");
		return;
	}
	verdict(t, i->out_flags & RASHPA_DEVICE_PROFILE ? PASSED : FAILED, "state",
		"%s, %" PRIu32 " vectors, %" PRIu32 " engines",
		i->out_flags & RASHPA_DEVICE_PROFILE ? "a profile" : "no profile",
		i->out_vectors, i->out_engines);
	test_stop(t);
	test_mask(t);
	test_program(t);
	test_transfer(t);
	test_load(t);
	test_end(t);
	test_reset(t);
}

static int prepare(struct test *t)
{
	struct rashpa_alloc alloc = { .length = LENGTH };
	void *data;

	t->memory = rashpa_memory_open();
	if (t->memory < 0 || (t->dmabuf = rashpa_memory_alloc_for(t->memory, t->fpga.device, &alloc)) < 0 ||
	    rashpa_mmap(t->dmabuf, 0, LENGTH, PROT_READ | PROT_WRITE, &data) ||
	    (t->channel = rashpa_channel_open(t->fpga.device, 0)) < 0)
		return fail("fpga%u: %s", t->fpga.number, rashpa_reason());
	t->data = data;
	for (uint32_t v = 0; v < t->fpga.info.out_vectors; v++)
		if (rashpa_channel_add(t->channel, RASHPA_SOURCE_VECTOR, v) < 0)
			return fail("fpga%u: %s", t->fpga.number, rashpa_reason());
	return 0;
}

static void put_head(const struct test *t, struct json_object *o)
{
	const struct rashpa_device_info *i = &t->fpga.info;
	struct utsname name = {};
	char id[16];

	uname(&name);
	snprintf(id, sizeof(id), "%04" PRIx32 ":%04" PRIx32, i->out_vendor, i->out_device);
	if (o) {
		put_text(o, "id", id);
		put_text(o, "kernel", name.release);
		put_text(o, "version", rashpa_version());
		put_bool(o, "iommu", i->out_flags & RASHPA_DEVICE_IOMMU);
		json_object_object_add(o, "tests", t->results);
		json_object_object_add(o, "transfers", t->transfers);
		return;
	}
	printf("board test of fpga%u, %s, rashpa %s, Linux %s, iommu %s\n", t->fpga.number, id,
	       rashpa_version(), name.release, i->out_flags & RASHPA_DEVICE_IOMMU ? "on" : "off");
}

int cmd_board_test(int argc, char **argv)
{
	struct test t = { .fpga = FPGA_NONE, .memory = -1, .dmabuf = -1, .channel = -1, .map = -1 };
	struct json_object *o = NULL;
	const char *name;
	int result;

	command_simple(argc, argv, &name);
	result = fpga_named(&t.fpga, name);
	if (!result && t.fpga.info.out_maps)
		result = fail("fpga%u has %" PRIu32 " maps: end the programs that use it first",
			      t.fpga.number, t.fpga.info.out_maps);
	if (!result)
		result = prepare(&t);
	if (!result) {
		if (command_json) {
			o = json_object_new_object();
			t.results = json_object_new_array();
			t.transfers = json_object_new_array();
		}
		put_head(&t, o);
		run(&t);
		if (o && json_finish(o))
			result = EXIT_FAILED;
		else if (t.failed)
			result = fail("fpga%u: %u tests failed", t.fpga.number, t.failed);
	}
	if (t.map >= 0)
		close(t.map);
	if (t.channel >= 0)
		close(t.channel);
	if (t.data)
		munmap(t.data, LENGTH);
	if (t.dmabuf >= 0)
		close(t.dmabuf);
	if (t.memory >= 0)
		close(t.memory);
	fpga_close(&t.fpga);
	return result;
}
