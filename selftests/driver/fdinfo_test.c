// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * /proc/self/fdinfo describes buffers, maps and channels as LIST does.
 * test: tier=check kernel=each seconds=1
 */
#include "common.h"

#define NAME	"st-fdinfo"

static struct fpga f;

/* The text after "rashpa-@key:", or an empty one. */
static const char *value(int fd, const char *key)
{
	static char text[1024];
	char word[40], *at;

	snprintf(word, sizeof(word), "\nrashpa-%s:\t", key);
	if (!read_fdinfo(fd, text, sizeof(text)))
		return "";
	at = strstr(text, word);
	if (!CHECK(at, "fdinfo has no rashpa-%s", key))
		return "";
	at += strlen(word);
	at[strcspn(at, "\n")] = '\0';
	return at;
}

static u64 number(int fd, const char *key)
{
	return strtoull(value(fd, key), NULL, 10);
}

/* Compare with what LIST says of the same serial. */
static void as_listed(int fd, const char *kind, uint32_t resource)
{
	static struct rashpa_holding h[64];
	struct rashpa_list list = { HEAD(list), .holdings = (uintptr_t)h, .n_holdings = 64,
				    .holding_size = sizeof(*h),
				    .after = number(fd, "serial") - 1 };

	CHECK(!strcmp(value(fd, "kind"), kind), "kind %s", value(fd, "kind"));
	ANSWERED(call(memory, RASHPA_IOC_LIST, &list), 0, NULL);
	REQUIRE(list.out_holdings && h->serial == number(fd, "serial"), "no such serial");
	CHECK(h->resource == resource, "resource %u", h->resource);
	CHECK(h->device == atoi(value(fd, "device")), "device %s", value(fd, "device"));
	CHECK(h->id == number(fd, "id"), "id %s", value(fd, "id"));
	CHECK(!strcmp(h->name, value(fd, "name")), "name %s", value(fd, "name"));
	CHECK(h->memory == number(fd, "memory"), "memory %s", value(fd, "memory"));
}

TEST(buffer, "the node of a buffer")
{
	int buffer = buffer_alloc(3 * PAGE, NAME), node = buffer_node(NAME, O_RDWR);
	int look = buffer_node(NAME, O_ACCMODE);
	void *p = map_fd(buffer, 3 * PAGE);
	struct rashpa_info info;

	ANSWERED(buffer_info(buffer, &info), 0, NULL);
	as_listed(node, "buffer", RASHPA_RESOURCE_MEMORY);
	as_listed(look, "buffer", RASHPA_RESOURCE_MEMORY);
	CHECK(!strcmp(value(node, "name"), NAME), "name %s", value(node, "name"));
	CHECK(number(node, "size") == 3 * PAGE, "size %s", value(node, "size"));
	CHECK(atoi(value(node, "node")) == info.out_node, "node %s", value(node, "node"));
	CHECK(number(node, "leases") == 2, "leases %s", value(node, "leases"));
	CHECK(number(node, "mappings") == 1, "mappings %s", value(node, "mappings"));
	CHECK(number(node, "importers") == 0, "importers %s", value(node, "importers"));
	munmap(p, 3 * PAGE);
	close(look);
	close(node);
	buffer_end(buffer, NAME);
}

TEST(map, "a map")
{
	int buffer = buffer_alloc(2 * PAGE, NULL), map;
	struct rashpa_map_make made;
	uint32_t entries;

	map = fpga_map(&f, buffer, RASHPA_BIDIRECTIONAL, &made);
	as_listed(map, "map", RASHPA_RESOURCE_MAPS);
	CHECK(number(map, "id") == made.out_id, "id %s", value(map, "id"));
	CHECK(number(map, "size") == 2 * PAGE, "size %s", value(map, "size"));
	CHECK(number(map, "state") == RASHPA_MAP_STATE_VALID, "state %s", value(map, "state"));
	CHECK(number(map, "class") == made.out_class, "class %s", value(map, "class"));
	CHECK(number(map, "segments") == made.out_segments, "segments %s", value(map, "segments"));
	CHECK(number(map, "entries") == 0, "entries %s", value(map, "entries"));
	ANSWERED(fpga_program(map, 0, &entries), 0, NULL);
	CHECK(number(map, "entries") == entries, "entries %s", value(map, "entries"));
	close(map);
	close(buffer);
}

TEST(channel, "a channel")
{
	struct rashpa_channel_make c = { HEAD(c), .depth = 2 };
	struct rashpa_event e;
	int i;

	ANSWERED(call(f.fd, RASHPA_IOC_CHANNEL_MAKE, &c), 0, NULL);
	CHECK(source_add(c.out_fd, RASHPA_SOURCE_SOFTWARE, 0) > 0, "%s", reason);
	for (i = 0; i < 3; i++)
		ANSWERED(signal_one(c.out_fd, 1), 0, NULL);
	CHECK(read(c.out_fd, &e, sizeof(e)) == sizeof(e), "read");
	as_listed(c.out_fd, "channel", RASHPA_RESOURCE_CHANNELS);
	CHECK(number(c.out_fd, "depth") == 2, "depth %s", value(c.out_fd, "depth"));
	CHECK(number(c.out_fd, "records") == 2, "records %s", value(c.out_fd, "records"));
	CHECK(number(c.out_fd, "waiting") == 1, "waiting %s", value(c.out_fd, "waiting"));
	CHECK(number(c.out_fd, "lost") == 1, "lost %s", value(c.out_fd, "lost"));
	CHECK(number(c.out_fd, "gone") == 0, "gone %s", value(c.out_fd, "gone"));
	close(c.out_fd);
}

void setup(void)
{
	fpga_need(&f);
}
