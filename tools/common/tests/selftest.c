// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=2 run=build/tools/tools-selftest args=tools/data/profiles */
/* Tests of the tools' logic that needs no kernel: TAP. Argument: folder of the profiles. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dataset/dataset.h"
#include "common/geometry.h"
#include "rashpactl/gpus.h"
#include "rashpactl/nics.h"
#include "rashpactl/topology.h"
#include "common/iommu.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "common/path.h"
#include "rashpactl/profile-file.h"
#include <rashpa.h>
#include <rashpa-fpga.h>
#include "common/say.h"
#include "common/shown.h"
#include "rashpactl/signing.h"
#include "common/stats.h"
#include "common/stop.h"
#include "common/text-file.h"
#include "rashpactl/versions.h"
#include "tests/tap.h"

/* --- sizes --- */

static void test_sizes(void)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{ "0", 0 }, { "1", 1 }, { "64M", 64 << 20 }, { "2g", 2ull << 30 },
		{ "0x10K", 16 << 10 },
		{ "3T", 3ull << 40 }, { "5MiB", 5 << 20 }, { "18446744073709551615", UINT64_MAX },
		{ "010", 10 }, { "17179869183G", 17179869183ull << 30 },
	};
	static const char *const bad[] = {
		"", " 1", "-1", "+1", "1 ", "1X", "M", "1MB", "1MM", "0x", "1.5G", "1e3",
		"18446744073709551616", "17179869184G", "16777216T", "0xg",
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(parse_size(good[i].text, &value) && value == good[i].value, "size: size \"%s\"",
		   good[i].text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!parse_size(bad[i], &value), "size-refused: size \"%s\" is refused", bad[i]);
	ok(parse_u64("7", 7, &value) && !parse_u64("8", 7, &value), "number-above-maximum: a number above its maximum is refused");
}

static void test_modes(void)
{
	static const char *const bad[] = {
		"", "0777", "1660", "8", "0660 ", "u+r", "-1", "0x1", "00000000001000",
	};
	uint32_t mode;

	ok(parse_mode("0640", &mode) && mode == 0640 && parse_mode("6", &mode) && mode == 6 &&
	   parse_mode("0", &mode) && !mode, "permission-bits-octal: permission bits are octal");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!parse_mode(bad[i], &mode), "mode-refused: mode \"%s\" is refused", bad[i]);
}

/* --- regions --- */

static void test_regions(void)
{
	static const char *const bad[] = {
		"", "1,2", "1,2,3", "1,2,3x", "1,2,0x4", "1,2,4x0", "1,2,3x4@", "1,2,3x4@5",
		"1,2,3x4@5,6x", "-1,2,3x4", " 1,2,3x4", "1,2,3x4 ", "1,,3x4", "4294967296,0,1x1",
		"4294967295,0,1x1", "0,0,1x1@4294967295,0", "1,2,3X4", "1,2,3x4@5,6@7,8",
	};
	struct region r = {}, s[16];
	uint32_t sum = 0;
	bool follow = true;

	ok(parse_region("1,2,30x40", &r) && r.x == 1 && r.y == 2 && r.width == 30 &&
	   r.height == 40 && r.to_x == 1 && r.to_y == 2, "region-stays: a region stays where it is");
	ok(parse_region("1,2,30x40@50,60", &r) && r.x == 1 && r.y == 2 && r.to_x == 50 &&
	   r.to_y == 60, "region-moved: a region is moved");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!parse_region(bad[i], &r), "region-refused: region \"%s\" is refused", bad[i]);

	for (unsigned int n = 1; n <= 16; n++) {
		split_regions(1024, 512, n, s);
		sum = 0;
		for (unsigned int i = 0; i < n; i++) {
			follow &= s[i].y == sum && s[i].to_y == sum && s[i].width == 1024 &&
				  s[i].height;
			sum += s[i].height;
		}
		follow &= sum == 512;
	}
	ok(follow, "1-16-bands-whole: 1 to 16 bands make the whole image");
	parse_region("0,0,10x10", &s[0]);
	parse_region("0,0,10x10@10,0", &s[1]);
	parse_region("0,0,10x10@9,9", &s[2]);
	ok(!regions_overlap(&s[0], &s[1]) && regions_overlap(&s[0], &s[2]) &&
	   regions_overlap(&s[1], &s[2]), "overlapping-targets-seen: overlapping targets are seen");
}

/* --- percentiles --- */

#define CHOICE	1000

/* More values than are kept; their order is known. */
static void test_choice(void)
{
	struct samples samples = { .limit = CHOICE };
	uint64_t median;

	for (uint64_t i = 1; i <= CHOICE; i++)
		samples_add(&samples, i);
	ok(samples.count == CHOICE && samples.value[CHOICE - 1] == CHOICE,
	   "kept-all: as many as are kept: all of them");
	for (uint64_t i = CHOICE + 1; i <= 1000 * CHOICE; i++)
		samples_add(&samples, i);
	samples_add(&samples, 0);
	samples_sort(&samples);
	median = percentile(samples.value, samples.count, 50);
	/* 6 standard deviations of a median, and the choice is the same each time */
	ok(samples.count == CHOICE && samples.room < 8 * CHOICE && median > 400 * CHOICE &&
	   median < 600 * CHOICE, "thousand-million-median: a thousand of a million: median %" PRIu64, median);
	ok(samples.all == 1000 * CHOICE + 1 && samples.max == 1000 * CHOICE,
	   "all-counted-largest: all are counted, and the largest is known");
	samples_free(&samples);
}

static void test_percentiles(void)
{
	uint64_t ten[10];
	struct samples samples = {};

	for (uint64_t i = 0; i < 10; i++)
		ten[i] = i + 1;
	ok(percentile(ten, 0, 50) == 0, "no-samples: no samples");
	ok(percentile(ten, 1, 0) == 1 && percentile(ten, 1, 100) == 1, "one-sample: one sample");
	ok(percentile(ten, 10, 50) == 5, "median-ten: median of ten");
	ok(percentile(ten, 10, 99) == 10, "99th-percentile-ten: 99th percentile of ten is the largest");
	ok(percentile(ten, 10, 0) == 1 && percentile(ten, 10, 100) == 10, "smallest-largest: smallest and largest");
	for (uint64_t i = 0; i < 10000; i++)
		samples_add(&samples, 10000 - i);
	samples_sort(&samples);
	ok(samples.count == 10000 && percentile(samples.value, samples.count, 99) == 9900,
	   "99th-percentile-ten-thousand: 99th percentile of ten thousand, sorted");
	samples_free(&samples);
	test_choice();
}

/* --- dataset --- */

/* Open and hold all of it. */
static int load(struct dataset *d, const char *spec, const struct geometry *wanted, char *why)
{
	int result = dataset_open(d, spec, wanted, why);

	if (!result)
		result = dataset_hold(d, d->images, why);
	if (result)
		dataset_close(d);
	return result;
}

static void test_generated(void)
{
	struct dataset a, b, c;
	char why[WHY_SIZE];
	uint64_t stage[4] = {};
	size_t image;

	ok(!load(&a, "generate:3:7", NULL, why) && a.images == 3 && a.held == 3,
	   "three-images-generated: three images are generated");
	image = dataset_bytes(&a);
	ok(!load(&b, "generate:3:7", NULL, why) && !memcmp(a.pixels, b.pixels, 3 * image),
	   "same-seed-same: the same seed makes the same images");
	ok(!load(&c, "generate:2:8", NULL, why) && c.images == 2 && c.sum[1] != a.sum[1] &&
	   memcmp(a.pixels, c.pixels, 2 * image), "another-seed-others: another seed makes others");
	dataset_close(&c);
	ok(!load(&c, "generate:1:7", NULL, why) && !memcmp(a.pixels, c.pixels, image),
	   "fewer-images-beginning: fewer images are the beginning of more");
	ok(a.sum[2] && a.sum[2] == b.sum[2] && a.sum[0] == c.sum[0] && a.sum[0] != a.sum[2],
	   "sum-images-same: the sum of images is that of the same images elsewhere");
	ok(memcmp(dataset_line(&a, 0, 0), dataset_line(&a, 1, 0), image),
	   "images-differ-other: the images differ from each other");
	dataset_close(&c);
	for (size_t i = 0; i < 3 * image / sizeof(uint16_t); i++)
		stage[DATASET_GAIN(((const uint16_t *)(const void *)a.pixels)[i])]++;
	ok(stage[0] && stage[1] && stage[3], "gain-stages-0: gain stages 0, 1 and 3 all occur");
	ok(!stage[2], "gain-stage-2: gain stage 2, which does not exist, never does");
	ok(stage[0] > stage[1] && stage[1] > stage[3], "few-pixels-bright: few pixels are bright");
	dataset_close(&a);
	dataset_close(&b);

	ok(load(&c, "generate:0", NULL, why) && strstr(why, "generate:0"),
	   "no-images-refused: no images are refused: %s", why);
	ok(load(&c, "generate:x", NULL, why), "wrong-number-refused: a wrong number is refused: %s", why);
	ok(load(&c, "generate:1:", NULL, why), "empty-seed-refused: an empty seed is refused: %s", why);
	ok(load(&c, "generate:1", &(struct geometry) { 100, 15, RASHPA_PIXEL_U16 }, why) &&
	   strstr(why, "100 x 15 u16"), "images-without-room: images without room for a peak are refused: %s", why);
	ok(load(&c, "generate:1", &(struct geometry) { 100, 100, RASHPA_PIXEL_U8 }, why) &&
	   strstr(why, "100 x 100 u8"), "another-type-refused: another type is refused: %s", why);
	ok(!load(&c, "generate:1", &(struct geometry) { 100, 16, RASHPA_PIXEL_U16 }, why) &&
	   c.geometry.width == 100 && c.geometry.height == 16, "another-size: another size is made");
	dataset_close(&c);
	ok(load(&c, "/nowhere", NULL, why) && strstr(why, "/nowhere"),
	   "folder-not: a folder that is not there: %s", why);
	ok(load(&c, "/dev/null", NULL, why), "no-file-no-folder: no file and no folder: %s", why);
}

/* A file of so many images of the dataset, from one on. */
static void write_raw(const char *path, const struct dataset *d, uint32_t from, uint32_t images)
{
	FILE *file = fopen(path, "w");

	fwrite(dataset_line(d, from, 0), dataset_bytes(d), images, file);
	fclose(file);
}

static void test_dataset(void)
{
	const struct geometry half = { 512, 512, RASHPA_PIXEL_U16 },
			      wide = { 1024, 256, RASHPA_PIXEL_U32 };
	char why[WHY_SIZE], dir[] = "/tmp/rashpa-selftest-XXXXXX", path[64];
	struct dataset a, c;
	size_t image;

	test_generated();
	if (load(&a, "generate:3:7", NULL, why) || !mkdtemp(dir)) {
		ok(false, "folder-images: a folder, and images for it");
		return;
	}
	image = dataset_bytes(&a);
	ok(load(&c, dir, NULL, why), "empty-folder-refused: an empty folder is refused: %s", why);
	/* raw10 comes after raw9 */
	for (int i = 9; i <= 10; i++) {
		snprintf(path, sizeof(path), "%s/raw%d.bin", dir, i);
		write_raw(path, &a, i - 9, 1);
	}
	ok(!load(&c, dir, NULL, why) && c.images == 2 && !memcmp(c.pixels, a.pixels, 2 * image),
	   "files-read-order: files are read in the order of their numbers");
	dataset_close(&c);
	ok(!load(&c, dir, &wide, why) && c.geometry.pixel == RASHPA_PIXEL_U32 &&
	   !memcmp(c.pixels, a.pixels, 2 * image), "raw-images-geometry: raw images have the geometry that is said");
	dataset_close(&c);
	ok(load(&c, dir, &half, why) && strstr(why, "512 x 512 u16"), "fits: if it fits: %s", why);
	if (truncate(path, 1000))
		ok(false, "truncate: truncate");
	ok(load(&c, dir, NULL, why) && strstr(why, "raw10.bin"), "short-file-refused: a short file is refused: %s",
	   why);
	unlink(path);
	snprintf(path, sizeof(path), "%s/raw9.bin", dir);
	write_raw(path, &a, 0, 3);
	ok(!load(&c, path, NULL, why) && c.images == 3 && !memcmp(c.pixels, a.pixels, 3 * image),
	   "file-images-one: a file has images one behind the other");
	dataset_close(&c);
	ok(!load(&c, path, &half, why) && c.images == 6, "smaller-ones: smaller ones are more");
	dataset_close(&c);
	if (truncate(path, 3 * image - 1))
		ok(false, "smaller/truncate: truncate");
	ok(load(&c, path, NULL, why) && strstr(why, "is not HDF5"),
	   "part-image-refused: a part of an image is refused: %s", why);
	strcat(path, ":/inside");
	ok(load(&c, path, NULL, why) && strstr(why, "/inside"), "nothing-inside: nothing is inside: %s", why);
	*strrchr(path, ':') = '\0';
	unlink(path);
	rmdir(dir);
	dataset_close(&a);
}

static void test_depth(void)
{
	static const struct {
		const char *text;
		uint64_t images, stacks;	/* of stacks of 8 */
	} good[] = {
		{ "0", 0, 0 }, { "20", 20, 20 }, { "20image", 20, 3 }, { "16images", 16, 2 },
		{ "17 images", 17, 3 }, { "1stack", 8, 1 }, { "3 stacks", 24, 3 },
		{ "0x10stacks", 128, 16 },
	};
	static const char * const bad[] = {
		"", "x", "stacks", "-1", "1 ", "1s", "1stackss", "1stac", "1Stack", "1 stacks ",
		"1  stack", "1KiB", "101",
	};
	struct depth d;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(parse_depth(good[i].text, 20, &d) && depth_images(&d, 8) == good[i].images &&
		   depth_stacks(&d, 8) == good[i].stacks, "depth: depth \"%s\"", good[i].text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!parse_depth(bad[i], 100, &d), "depth-refused: depth \"%s\" is refused", bad[i]);
	ok(parse_depth("0xffffffffffffffstacks", UINT64_MAX, &d) &&
	   depth_images(&d, 1 << 20) == UINT64_MAX, "images-not-few: too many images are not few");
}

static void test_geometry(void)
{
	static const char * const bad[] = {
		"", "x", "10", "10x", "x10", "0x10", "10x0", "10x10,", "10x10,u64", "10x10,u1",
		"65537x1", "1x65537", "10x10 ", "-1x10", "10x10,u16,", "0x10x10",
	};
	char text[GEOMETRY_TEXT];
	struct geometry g;

	ok(parse_geometry("1030x514", &g) && g.width == 1030 && g.height == 514 &&
	   g.pixel == RASHPA_PIXEL_U16, "geometry-without-type: a geometry without a type is u16");
	ok(parse_geometry("65536x65536,u32", &g) && g.pixel == RASHPA_PIXEL_U32 &&
	   !strcmp(format_geometry(text, &g), "65536 x 65536 u32"), "one-type: one with a type: %s", text);
	ok(parse_geometry("1x1,u8", &g) && pixel_bytes(g.pixel) == 1, "small-one: a small one");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!parse_geometry(bad[i], &g), "geometry-refused: geometry \"%s\" is refused", bad[i]);
}

/* --- profiles --- */

/* A window of the name, and a table with these bits after its length, in quotes as in the file. */
#define WINDOW(keys)	"{ \"name\": \"t\", \"bar\": 0, \"length\": 8192" keys " }"
#define TABLE(keys)	"\"table\": { \"window\": \"t\", \"stride\": 32, " keys ", \"address\": { \"offset\": 0, \"bits\": 64 } }"
#define WITH_TABLE(keys) HEAD ", \"windows\": [ " WINDOW("") " ], " TABLE(keys)
#define CONTROL(keys)	"\"control\": { \"bits\": 32, " keys " }"
#define WAIT(keys)	"{ \"wait\": { \"bar\": 0, \"offset\": 4, \"timeout_ms\": 1, " keys " } }"
#define LENGTH_FIELD	"\"length_field\": { \"offset\": 8, \"bits\": 64 }"
#define BOUNDS(bar, first) "\"bounds\": { \"bar\": " #bar ", \"first\": " #first ", \"limit\": 65536 }"
#define ENGINE(name, first, count, bar, at) \
	"{ \"name\": \"" name "\", \"first\": " #first ", \"count\": " #count ", " \
	BOUNDS(bar, at) ", \"quiesce\": [ " WAIT("\"value\": 0") " ] }"
#define WITH_ENGINES(list) WITH_TABLE("\"length\": 8192, " LENGTH_FIELD) ", \"quiesce\": [ " \
	WAIT("\"value\": 0") " ], \"engines\": [ " list " ]"
#define HEAD	"{ \"name\": \"x\", \"match\": [ { \"vendor\": 1, \"device\": \"0x2\" } ]"

static bool put_text_file(const char *folder, const char *name, const char *text)
{
	char path[600];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	return file && fputs(text, file) >= 0 && !fclose(file);
}

/* Files that are broken, before one that is good: only what they are for is refused. */
static void test_broken_profiles(const char *good)
{
	char dir[] = "/tmp/rashpa-selftest-XXXXXX", command[64], why[WHY_SIZE] = "";
	static struct profile p;
	char text[32768] = "";
	FILE *file = fopen(good, "r"), *errors;
	char said[2048] = "";
	int saved;

	if (!mkdtemp(dir) || !file) {
		ok(false, "folder-profiles: a folder of profiles");
		return;
	}
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	put_text_file(dir, "0-profile.schema.json", "{}");
	put_text_file(dir, "1-nothing.json", "");
	put_text_file(dir, "2-other.json", HEAD ", \"colour\": 1 }");
	put_text_file(dir, "3-good.json", text);
	setenv("RASHPA_PROFILES", dir, 1);
	/* messages go to a file meanwhile */
	errors = tmpfile();
	saved = dup(STDERR_FILENO);
	dup2(fileno(errors), STDERR_FILENO);
	ok(profile_find(&p, RFPGA_PCI_VENDOR, RFPGA_PCI_DEVICE, why) == 1 &&
	   !strcmp(p.name, "rashpa-fpga"), "broken-files-not: broken files do not hide a good one");
	ok(!profile_find(&p, 0xdead, 0xbeef, why), "one: nor make one of their own");
	ok(profile_find(&p, 1, 2, why) == -1 && strstr(why, "2-other.json"),
	   "ids-broken-one: the ids of a broken one find no profile: %s", why);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(errors);
	said[fread(said, 1, sizeof(said) - 1, errors)] = '\0';
	fclose(errors);
	ok(strstr(said, "1-nothing.json") && strstr(said, "2-other.json") &&
	   !strstr(strstr(said, "1-nothing.json") + 1, "1-nothing.json"),
	   "named-warning-once: each is named in a warning, once");
	ok(!strstr(said, "schema"), "schema-beside-none: a schema next to them is not a profile");
	snprintf(command, sizeof(command), "rm -r %s", dir);
	ok(!system(command), "folder: the folder goes");
}

/* Each DTP and each ring, and where the interface has its registers. */
static void test_engines(const struct profile *p)
{
	const uint32_t rings = RFPGA_BOUNDS + RFPGA_DTPS_MAX * RFPGA_BOUNDS_STRIDE;
	bool good = p->n_engines == RFPGA_DTPS_MAX + 4;
	uint32_t next = 0, bounds, control;
	char name[16];

	for (unsigned int i = 0; i < p->n_engines && good; i++) {
		const struct profile_engine *e = &p->engine[i];
		const bool dtp = i < RFPGA_DTPS_MAX;
		const unsigned int n = dtp ? i : i - RFPGA_DTPS_MAX;

		snprintf(name, sizeof(name), "%s%u", dtp ? "dtp" : "ring", n);
		bounds = (dtp ? RFPGA_BOUNDS : rings) + n * RFPGA_BOUNDS_STRIDE;
		control = dtp ? (uint32_t)RFPGA_DTP(n) : 0x3000 + n * RFPGA_RING_SIZE;
		good = !strcmp(e->about.name, name) && e->about.first >= next &&
		       e->about.flags == RASHPA_PENGINE_OPTIONAL && e->about.count &&
		       e->about.first_offset == bounds + RFPGA_BOUNDS_FIRST &&
		       e->about.limit_offset == bounds + RFPGA_BOUNDS_LIMIT && e->n_steps == 2 &&
		       e->step[0].offset == control && e->step[0].value == RFPGA_DTP_STOP &&
		       e->step[1].offset == control + RFPGA_DTP_STATUS &&
		       e->step[1].mask == RFPGA_DTP_RUNNING && !e->step[1].value;
		next = e->about.first + e->about.count;
	}
	ok(good && next <= RFPGA_TABLE_SIZE / RFPGA_ENTRY_STRIDE, "engines: its engines");
}

static void test_profile(const char *folder)
{
	static const struct {
		const char *text, *key;
	} bad[] = {
		{ "", "not JSON" },
		{ "[]", "object" },
		{ "{ \"name\": \"x\",\n\n ]", ":3:" },
		{ HEAD "} x", "not JSON" },
		{ "{ \"name\": \"x\" }", "match: is missing" },
		{ "{ \"match\": [ { \"vendor\": 1, \"device\": 2 } ] }", "name: is missing" },
		{ "{ \"name\": \"x\", \"match\": [] }", "match" },
		{ "{ \"name\": 1, \"match\": [ { \"vendor\": 1, \"device\": 2 } ] }",
		  "name: must be a string" },
		{ "{ \"name\": \"x\", \"match\": [ { \"vendor\": 65536, \"device\": 2 } ] }",
		  "match[0].vendor" },
		{ "{ \"name\": \"x\", \"match\": [ { \"vendor\": 1 } ] }", "match[0].device" },
		{ HEAD ", \"colour\": 1 }", "colour: unknown key" },
		{ HEAD ", \"disclose\": 1 }", "disclose" },
		{ HEAD ", \"dma_bits\": 23 }", "dma_bits" },
		{ HEAD ", \"dma_bits\": -1 }", "dma_bits" },
		{ HEAD ", \"segments\": { \"max_length\": 5 } }", "segments.max_length" },
		{ HEAD ", \"windows\": {} }", "windows" },
		{ HEAD ", \"windows\": [ { \"name\": \"a\", \"length\": 4096 } ] }",
		  "windows[0].bar" },
		{ HEAD ", \"windows\": [ { \"name\": \"a\", \"bar\": 6, \"length\": 4096 } ] }",
		  "windows[0].bar" },
		{ HEAD ", \"windows\": [ { \"name\": \"a\", \"bar\": 0, \"length\": 5 } ] }",
		  "windows[0].length" },
		{ HEAD ", \"windows\": [ { \"name\": \"a\", \"bar\": 0, \"length\": \"4Q\" } ] }",
		  "windows[0].length" },
		{ HEAD ", \"windows\": [ { \"name\": \"\", \"bar\": 0, \"length\": 0 } ] }",
		  "windows[0].name" },
		{ HEAD ", \"windows\": [ { \"name\": \"0123456789abcdef0123456789abcdef\", \"bar\": 0, \"length\": 0 } ] }",
		  "windows[0].name" },
		{ HEAD ", \"windows\": [ { \"name\": \"a\", \"bar\": 0, \"length\": 0, \"cache\": \"hot\" } ] }",
		  "windows[0].cache" },
		{ HEAD ", \"windows\": [ { \"name\": \"a\", \"bar\": 0, \"length\": 0, \"user\": \"yes\" } ] }",
		  "windows[0].user" },
		{ HEAD ", \"windows\": [ { \"name\": \"a\", \"bar\": 0, \"length\": 0 }, { \"name\": \"a\", \"bar\": 1, \"length\": 0 } ] }",
		  "windows[1]" },
		{ HEAD ", \"quiesce\": [ { \"write\": { \"bar\": 0, \"offset\": 2, \"value\": 1 } } ] }",
		  "quiesce[0].write.offset" },
		{ HEAD ", \"quiesce\": [ { \"write\": { \"bar\": 0, \"offset\": 4, \"value\": 4294967296 } } ] }",
		  "quiesce[0].write.value" },
		{ HEAD ", \"quiesce\": [ { \"wait\": { \"bar\": 0, \"offset\": 4, \"value\": 1 } } ] }",
		  "quiesce[0].wait.timeout_ms" },
		{ HEAD ", \"quiesce\": [ { \"wait\": { \"bar\": 0, \"offset\": 4, \"value\": 1, \"timeout_ms\": 10001 } } ] }",
		  "quiesce[0].wait.timeout_ms" },
		{ HEAD ", \"quiesce\": [ { \"sleep\": 1 } ] }", "quiesce[0].sleep" },
		{ HEAD ", \"quiesce\": [ {} ] }", "quiesce[0]" },
		{ HEAD ", \"vectors\": [ 1 ] }", "vectors[0]" },
		{ HEAD ", \"table\": { \"window\": \"t\" } }", "table.length" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 16, \"address\": { \"offset\": 0, \"bits\": 64 }, \"control\": { \"offset\": 8, \"bits\": 32, \"set\": 1, \"clear\": 0 }, \"segment_size\": \"4K\" } }",
		  "table.window" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 16, \"address\": { \"offset\": 0, \"bits\": 64 }, \"segment_size\": \"4K\" } }",
		  "neither length_field nor control" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 16, \"address\": { \"offset\": 0, \"bits\": 64 }, \"control\": { \"offset\": 8, \"bits\": 32, \"set\": 1, \"clear\": 0 } } }",
		  "segment_size" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 16, \"address\": { \"offset\": 0, \"bits\": 64 }, \"control\": { \"offset\": 8, \"bits\": 32, \"set\": 1, \"clear\": 0 }, \"segment_size\": 6144 } }",
		  "segment_size" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 16, \"address\": { \"offset\": 0, \"bits\": 64 }, \"length_field\": { \"offset\": 8, \"bits\": 32 }, \"segment_size\": 4096 } }",
		  "segment_size" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 32, \"address\": { \"offset\": 0, \"bits\": 64 }, \"length_field\": { \"offset\": 8, \"bits\": 64 }, \"sum\": { \"offset\": 24, \"bits\": 48 } } }",
		  "table.sum" },
		{ HEAD ", \"quiesce_ms\": 10001 }", "quiesce_ms" },
		/* the driver refuses these, too */
		{ HEAD ", \"segments\": { \"boundary\": \"12K\" } }", "segments.boundary" },
		{ HEAD ", \"segments\": { \"alignment\": 3 } }", "segments.alignment" },
		{ HEAD ", \"windows\": [ " WINDOW(", \"cache\": \"cached\"") " ] }",
		  "windows[0].cache" },
		{ HEAD ", \"windows\": [ { \"name\": \"a/b\", \"bar\": 0, \"length\": 0 } ] }",
		  "windows[0].name: must be letters" },
		{ HEAD ", \"windows\": [ { \"name\": \".a\", \"bar\": 0, \"length\": 0 } ] }",
		  "windows[0].name: must be letters" },
		{ HEAD ", \"quiesce\": [ { \"write\": { \"bar\": 0, \"offset\": 4, \"value\": 1 } } ] }",
		  "quiesce[0]: the last step must wait" },
		{ HEAD ", \"quiesce\": [ " WAIT("\"value\": 0, \"mask\": 0") " ] }",
		  "quiesce[0]: the last step must wait" },
		{ HEAD ", \"quiesce\": [ " WAIT("\"value\": 3, \"mask\": 1") " ] }",
		  "quiesce[0].wait: value has bits" },
		{ WITH_TABLE("\"length\": 0, " LENGTH_FIELD) " }",
		  "table: length" },
		{ WITH_TABLE("\"length\": 4096, "
		  CONTROL("\"offset\": 8, \"set\": 1, \"clear\": 1") ", \"segment_size\": 4096") " }",
		  "table: control: set and clear" },
		{ WITH_TABLE("\"length\": 4096, " LENGTH_FIELD ", "
		  CONTROL("\"offset\": 12, \"set\": 1, \"clear\": 0")) " }",
		  "table: two fields overlap" },
		{ WITH_TABLE("\"length\": 4096, " LENGTH_FIELD ", "
		  CONTROL("\"offset\": 32, \"set\": 1, \"clear\": 0")) " }",
		  "table: a field of 32 bits at 32" },
		{ WITH_TABLE("\"length\": 4096, " LENGTH_FIELD ", "
		  "\"sum\": { \"offset\": 18, \"bits\": 32 }") " }",
		  "table: a field of 32 bits at 18" },
		{ WITH_TABLE("\"offset\": 4096, \"length\": 8192, "
		  LENGTH_FIELD) " }", "table.window: the table is outside" },
		{ HEAD ", \"windows\": [ " WINDOW(", \"user\": true") " ], " TABLE("\"length\": 4096, "
		  LENGTH_FIELD) " }", "table.window: the window \"t\" is for users" },
		{ HEAD ", \"windows\": [ " WINDOW("")
		  ", { \"name\": \"u\", \"bar\": 0, \"length\": 0, \"user\": true } ], "
		  TABLE("\"length\": 4096, " LENGTH_FIELD) " }",
		  "table.window: the window \"u\" is for users" },
		{ HEAD ", \"reset\": 0 }", "reset" },
		{ HEAD ", \"engines\": [ " ENGINE("a", 0, 1, 1, 0) " ] }",
		  "engines: engines need the key \"table\"" },
		{ WITH_ENGINES(ENGINE("a", 0, 1, 1, 2)) " }", "engines[0].bounds.first" },
		{ WITH_ENGINES(ENGINE("a/b", 0, 1, 1, 0)) " }", "engines[0].name" },
		{ WITH_ENGINES(ENGINE("a", 0, 257, 1, 0)) " }", "engines[0]: its entries are not" },
		{ WITH_ENGINES(ENGINE("a", 0, 2, 1, 0) ", " ENGINE("b", 1, 1, 1, 8)) " }",
		  "engines[1]: some of its entries" },
		{ WITH_ENGINES(ENGINE("a", 0, 1, 1, 0) ", " ENGINE("a", 1, 1, 1, 8)) " }",
		  "engines[1]: the name \"a\" is given twice" },
		{ WITH_ENGINES(ENGINE("a", 0, 1, 1, 0) ", " ENGINE("b", 1, 1, 0, 8)) " }",
		  "engines[1]: the window \"t\" holds its bounds" },
		{ WITH_ENGINES("{ \"name\": \"a\", \"count\": 1, " BOUNDS(1, 0) " }") " }",
		  "engines[0]: has entries" },
		{ WITH_ENGINES("{ \"name\": \"a\", \"count\": 0, \"first\": 1, "
		  BOUNDS(1, 0) " }") " }", "engines[0]: has no entries" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 6, \"address\": { \"offset\": 0, \"bits\": 64 } } }",
		  "table" },
		{ HEAD ", \"table\": { \"window\": \"t\", \"length\": 4096, \"stride\": 16, \"address\": { \"offset\": 0, \"bits\": 63 } } }",
		  "table.address" },
	};
	static const char *const others[] = { "chain", "fetch", "packed" };
	static struct profile p;
	char why[WHY_SIZE], path[] = "/tmp/rashpa-selftest-XXXXXX", real[512];
	FILE *file;
	int fd = mkstemp(path);

	if (fd < 0) {
		ok(false, "mkstemp: mkstemp");
		return;
	}
	close(fd);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		file = fopen(path, "w");
		fputs(bad[i].text, file);
		fclose(file);
		why[0] = '\0';
		ok(profile_load(&p, path, why) && strstr(why, bad[i].key) &&
		   !strncmp(why, path, strlen(path)), "refused: %s", why);
	}
	file = fopen(path, "w");
	fputs(HEAD " }", file);
	fclose(file);
	ok(!profile_load(&p, path, why) && p.match[0].vendor == 1 && p.match[0].device == 2 &&
	   !p.has_table, "smallest-profile: the smallest profile");
	unlink(path);
	ok(profile_load(&p, path, why) && strstr(why, path), "file-not: a file that is not there: %s", why);

	snprintf(real, sizeof(real), "%s/rashpa-fpga.json", folder);
	why[0] = '\0';
	ok(!profile_load(&p, real, why), "profile: %s%s", real, why);
	ok(p.match[0].vendor == RFPGA_PCI_VENDOR && p.match[0].device == RFPGA_PCI_DEVICE, "ids: its ids");
	ok(p.n_windows == 20 && p.window[0].length == RFPGA_BOUNDS &&
	   p.window[1].offset == RFPGA_TABLE && p.window[1].length == RFPGA_TABLE_SIZE &&
	   p.window[17].offset == 15 * RFPGA_DOORBELL_PAGE &&
	   p.window[17].flags == RASHPA_PWINDOW_USER &&
	   p.window[19].cache == RASHPA_CACHE_WC && !p.window[19].flags, "windows: its windows");
	ok(p.n_steps == 2 && p.step[0].op == RASHPA_STEP_WRITE &&
	   p.step[0].offset == RFPGA_CONTROL &&
	   p.step[0].value == RFPGA_CONTROL_STOP && p.step[0].mask == UINT32_MAX &&
	   p.step[1].op == RASHPA_STEP_WAIT && p.step[1].offset == RFPGA_STATUS &&
	   p.step[1].mask == RFPGA_STATUS_BUSY && !p.step[1].value &&
	   p.step[1].timeout_us == 500000, "quiesce-sequence: its quiesce sequence");
	ok(p.has_table && p.table.layout.stride == RFPGA_ENTRY_STRIDE &&
	   p.table.layout.length_offset == RFPGA_ENTRY_LEN && p.table.layout.length_bits == 64 &&
	   p.table.layout.control_offset == RFPGA_ENTRY_CONTROL &&
	   p.table.layout.control_set == RFPGA_ENTRY_VALID &&
	   p.table.layout.sum_offset == RFPGA_ENTRY_SUM && p.table.layout.sum_bits == 64,
	   "address-table: its address table");
	test_engines(&p);
	test_broken_profiles(real);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(real, sizeof(real), "%s/rashpa-%s.json", folder, others[i]);
		why[0] = '\0';
		ok(!profile_load(&p, real, why), "other-profile: %s%s", real, why);
	}
	setenv("RASHPA_PROFILES", folder, 1);
	ok(profile_find(&p, RFPGA_PCI_VENDOR, RFPGA_PCI_DEVICE, why) == 1, "found-ids: it is found by its ids");
	ok(!profile_find(&p, 0xdead, 0xbeef, why), "nothing-found-others: nothing is found for others");
}

/* --- functions, and files --- */

static void test_bdf(void)
{
	static const struct {
		const char *text, *bdf;
	} good[] = {
		{ "0000:01:02.3", "0000:01:02.3" }, { "01:02.3", "0000:01:02.3" },
		{ "1:2.3", "0000:01:02.3" }, { "FF:1f.7", "0000:ff:1f.7" },
		/* as behind a bridge that makes its own domain */
		{ "10000:e1:00.0", "10000:e1:00.0" }, { "abcd1234:00:00.0", "abcd1234:00:00.0" },
	};
	static const char *const bad[] = {
		"", "01", "01:02", "01:02.", "01:02.8", "01:20.0", "100:02.3", "0000:01:02.3 ",
		" 01:02.3", "-1:02.3", "0x1:02.3", "123456789:01:02.3", ":01:02.3", "0:1:2:3.4",
		"01:02.33", "1234:5250",
	};
	char bdf[BDF_SIZE];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(parse_bdf(good[i].text, bdf) && !strcmp(bdf, good[i].bdf), "function: function \"%s\": %s",
		   good[i].text, bdf);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!parse_bdf(bad[i], bdf), "function-refused: function \"%s\" is refused", bad[i]);
	ok(!strcmp(bdf_text(bdf, PCI_BDF(0x10000, 0xe1, 1 << 3 | 2)), "10000:e1:01.2"),
	   "domain-five-digits: a domain of five digits is written");
}

static void test_files(void)
{
	struct rlimit limit, small;
	char path[] = "/tmp/rashpa-selftest-XXXXXX", text[16];
	int fd = mkstemp(path), error;

	if (fd < 0 || getrlimit(RLIMIT_FSIZE, &limit)) {
		ok(false, "domain/mkstemp: mkstemp");
		return;
	}
	close(fd);
	ok(!write_text("one\ntwo\n", "%s", path) && read_line(text, sizeof(text), "%s", path) &&
	   !strcmp(text, "one"), "text-written-first: a text is written, and its first line read");
	ok(write_text("x", "%s/x", path) == -ENOTDIR &&
	   !read_line(text, sizeof(text), "%s/x", path),
	   "not: a missing file can be neither written nor read");
	/* a part of the second text fits; errno is still that of the first */
	signal(SIGXFSZ, SIG_IGN);
	small = (struct rlimit) { .rlim_cur = 4, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_FSIZE, &small);
	errno = ENOENT;
	error = write_text("12345678", "%s", path);
	setrlimit(RLIMIT_FSIZE, &limit);
	ok(error == -EIO, "write-part-error: a partial write is a separate error: %s", strerror(-error));
	unlink(path);
}

/* --- paths --- */

#define CHAIN(...)	((struct chain) { \
	sizeof((uint32_t[]) { __VA_ARGS__ }) / sizeof(uint32_t), { __VA_ARGS__ } })
#define AT(bus, device, function)	PCI_BDF(0, bus, (device) << 3 | (function))

static void test_paths(void)
{
	/* two boards below one switch, one below another port of the root, one far away */
	const struct chain board = CHAIN(AT(3, 0, 0), AT(2, 0, 0), AT(1, 0, 0), AT(0, 6, 0));
	const struct {
		const char *what;
		struct chain other;
		enum meeting meeting;
		uint64_t where;
	} cases[] = {
		{ "itself", board, MEET_SAME, 0 },
		{ "its second function",
		  CHAIN(AT(3, 0, 1), AT(2, 0, 0), AT(1, 0, 0), AT(0, 6, 0)),
		  MEET_DEVICE, AT(2, 0, 0) },
		{ "a board below the same switch",
		  CHAIN(AT(4, 0, 0), AT(2, 1, 0), AT(1, 0, 0), AT(0, 6, 0)),
		  MEET_SWITCH, AT(1, 0, 0) },
		{ "a board of another device below the same port of the switch",
		  CHAIN(AT(3, 1, 0), AT(2, 0, 0), AT(1, 0, 0), AT(0, 6, 0)),
		  MEET_SWITCH, AT(2, 0, 0) },
		{ "another switch below the same root port",
		  CHAIN(AT(5, 0, 0), AT(1, 1, 0), AT(0, 6, 0)), MEET_PORT, AT(0, 6, 0) },
		{ "another root port", CHAIN(AT(9, 0, 0), AT(0, 7, 0)), MEET_BRIDGE, 0 },
		{ "a function of the root", CHAIN(AT(0, 31, 2)), MEET_BRIDGE, 0 },
		{ "another root bus", CHAIN(AT(0x81, 0, 0), AT(0x80, 1, 0)), MEET_NOWHERE, 0 },
		{ "another domain",
		  CHAIN(PCI_BDF(1, 3, 0), PCI_BDF(1, 0, 6 << 3)), MEET_NOWHERE, 0 },
	};
	uint64_t where, back;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum meeting meeting = chains_meet(&board, &cases[i].other, &where);

		ok(meeting == cases[i].meeting && where == cases[i].where &&
		   meeting == chains_meet(&cases[i].other, &board, &back) && back == where,
		   "paths: %s: %s", cases[i].what, meeting_name(meeting));
	}
	ok(chains_meet(&CHAIN(AT(0, 31, 2)), &CHAIN(AT(0, 31, 3)),
		       &where) == MEET_DEVICE, "two-functions-device: two functions of a device of the root");
}

/* --- librashpa, as far as it needs no driver --- */

#define SEGMENTS	8
#define CHANGES		200000

/* More of each than this library knows. */
struct later_segment {
	struct rashpa_segment known;
	__aligned_u64 more;
};

/* A table as a later kernel shows it, and a copy with room for all. */
static union shared_table {
	struct rashpa_table table;
	uint8_t bytes[sizeof(struct rashpa_table) + SEGMENTS * sizeof(struct later_segment)];
} shared, taken;

static void store_table(uint64_t value)
{
	struct rashpa_table *t = &shared.table;
	struct later_segment *segment = (void *)t->segment;

	__atomic_store_n(&t->generation, 2 * value - 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&t->count, 1 + value % SEGMENTS, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < SEGMENTS; i++) {
		__atomic_store_n(&segment[i].known.address, value + i, __ATOMIC_RELAXED);
		__atomic_store_n(&segment[i].known.length, value, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&t->generation, 2 * value, __ATOMIC_RELEASE);
}

static void *change_table(void *unused)
{
	for (uint64_t value = 1; value <= CHANGES; value++)
		store_table(value);
	return unused;
}

static bool table_is_whole(const struct rashpa_table *t, int n)
{
	uint64_t value = t->generation / 2;

	if (t->generation % 2 || t->count != 1 + value % SEGMENTS || n != (int)t->count)
		return false;
	for (unsigned int i = 0; i < t->count; i++) {
		if (t->segment[i].address != value + i || t->segment[i].length != value)
			return false;
	}
	return true;
}

static void test_table(void)
{
	unsigned int torn = 0, readings = 0;
	pthread_t writer;
	int n;

	shared.table.segment_size = sizeof(struct later_segment);
	store_table(SEGMENTS - 1);
	taken.table.segment[1].length = 12345;
	n = rashpa_table_read(&shared.table, &taken.table, 1);
	ok(n == SEGMENTS && taken.table.count == SEGMENTS, "segments-table-counted: the segments of a table are counted");
	ok(taken.table.segment[0].length == SEGMENTS - 1 && taken.table.segment[1].length == 12345,
	   "no-copied-room: and no more are copied than there is room for");

	if (pthread_create(&writer, NULL, change_table, NULL)) {
		ok(false, "pthread-create: pthread_create");
		return;
	}
	do {
		n = rashpa_table_read(&shared.table, &taken.table, SEGMENTS);
		torn += n != -EAGAIN && !table_is_whole(&taken.table, n);
		readings++;
	} while (taken.table.generation != 2 * CHANGES);
	pthread_join(writer, NULL);
	ok(!torn, "readings-changing-table: %u of %u readings of a changing table are torn", torn, readings);

	shared.table.generation++;
	n = rashpa_table_read(&shared.table, &taken.table, SEGMENTS);
	ok(n == -EAGAIN && strstr(rashpa_reason(), "changed"), "change-without-end: a change without an end: %s",
	   rashpa_reason());
}

static void test_mmap(void)
{
	const uint64_t huge = 2 << 20, page = sysconf(_SC_PAGESIZE), length = 2 * huge + page;
	int fd = memfd_create("selftest", MFD_CLOEXEC);
	unsigned char resident;
	char *p, *q;

	if (fd < 0 || ftruncate(fd, 2 * length)) {
		ok(false, "memfd-create: memfd_create");
		return;
	}
	ok(!rashpa_mmap(fd, 0, length, PROT_READ | PROT_WRITE, (void **)&p) &&
	   !((uintptr_t)p % huge), "large-mapping-begins: a large mapping begins where a huge entry can");
	p[0] = 1;
	p[length - 1] = 2;
	ok(mincore(p + length, page, &resident) && errno == ENOMEM &&
	   mincore(p - page, page, &resident) && errno == ENOMEM,
	   "leaves-nothing-reserved: and leaves nothing reserved around it");
	ok(!rashpa_mmap(fd, page, length, PROT_READ, (void **)&q) &&
	   (uintptr_t)q % huge == page && q[length - page - 1] == 2,
	   "mapping-second-page: a mapping from the second page on begins a page behind such an address");
	munmap(q, length);
	munmap(p, length);
	ok(!rashpa_mmap(fd, 0, 5, PROT_READ, (void **)&p) && p[0] == 1, "small-mapping: a small mapping");
	munmap(p, 5);
	ok(!rashpa_mmap(fd, 0, huge + 5, PROT_READ, (void **)&p) && !((uintptr_t)p % huge),
	   "large-one-not: a large one that is not whole pages");
	munmap(p, huge + 5);
	ok(rashpa_mmap(fd, 0, UINT64_MAX - 5, PROT_READ, (void **)&p) == -ENOMEM && !p,
	   "absurdly-bytes: absurdly many bytes: %s", rashpa_reason());
	ok(rashpa_mmap(fd, 1, huge, PROT_READ, (void **)&p) == -EINVAL &&
	   strstr(rashpa_reason(), "offset 1"), "offset-no-page: an offset that is no page: %s", rashpa_reason());
	ok(rashpa_sync_begin(fd, PROT_READ) == -ENOTTY && strstr(rashpa_reason(), "not a dma-buf"),
	   "synchronising-file: synchronising a file: %s", rashpa_reason());
	ok(rashpa_sync_end(fd, PROT_NONE) == -EINVAL, "synchronising-nothing: synchronising for nothing: %s",
	   rashpa_reason());
	close(fd);
}

/* --- the queue of a channel, made of plain memory; a pipe is what poll() looks at --- */

#define RECORDS		8
#define RECORD_SIZE	64	/* larger than what we know */

static struct {
	struct rashpa_ring ring;
	uint8_t record[RECORDS][RECORD_SIZE];
} kernel = {
	.ring = {
		.record = sizeof(struct rashpa_ring), .record_size = RECORD_SIZE,
		.slots = RECORDS, .depth = 6,
	},
};

#define IDS	64

static union {
	struct rashpa_consumer page;
	uint8_t bytes[offsetof(struct rashpa_consumer, ack) + IDS * sizeof(uint64_t)];
} consumer;
static int wake[2];

static struct rashpa_queue fake_queue(void)
{
	kernel.ring.head = kernel.ring.gone = 0;
	memset(&consumer, 0, sizeof(consumer));
	return (struct rashpa_queue) {
		.channel = wake[0], .ring = &kernel.ring, .consumer = &consumer.page,
		.consumer_size = sizeof(consumer),
	};
}

static void queue_record(uint64_t sequence)
{
	uint64_t head = kernel.ring.head;
	struct rashpa_event event = { .sequence = sequence, .time_ns = now_ns(), .source = 1 };

	memcpy(kernel.record[head % RECORDS], &event, sizeof(event));
	__atomic_store_n(&kernel.ring.head, head + 1, __ATOMIC_RELEASE);
}

static void test_ring(void)
{
	struct rashpa_queue queue = fake_queue();
	struct rashpa_event event = {};
	uint64_t n = 0, right = 0;

	ok(!rashpa_ring_next(&queue, &event) && rashpa_ring_wait(&queue, 0) == -ETIMEDOUT, "empty-ring: an empty ring");
	for (unsigned int i = 0; i < 5; i++) {
		for (unsigned int j = 0; j < 6; j++)
			queue_record(++n);
		ok(!rashpa_ring_wait(&queue, -1), "ring-records-not: a ring with records does not wait");
		while (rashpa_ring_next(&queue, &event))
			right += event.sequence == right + 1 &&
				 consumer.page.tail == event.sequence;
	}
	ok(right == n && n == 30, "records-order-round: records come in order, round and round");
	consumer.page.tail = 12345;
	queue_record(31);
	ok(rashpa_ring_next(&queue, &event) && event.sequence == 26 && consumer.page.tail == 26,
	   "tail-cannot-nothing: a tail that cannot be: nothing was consumed");
	ok(!rashpa_ring_ack(&queue, IDS, 7) && consumer.page.ack[IDS - 1] == 7 &&
	   rashpa_ring_ack(&queue, 0, 7) == -EINVAL &&
	   rashpa_ring_ack(&queue, IDS + 1, 7) == -EINVAL,
	   "acknowledgement: an acknowledgement: %s", rashpa_reason());
	queue.channel = dup(STDOUT_FILENO);
	close(queue.channel);
	consumer.page.tail = kernel.ring.head;
	ok(rashpa_ring_wait(&queue, -1) == -EBADF, "channel-closed: a channel that was closed: %s",
	   rashpa_reason());
	consumer.page.tail--;
	kernel.ring.gone = 1;
	ok(!rashpa_ring_wait(&queue, -1), "before-function-went: events before the removal can be read");
	consumer.page.tail = kernel.ring.head;
	ok(rashpa_ring_wait(&queue, -1) == -ENODEV, "and-then: and then: %s", rashpa_reason());
}

/* Somebody else takes each record that wakes us, and the last one is ours. */
static void *wake_in_vain(void *unused)
{
	struct timespec pause = { .tv_nsec = 5000000 };

	for (unsigned int i = 0; i < 5; i++) {
		nanosleep(&pause, NULL);
		if (write(wake[1], "", 1) != 1)
			break;
	}
	queue_record(1);
	return unused;
}

static void test_vain_wakes(void)
{
	struct rashpa_queue queue = fake_queue();
	uint64_t begin = now_ns();
	pthread_t other;
	char c[8];

	if (write(wake[1], "", 1) != 1) {
		ok(false, "write: write");
		return;
	}
	ok(rashpa_ring_wait(&queue, 30000000) == -ETIMEDOUT && now_ns() - begin >= 30000000,
	   "not-too-early: a wait does not time out before the time is over, whatever wakes it");
	if (pthread_create(&other, NULL, wake_in_vain, NULL)) {
		ok(false, "0/pthread-create: pthread_create");
		return;
	}
	ok(!rashpa_ring_wait(&queue, -1), "wakes-without-record: wakes without a record do not end the wait");
	pthread_join(other, NULL);
	ok(read(wake[0], c, sizeof(c)) > 0, "wakes: the wakes were there");
}

/* --- waiting for a word --- */

#define STEPS	200

static uint64_t word;
static volatile bool waited[STEPS + 1];

/* A device that writes its word, then sends its event, each time the last was seen. */
static void *write_words(void *arg)
{
	const struct timespec pause = { .tv_nsec = *(const long *)arg };

	for (uint64_t i = 1; i <= STEPS; i++) {
		nanosleep(&pause, NULL);
		__atomic_store_n(&word, i, __ATOMIC_RELEASE);
		queue_record(i);
		if (write(wake[1], "", 1) != 1)
			break;
		while (!waited[i])
			sched_yield();
	}
	return NULL;
}

static void wait_for_words(struct rashpa_wait *wait, long pause, const char *what)
{
	unsigned int wrong = 0;
	uint64_t seen;
	pthread_t writer;
	char c;

	__atomic_store_n(&word, 0, __ATOMIC_RELEASE);
	memset((void *)(uintptr_t)waited, 0, sizeof(waited));
	if (pthread_create(&writer, NULL, write_words, &pause)) {
		ok(false, "wakes/pthread-create: pthread_create");
		return;
	}
	for (uint64_t i = 1; i <= STEPS; i++) {
		wait->value = wait->condition == RASHPA_CONDITION_CHANGED ? i - 1 : i;
		wrong += rashpa_lock_wait(wait, 10000000000, &seen) || seen != i;
		/* the channel of a driver is readable only while it has records */
		wrong += read(wake[0], &c, 1) != 1;
		waited[i] = true;
	}
	pthread_join(writer, NULL);
	ok(!wrong, "wait-for-words: %s: %" PRIu64 " of %u waits slept, %" PRIu64 " us spent spinning", what,
	   wait->slept, STEPS, wait->spent_ns / 1000);
}

static void test_wait(void)
{
	struct rashpa_queue queue = fake_queue();
	struct rashpa_wait wait = { .word = &word, .bits = 64,
				    .condition = RASHPA_CONDITION_REACHED };
	uint32_t narrow = 0x12345;
	uint64_t seen;

	wait.queue = &queue;
	wait.spin_max_ns = 20000000;
	wait.budget = 1000;
	wait_for_words(&wait, 1000, "words that come soon");
	ok(wait.slept < STEPS, "seen-without-sleeping: some of them are seen without sleeping");
	wait.budget = 10;
	wait.credit_ns = wait.last_ns = wait.spent_ns = wait.slept = 0;
	wait_for_words(&wait, 1000, "with a small budget");
	ok(wait.slept > STEPS / 2, "sleep: most of them sleep");
	wait = (struct rashpa_wait) {
		.word = &word, .bits = 64, .condition = RASHPA_CONDITION_CHANGED, .queue = &queue,
		.spin_max_ns = 1000,
	};
	wait_for_words(&wait, 1000000, "words that come late");
	wait.queue = NULL;
	wait.condition = RASHPA_CONDITION_EQUAL;
	wait.value = STEPS + 1;
	ok(rashpa_lock_wait(&wait, 20000000, &seen) == -ETIMEDOUT, "word-not: a word that does not come: %s",
	   rashpa_reason());
	queue = fake_queue();
	kernel.ring.gone = 1;
	wait.queue = &queue;
	ok(rashpa_lock_wait(&wait, 10000000000, &seen) == -ENODEV &&
	   rashpa_lock_wait(&wait, 0, &seen) == -ENODEV,
	   "word-function: a word of a function that is gone: %s", rashpa_reason());
	wait.value = STEPS;
	ok(!rashpa_lock_wait(&wait, 0, &seen) && seen == STEPS, "last-one-seen: its last one is seen nevertheless");
	wait.queue = NULL;
	wait.value = STEPS + 1;
	ok(rashpa_lock_wait(&wait, 0, &seen) == -ETIMEDOUT, "no-channel-hears: a wait without a channel does not notice it");
	wait.word = &narrow;
	wait.bits = 32;
	wait.mask = 0xff;
	wait.value = 0x45;
	ok(!rashpa_lock_wait(&wait, 0, &seen) && seen == 0x45, "part-word-32: a part of a word of 32 bits");
	wait.bits = 16;
	ok(rashpa_lock_wait(&wait, 0, NULL) == -EINVAL, "word-16-bits: a word of 16 bits: %s", rashpa_reason());
	wait.bits = 32;
	wait.word = (char *)&narrow + 1;
	ok(rashpa_lock_wait(&wait, 0, NULL) == -EINVAL, "crooked-word: a crooked word: %s", rashpa_reason());
}

static void test_names(void)
{
	ok(!strcmp(rashpa_class_name(RASHPA_CLASS_BRIDGE), "bridge") &&
	   !strcmp(rashpa_kind_name(RASHPA_KIND_PINNED), "pinned") &&
	   !strcmp(rashpa_source_name(RASHPA_SOURCE_FULL), "full") &&
	   !strcmp(rashpa_condition_name(RASHPA_CONDITION_REACHED), "reached") &&
	   !strcmp(rashpa_direction_name(RASHPA_FROM_MEMORY), "from-memory") &&
	   !strcmp(rashpa_map_state_name(RASHPA_MAP_STATE_REVOKED), "revoked"), "names-numbers: names of numbers");
	ok(!strcmp(rashpa_class_name(0), "?") && !strcmp(rashpa_class_name(99), "?"),
	   "number-without-name: a number without a name");
}

/* --- signatures, Secure Boot --- */

static void put_file(const char *root, const char *path, const void *data, size_t size)
{
	char name[512], *slash;
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (slash = strchr(name + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(name, 0755);
		*slash = '/';
	}
	file = fopen(name, "we");
	if (!file || fwrite(data, 1, size, file) != size)
		perror(name);
	if (file)
		fclose(file);
}

static void test_signing(void)
{
	static const char variable[] =
		"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
	static const char keys[] =
		"2d6f I------ 1 perm 1f030000 0 0 keyring   .builtin_trusted_keys: 1\n"
		"3ac1 I------ 1 perm 1f030000 0 0 asymmetri DKMS module signing key: 6ccece7e: "
		"X509.rsa 6ccece7e []\n";
	static const struct {
		const char *name, *secure, *lockdown, *enforce, *keys, *signer;
		bool found;
		enum signing_verdict verdict;
		const char *says, *remedy;
	} cases[] = {
		{ "nothing there", NULL, NULL, NULL, NULL, "", false, SIGNING_OK,
		  "secure boot not there (no UEFI), lockdown not told, signed modules not required",
		  NULL },
		{ "no lockdown, unsigned", "\6\0\0\0\0", "[none] integrity confidentiality\n",
		  "N\n", NULL, "", true, SIGNING_OK,
		  "secure boot off, lockdown none, signed modules not required; rashpa.ko is not signed",
		  NULL },
		{ "Secure Boot, unsigned", "\6\0\0\0\1", "none [integrity] confidentiality\n",
		  "N\n", keys, "", true, SIGNING_PROBLEM,
		  "secure boot on, lockdown integrity, signed modules required; rashpa.ko is not signed",
		  "Operation not permitted" },
		{ "Secure Boot, key enrolled", "\6\0\0\0\1", "none [integrity] confidentiality\n",
		  "N\n", keys, "DKMS module signing key", true, SIGNING_OK,
		  "it knows a key of that name", NULL },
		{ "Secure Boot, other key", "\6\0\0\0\1", "none [integrity] confidentiality\n",
		  "N\n", keys, "somebody", true, SIGNING_PROBLEM,
		  "signed by \"somebody\", it does not know that key", "mokutil --import" },
		{ "keys not told", "\6\0\0\0\1", "none integrity [confidentiality]\n", "Y\n", "",
		  "somebody", true, SIGNING_OK,
		  "lockdown confidentiality, signed modules required", NULL },
		{ "enforced without lockdown", NULL, "[none] integrity confidentiality\n", "Y\n",
		  keys, "", true, SIGNING_PROBLEM, "signed modules required",
		  "Key was rejected by service" },
		{ "enforced, not installed", NULL, NULL, "Y\n", keys, "", false, SIGNING_NOTE,
		  "signed modules required", NULL },
		{ "lockdown was switched off", "\6\0\0\0\1", "[none] integrity confidentiality\n",
		  "N\n", keys, "", true, SIGNING_NOTE,
		  "secure boot on, lockdown none, signed modules not required", NULL },
	};
	char root[] = "/tmp/rashpa-signing.XXXXXX", command[64], text[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct signing s = { .found = cases[i].found };
		enum signing_verdict verdict;
		const char *remedy;

		strcpy(root, "/tmp/rashpa-signing.XXXXXX");
		if (!mkdtemp(root)) {
			ok(false, "signing-2: %s", root);
			return;
		}
		if (cases[i].secure) {
			put_file(root, "/sys/firmware/efi/runtime", "", 0);
			put_file(root, variable, cases[i].secure, 5);
		}
		if (cases[i].lockdown)
			put_file(root, "/sys/kernel/security/lockdown", cases[i].lockdown,
				 strlen(cases[i].lockdown));
		if (cases[i].enforce)
			put_file(root, "/sys/module/module/parameters/sig_enforce",
				 cases[i].enforce, 2);
		if (cases[i].keys)
			put_file(root, "/proc/keys", cases[i].keys, strlen(cases[i].keys));
		strcpy(s.signer, cases[i].signer);
		signing_state(&s, root);
		signing_key(&s, root);
		verdict = signing_judge(&s, text, sizeof(text), &remedy);
		ok(verdict == cases[i].verdict && strstr(text, cases[i].says) &&
		   !remedy == !cases[i].remedy && (!remedy || strstr(remedy, cases[i].remedy)),
		   "signing: %s: %s", cases[i].name, text);
		snprintf(command, sizeof(command), "rm -rf %s", root);
		if (system(command))
			perror(root);
	}
}

/* --- the module that is loaded, the tools, the file --- */

static void test_versions(void)
{
	static const struct {
		const char *loaded, *loaded_source, *file, *file_source;
		enum versions_verdict verdict;
		const char *says, *remedy;
	} cases[] = {
		{ "2.0", "A", "2.0", "A", VERSIONS_SAME, "loaded, version 2.0", NULL },
		{ "2.0", "A", "", "", VERSIONS_SAME, "loaded, version 2.0", NULL },
		{ "2.0", "A", "2.0", "B", VERSIONS_RELOAD, "another build", "or reboot" },
		{ "1.0", "A", "2.0", "B", VERSIONS_RELOAD,
		  "version 1.0, but the tools are 2.0, and the module that is installed is 2.0",
		  "modprobe -r rashpa" },
		{ "1.0", "A", "1.0", "A", VERSIONS_INSTALL,
		  "version 1.0, but the tools are 2.0, and the module that is installed is 1.0",
		  "upgrade rashpa-dkms" },
		{ "3.0", "A", "", "", VERSIONS_INSTALL, "version 3.0, but the tools are 2.0",
		  "upgrade rashpa-dkms" },
		{ "", "", "2.0", "A", VERSIONS_RELOAD, "not told", "reboot" },
	};
	char text[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct versions v = { .tools = "2.0" };
		enum versions_verdict verdict;
		const char *remedy;

		strcpy(v.loaded, cases[i].loaded);
		strcpy(v.loaded_source, cases[i].loaded_source);
		strcpy(v.file, cases[i].file);
		strcpy(v.file_source, cases[i].file_source);
		verdict = versions_judge(&v, text, sizeof(text), &remedy);
		ok(verdict == cases[i].verdict && strstr(text, cases[i].says) &&
		   !remedy == !cases[i].remedy && (!remedy || strstr(remedy, cases[i].remedy)),
		   "versions: %s", text);
	}
}

/* --- without a driver --- */

static void test_unloaded(void)
{
	char dir[] = "/tmp/rashpa-selftest-XXXXXX", path[64];
	unsigned int *numbers = NULL;
	char **names;

	if (!mkdtemp(dir)) {
		ok(false, "mkdtemp: mkdtemp");
		return;
	}
	setenv("RASHPA_DEV", dir, 1);
#define UNLOADED(call)	ok((call) == -ENOENT && strstr(rashpa_reason(), "modprobe rashpa"), \
			   "no-driver: without a driver: " #call ": %s", rashpa_reason())
	ok(!strcmp(rashpa_version(), RASHPA_VERSION), "library: the library is %s", rashpa_version());
	UNLOADED(rashpa_memory_open());
	UNLOADED(rashpa_buffer_open("x", O_RDWR));
	UNLOADED(rashpa_device_open(0));
	UNLOADED(rashpa_buffer_list(&names));
	snprintf(path, sizeof(path), "%s/memory", dir);
	close(creat(path, 0600));
	ok(!rashpa_buffer_list(&names) && !rashpa_device_list(&numbers),
	   "one-no-buffers: with one, there may be no buffers and no functions");
	ok(rashpa_device_open(0) == -ENOENT && strstr(rashpa_reason(), "rashpactl bind"),
	   "function-missing-another: and a function is missing for another reason: %s", rashpa_reason());
	free(numbers);
	unlink(path);
	rmdir(dir);
	UNLOADED(rashpa_device_list(&numbers));
	unsetenv("RASHPA_DEV");
}

/* --- poll() --- */

static void test_poll(void)
{
	struct timespec t = time_left(1000000000, 1300000001, 1000000000);
	struct pollfd pollfd = { .fd = wake[0], .events = POLLIN };
	uint64_t end = now_ns() + 1500000;
	char c;

	ok(!t.tv_sec && t.tv_nsec == 300000001, "left-wait-nanosecond: the rest of a wait, to the nanosecond");
	t = time_left(5, UINT64_MAX, 2500000000);
	ok(t.tv_sec == 2 && t.tv_nsec == 500000000, "no-waited-once: no more than is to be waited at once");
	t = time_left(7, 6, 1);
	ok(!t.tv_sec && !t.tv_nsec, "nothing-left: nothing is left when it is over");
	ok(!stop_poll(&pollfd, 1, end) && now_ns() >= end, "wait-not-end: a wait does not end too early");
	ok(write(wake[1], "", 1) == 1 && stop_poll(&pollfd, 1, UINT64_MAX) == 1 &&
	   stop_poll(&pollfd, 1, 0) == 1, "ready-ready: a ready file is reported");
	ok(read(wake[0], &c, 1) == 1, "taken: and is taken");
	ok(!*stop_on_signals() && !raise(SIGHUP) && *stop_on_signals() &&
	   stop_poll(&pollfd, 1, UINT64_MAX) <= 0, "signal-ends-wait: a signal ends a wait without an end");
}

/* --- IOMMU --- */

static void test_iommu(void)
{
	char root[] = "/tmp/rashpa-iommu.XXXXXX", command[64];
	struct iommu iommu;

	if (!mkdtemp(root)) {
		ok(false, "iommu: %s", root);
		return;
	}
	iommu_look(&iommu, root);
	ok(!iommu.units && !iommu.groups && !iommu.translated, "machine-without-iommu: a machine without IOMMU");
	put_file(root, "/sys/class/iommu/dmar0", "", 0);
	put_file(root, "/sys/kernel/iommu_groups/0/type", "identity\n", 9);
	put_file(root, "/sys/kernel/iommu_groups/1/type", "identity\n", 9);
	iommu_look(&iommu, root);
	ok(iommu.units == 1 && iommu.groups == 2 && !iommu.translated,
	   "one-passes-through: one that passes through has groups, and translates nothing");
	put_file(root, "/sys/kernel/iommu_groups/1/type", "DMA-FQ\n", 7);
	iommu_look(&iommu, root);
	ok(iommu.groups == 2 && iommu.translated == 1, "one-translates: one that translates for some");
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		perror(root);
}

/* --- a function that goes while its ring is looked at --- */

static struct {
	struct rashpa_ring *ring;
	char *behind;		/* the page with "gone", which is not there at first */
	size_t size;
} going;

/* "gone" is about to be read: now the last record comes, and it is set. */
static void go(int number)
{
	struct rashpa_ring *ring = going.ring;

	(void)number;
	if (mprotect(going.behind, going.size, PROT_READ | PROT_WRITE))
		_exit(EXIT_FAILED);
	((struct rashpa_event *)((char *)ring + ring->record))->sequence = 1;
	ring->head = 1;
	ring->gone = 1;
}

static void test_going(void)
{
	struct sigaction action = { .sa_handler = go, .sa_flags = SA_RESETHAND };
	const size_t size = sysconf(_SC_PAGESIZE);
	struct rashpa_queue queue = fake_queue();
	struct rashpa_event event = {};
	char *p = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int result, left;

	if (p == MAP_FAILED) {
		ok(false, "mmap: mmap");
		return;
	}
	going.behind = p + size;
	going.size = size;
	going.ring = (void *)(going.behind - offsetof(struct rashpa_ring, gone));
	going.ring->record = sizeof(*going.ring);
	going.ring->record_size = sizeof(event);
	going.ring->slots = going.ring->depth = 1;
	queue.ring = going.ring;
	if (mprotect(going.behind, size, PROT_NONE) || sigaction(SIGSEGV, &action, NULL)) {
		ok(false, "mprotect: mprotect");
		return;
	}
	result = rashpa_ring_wait(&queue, 0);
	left = rashpa_ring_next(&queue, &event);
	ok(!result && left == 1 && event.sequence == 1,
	   "last-record-before: the last record comes before the end: %d with %d left", result, left);
	ok(rashpa_ring_wait(&queue, 0) == -ENODEV, "going: and then: %s", rashpa_reason());
	munmap(p, 2 * size);
}

/* --- GPUs --- */

static void put_line(const char *root, const char *device, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", device, name);
	put_file(root, path, text, strlen(text));
}

/* --- cards --- */

static void test_nics(void)
{
	/* Capabilities at 0x48 (power management) and 0x60 (PCIe): relaxed ordering as [0x68] bit 4. */
	uint8_t config[4096] = { [0x34] = 0x48, [0x48] = 1, 0x60, [0x60] = 0x10, 0, [0x68] = 0x10 };
	const struct { const char *name, *bdf, *driver; } cards[] = {
		{ "bnxt_re0", "0000:5e:00.0", "bnxt_en" }, { "mlx5_0", "0000:3b:00.0", "mlx5_core" },
	};
	char root[] = "/tmp/rashpa-nics.XXXXXX", command[64], text[512], link[256];
	const char *remedy;
	struct nic nic[4];

	if (!mkdtemp(root)) {
		ok(false, "nics: %s", root);
		return;
	}
	ok(!nics_look(nic, 4, root), "nics-none: a machine without RDMA cards");
	for (size_t i = 0; i < 2; i++) {
		put_line(root, cards[i].bdf, "numa_node", i ? "1\n" : "-1\n");
		snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s/driver", root, cards[i].bdf);
		snprintf(text, sizeof(text), "../../drivers/%s", cards[i].driver);
		if (symlink(text, link))
			perror(link);
		snprintf(link, sizeof(link), "/sys/class/infiniband/%s/node_type", cards[i].name);
		put_file(root, link, "1: CA\n", 6);
		snprintf(link, sizeof(link), "%s/sys/class/infiniband/%s/device", root, cards[i].name);
		snprintf(text, sizeof(text), "../../../bus/pci/devices/%s", cards[i].bdf);
		if (symlink(text, link))
			perror(link);
	}
	put_file(root, "/sys/class/infiniband/rxe0/node_type", "1: CA\n", 6);
	put_file(root, "/sys/bus/pci/devices/0000:3b:00.0/config", config, sizeof(config));
	ok(nics_look(nic, 4, root) == 3 && nics_look(nic, 1, root) == 3, "nics-all: three cards, one of them wanted");
	nics_look(nic, 4, root);
	ok(nic_judge(&nic[2], false, text, sizeof(text), &remedy) == NIC_OK && !remedy && strstr(text, "soft"),
	   "nics-soft: %s", text);
	ok(nic[1].node == 1 && nic[1].function == PCI_BDF(0, 0x3b, 0) && nic[1].order == ORDER_RELAXED &&
	   nic_judge(&nic[1], false, text, sizeof(text), &remedy) == NIC_OK && !remedy &&
	   strstr(text, "dma-buf: yes") && strstr(text, "ordering on"), "nics-dma-buf: %s", text);
	ok(nic_judge(&nic[0], false, text, sizeof(text), &remedy) == NIC_NOTE && strstr(remedy, "nvidia-peermem") &&
	   strstr(text, "root"), "nics-peermem: %s", text);
	ok(nic_judge(&nic[0], true, text, sizeof(text), &remedy) == NIC_OK && !remedy && strstr(text, "peermem loaded"),
	   "nics-peermem-loaded: %s", text);
	config[0x68] = 0;
	put_file(root, "/sys/bus/pci/devices/0000:3b:00.0/config", config, sizeof(config));
	nics_look(nic, 2, root);
	ok(nic_judge(&nic[1], false, text, sizeof(text), &remedy) == NIC_NOTE && strstr(remedy, "ordering"),
	   "nics-strict: %s", text);
	/* a list without an end, and what other users see */
	config[0x49] = 0x48;
	put_file(root, "/sys/bus/pci/devices/0000:3b:00.0/config", config, sizeof(config));
	nics_look(nic, 2, root);
	ok(nic[1].order == ORDER_UNKNOWN, "nics-circle: a circle of capabilities");
	put_file(root, "/sys/bus/pci/devices/0000:3b:00.0/config", config, 64);
	nics_look(nic, 2, root);
	ok(nic[1].order == ORDER_UNKNOWN, "nics-user: 64 bytes of the configuration space");
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		perror(root);
}

/* A function of a recorded /sys, with its bridges in the path. */
static void put_function(const char *root, const char *path, const uint8_t *config)
{
	static const char *const names[] = { "vendor", "device", "class" };
	const char *bdf = strrchr(path, '/') + 1;
	char name[256], link[256];

	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		put_file(root, name, "0x060400\n", 9);
	}
	snprintf(name, sizeof(name), "%s/config", path);
	put_file(root, name, config, 4096);
	snprintf(name, sizeof(name), "%s/resource", path);
	put_file(root, name, "", 0);
	snprintf(name, sizeof(name), "../../..%s", path + strlen("/sys"));
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices", root);
	mkdir(link, 0755);
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s", root, bdf);
	if (symlink(name, link))
		perror(link);
}

/* 3b and 3c are below one switch (39), 5e is below another host bridge. */
static void test_topology(void)
{
#define ROOT_PORT	"/sys/devices/pci0000:38/0000:38:00.0"
#define SWITCH		ROOT_PORT "/0000:39:00.0"
	/* status: capabilities; PCIe at 0x40; ACS at 0x100, whose control is at 0x106 */
	uint8_t config[4096] = {
		[0x06] = 0x10, [0x34] = 0x40, [0x40] = 0x10, [0x100] = 0x0d, 0x00, 0x01, 0x00,
	};
	char root[] = "/tmp/rashpa-topology.XXXXXX", command[64];
	uint64_t where = 0, port = 0;
	struct chain card, gpu, far;

	if (!mkdtemp(root)) {
		ok(false, "topology: %s", root);
		return;
	}
	put_file(root, "/sys/bus/pci/version", "", 0);
	put_function(root, ROOT_PORT, config);
	put_function(root, SWITCH, config);
	put_function(root, SWITCH "/0000:3a:00.0", config);
	put_function(root, SWITCH "/0000:3a:00.0/0000:3b:00.0", config);
	config[0x106] = 0x04;	/* requests are redirected */
	put_function(root, SWITCH "/0000:3a:01.0", config);
	put_function(root, SWITCH "/0000:3a:01.0/0000:3c:00.0", config);
	put_function(root, "/sys/devices/pci0000:5d/0000:5d:00.0", config);
	put_function(root, "/sys/devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0", config);
	topology_root = root;
	ok(topology_chain(PCI_BDF(0, 0x3b, 0), &card) && topology_chain(PCI_BDF(0, 0x3c, 0), &gpu) &&
	   topology_chain(PCI_BDF(0, 0x5e, 0), &far) && card.n == 4 && far.n == 2,
	   "topology-chains: bridges above a function, from sysfs");
	ok(chains_meet(&card, &gpu, &where) == MEET_SWITCH && where == PCI_BDF(0, 0x39, 0) &&
	   chains_meet(&card, &far, &port) == MEET_NOWHERE, "topology-meet: two below a switch, one elsewhere");
	ok(topology_acs(&card, where, &port) == ACS_OFF && topology_acs(&gpu, where, &port) == ACS_REDIRECTS &&
	   port == PCI_BDF(0, 0x3a, 8), "topology-acs: the port that sends requests up (ACS)");
	topology_done();
	topology_root = "";
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		perror(root);
}

static void test_gpus(void)
{
	static const struct {
		const char *bdf, *class, *vendor, *driver, *resource, *total;
		bool p2pdma;
		enum gpu_verdict verdict;
		const char *says, *remedy;	/* says NULL: not a GPU */
	} cases[] = {
		{ "0000:01:00.0", "0x030200\n", "0x10de\n", "nvidia",
		  "0xf0000000 0xf0ffffff 0x40200\n0x100000000 0x1ffffffff 0x14220c\n", NULL, true,
		  GPU_GIVES, "open modules) gives memory.*BAR 4 GiB", NULL },
		{ "0000:02:00.0", "0x020000\n", "0x8086\n", "e1000e", "", NULL, true, GPU_OTHER,
		  NULL, NULL },
		{ "0000:03:00.0", "0x038000\n", "0x1002\n", "amdgpu",
		  "0x100000000 0x10fffffff 0x14220c\n", "17163091968\n", true, GPU_NOTE,
		  "only 256 MiB of 1.*GiB are in its BAR", "Resizable BAR" },
		{ "0000:04:00.0", "0x120000\n", "0x1002\n", "amdgpu",
		  "0x100000000 0x10fffffff 0x14220c\n", "268435456\n", false, GPU_NOTE,
		  "no P2PDMA", "CONFIG_PCI_P2PDMA" },
		{ "0000:05:00.0", "0x030000\n", "0x8086\n", "i915", "", NULL, true, GPU_NOTE,
		  "moves memory to the host", "xe.force_probe" },
		{ "0000:06:00.0", "0x030000\n", "0x1a03\n", "ast", "", NULL, true, GPU_OTHER,
		  "ast.*not known", NULL },
		{ "0000:07:00.0", "0x038000\n", "0x1af4\n", "virtio-pci", "", NULL, true, GPU_GIVES,
		  "virtio_gpu gives", NULL },
		{ "10000:07:00.0", "0x030000\n", "0x8086\n", NULL, "rubbish\n", NULL, true,
		  GPU_OTHER, "no driver has it", NULL },
	};
	enum { CASES = sizeof(cases) / sizeof(cases[0]) };
	static const char open_text[] =
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.10\n";
	static const char params_text[] =
		"ResmanDebugLevel: 4294967295\nRegistryDwords: \"PeerMappingOverride=1;\"\n";
	static const char closed_text[] = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1\n";
	char root[] = "/tmp/rashpa-gpus.XXXXXX", command[64], text[512], link[256];
	const char *remedy;
	struct gpu gpu[CASES];
	unsigned int n, at = 0;

	if (!mkdtemp(root)) {
		ok(false, "gpus: %s", root);
		return;
	}
	ok(!gpus_look(gpu, CASES, root), "machine-without-gpus: a machine without GPUs");
	for (size_t i = 0; i < CASES; i++) {
		put_line(root, cases[i].bdf, "class", cases[i].class);
		put_line(root, cases[i].bdf, "vendor", cases[i].vendor);
		put_line(root, cases[i].bdf, "resource", cases[i].resource);
		if (cases[i].total)
			put_line(root, cases[i].bdf, "mem_info_vram_total", cases[i].total);
		snprintf(text, sizeof(text), "../../../bus/pci/drivers/%s", cases[i].driver);
		snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s/driver", root,
			 cases[i].bdf);
		if (cases[i].driver && symlink(text, link))
			perror(link);
	}
	put_line(root, "0000:07:00.0", "virtio3/vendor", "0x1af4\n");
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/0000:07:00.0/virtio3/driver", root);
	if (symlink("../../../bus/virtio/drivers/virtio_gpu", link))
		perror(link);
	put_file(root, "/proc/driver/nvidia/version", open_text, strlen(open_text));
	n = gpus_look(gpu, CASES, root);
	ok(n == CASES - 1 && gpus_look(gpu, 2, root) == n, "gpus-wanted: %u GPUs, some of them wanted", n);
	n = gpus_look(gpu, CASES, root);
	for (size_t i = 0; i < CASES && at < n; i++) {
		enum gpu_verdict verdict;
		regex_t says;
		bool right;

		if (!cases[i].says)
			continue;
		verdict = gpu_judge(&gpu[at], cases[i].p2pdma, text, sizeof(text), &remedy);
		right = !regcomp(&says, cases[i].says, REG_NOSUB) &&
			!regexec(&says, text, 0, NULL, 0);
		regfree(&says);
		ok(right && verdict == cases[i].verdict && !strcmp(gpu[at].bdf, cases[i].bdf) &&
		   !remedy == !cases[i].remedy && (!remedy || strstr(remedy, cases[i].remedy)),
		   "gpu: GPU: %s", text);
		at++;
	}
	ok(gpu[0].function == PCI_BDF(0, 1, 0) && gpu[6].function == PCI_BDF(0x10000, 7, 0),
	   "domains-length: domains of any length");
	ok(!gpu[0].windows, "windows-boards-root: windows of boards are root's");
	put_file(root, "/proc/driver/nvidia/params", params_text, strlen(params_text));
	put_file(root, "/proc/driver/nvidia/version", closed_text, strlen(closed_text));
	gpus_look(gpu, 1, root);
	ok(gpu_judge(&gpu[0], true, text, sizeof(text), &remedy) == GPU_NOTE && remedy &&
	   strstr(text, "closed modules) gives its memory to no board"), "gpus-2: GPU: %s", text);
	ok(gpu[0].windows, "everybody: or everybody's");
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		perror(root);
}

/* --- texts that others wrote --- */

/* Names of processes and labels of headers: some act on a terminal, some are no UTF-8. */
static const struct {
	const char *text, *shown, *json;
} texts[] = {
	{ "remu", "remu", "\"remu\"" },
	{ "M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x98\x80", "M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x98\x80",
	  "\"M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x98\x80\"" },
	/* ESC, a newline, DEL; in JSON they are what they are */
	{ "\x1b[31m\"}\n\x7f", "\\x1b[31m\"}\\x0a\\x7f", "\"\\u001b[31m\\\"}\\n\\u007f\"" },
	{ "\xc2\x9b" "2J", "\\xc2\\x9b2J", "\"\\u009b2J\"" },	/* CSI in one character */
	{ "a\xe2\x80\xae" "b", "a\\xe2\\x80\\xaeb", "\"a\\u202eb\"" },	/* turns the order */
	{ "\xf3\xa0\x81\xa1", "\\xf3\\xa0\\x81\\xa1", "\"\\udb40\\udc61\"" },	/* hides */
	/* no UTF-8: a byte alone, one that is missing, longer than needed, a half of a pair, too much */
	{ "\xff.", "\\xff.", "\"\\\\xff.\"" },
	{ "\xe2\x82", "\\xe2\\x82", "\"\\\\xe2\\\\x82\"" },
	{ "\xc0\xaf", "\\xc0\\xaf", "\"\\\\xc0\\\\xaf\"" },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\\\xed\\\\xa0\\\\x80\"" },
	{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"" },
	{ "a\\x1b", "a\\x1b", "\"a\\\\x1b\"" },	/* a backslash stays */
};

static void test_shown(void)
{
	char small[8];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json_object *o = json_object_new_string(texts[i].text);
		char *json = json_shown(o, JSON_C_TO_STRING_PLAIN);

		ok(!strcmp(SHOWN(texts[i].text), texts[i].shown), "shown: it is shown as %s",
		   texts[i].shown);
		ok(json && !strcmp(json, texts[i].json), "shown-json: and in JSON as %s",
		   texts[i].json);
		ok(is_shown_as_is(texts[i].text) == !strcmp(texts[i].text, texts[i].shown),
		   "shown-as-is: which is seen before");
		free(json);
		json_object_put(o);
	}
	ok(!strcmp(show_text(small, sizeof(small), "abcd\x1b"), "abcd"),
	   "shown-cut: an escape that does not fit is left out");
	ok(!strcmp(show_text(small, sizeof(small), "abcdef\xc3\xbc"), "abcdef"),
	   "shown-cut-character: so is a character");
}

/* Ids of PCI have four digits at least, as lspci prints them; other numbers have no leading zeros. */
static void test_numbers(void)
{
	struct json_object *o = json_object_new_object();
	const char *want = "{\"id\":\"0x0010\",\"large\":\"0x10ffff\",\"hex\":\"0x10\"}";

	put_id(o, "id", 0x10);
	put_id(o, "large", 0x10ffff);
	put_hex(o, "hex", 0x10);
	ok(!strcmp(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN), want),
	   "json-ids: ids have four digits: %s", want);
	json_object_put(o);
}

/* What say() writes to standard error. */
static void test_said(void)
{
	FILE *said = tmpfile();
	const int err = dup(STDERR_FILENO);
	char text[256] = "";

	if (!said || err < 0) {
		ok(false, "said-file: a file for what is said");
		return;
	}
	dup2(fileno(said), STDERR_FILENO);
	say("process 7 (%s) has it", "\x1b[31m\n\xff");
	dup2(err, STDERR_FILENO);
	close(err);
	rewind(said);
	ok(fread(text, 1, sizeof(text) - 1, said) && strstr(text, "(\\x1b[31m\\x0a\\xff) has it\n"),
	   "said: a sentence shows what others wrote");
	fclose(said);
}

int main(int argc, char **argv)
{
	puts("TAP version 13");
	test_sizes();
	test_modes();
	test_regions();
	test_percentiles();
	test_depth();
	test_geometry();
	test_dataset();
	test_bdf();
	test_files();
	test_paths();
	test_table();
	test_mmap();
	if (!pipe2(wake, O_CLOEXEC)) {
		test_ring();
		test_vain_wakes();
		test_going();
		test_wait();
		test_poll();
	}
	test_names();
	test_signing();
	test_versions();
	test_unloaded();
	test_iommu();
	test_gpus();
	test_nics();
	test_topology();
	test_shown();
	test_numbers();
	test_said();
	if (argc > 1)
		test_profile(argv[1]);
	else
		ok(true, "profiles-skip-no: profiles # SKIP no folder was given");
	return tap_end();
}
