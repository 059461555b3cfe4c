// SPDX-License-Identifier: LGPL-2.1-or-later
/* Resources of this machine, for planning. */
#include "daemon/internal.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/fpga.h"
#include "common/parse.h"
#include "link/transport.h"
#include <rashpa-board.h>
#include "common/text-file.h"

#define BUFFERS		256	/* limits of the schema, and: */
#define BOARDS		64
#define NICS		64

static void add_node(xmlNode *to, int node)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", node);
	attribute_add(to, "node", text);
}

/* Properties of a board with the reference interface. */
static void add_interface(xmlNode *to, const char *name)
{
	struct rashpa_board_view memory;
	struct rashpa_board_info info;
	struct rashpa_board *board;

	if (rashpa_board_open(name, &board))
		return;
	if (!rashpa_board_get_info(board, &info)) {
		attribute_add_number(to, "processes", info.dtps);
		attribute_add(to, "pretreats", info.units ? "true" : "false");
		if (!rashpa_board_window(board, "memory", &memory))
			attribute_add_number(to, "memory", memory.length);
	}
	rashpa_board_close(board);
}

static void add_boards(xmlNode *to)
{
	unsigned int *number = NULL;
	const int n = rashpa_device_list(&number);
	char why[WHY_SIZE], name[16];

	for (int i = 0; i < n && i < BOARDS; i++) {
		struct fpga fpga = FPGA_NONE;
		xmlNode *board;

		if (fpga_open(&fpga, number[i], why))
			continue;
		board = element_add(to, "board");
		snprintf(name, sizeof(name), "fpga%u", number[i]);
		attribute_add(board, "name", name);
		add_interface(board, name);
		add_node(board, fpga.info.out_node);
		fpga_close(&fpga);
	}
	free(number);
}

static void add_buffers(xmlNode *to)
{
	char **name = NULL;
	const int n = rashpa_buffer_list(&name);

	for (int i = 0; i < n && i < BUFFERS; i++) {
		const int node = rashpa_buffer_open(name[i], O_RDONLY | O_CLOEXEC);
		struct rashpa_info info = { .fd = -1 };
		xmlNode *buffer;

		if (node >= 0 && !rashpa_memory_get_info(node, &info)) {
			buffer = element_add(to, "buffer");
			attribute_add_line(buffer, "name", name[i]);
			attribute_add_number(buffer, "bytes", info.out_length);
			add_node(buffer, info.out_node);
		}
		if (node >= 0)
			close(node);
	}
	if (n > 0)
		rashpa_buffer_list_free(name, n);
}

static long long read_number(const char *interface, const char *what)
{
	char text[32];
	uint64_t number;

	if (!read_line(text, sizeof(text), "/sys/class/net/%s/%s", interface, what) ||
	    !parse_u64(text, INT32_MAX, &number))
		return -1;
	return number;
}

static void add_interfaces(xmlNode *to, int left)
{
	struct if_nameindex *list = if_nameindex();

	for (struct if_nameindex *i = list; i && i->if_index && left--; i++) {
		const long long mtu = read_number(i->if_name, "mtu");
		const long long speed = read_number(i->if_name, "speed");
		const long long node = read_number(i->if_name, "device/numa_node");
		xmlNode *nic = element_add(to, "nic");

		attribute_add_line(nic, "name", i->if_name);
		if (mtu > 0)
			attribute_add_number(nic, "mtu", mtu);
		if (speed > 0)
			attribute_add_number(nic, "bits-per-second", speed * 1000000);
		if (node >= 0)
			add_node(nic, node);
	}
	if (list)
		if_freenameindex(list);
}

/* Rate of a port, from the codes for speed and width in InfiniBand's PortInfo. 0: not known */
static uint64_t bits_per_second(const struct ibv_port_attr *port)
{
	static const struct {
		uint8_t speed;
		uint64_t megabits;	/* rate of a lane */
	} speeds[] = {
		{ 1, 2500 }, { 2, 5000 }, { 4, 10000 }, { 8, 10000 }, { 16, 14000 },
		{ 32, 25000 }, { 64, 50000 }, { 128, 100000 },
	};
	static const struct {
		uint8_t width, lanes;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	uint64_t bits = 0, lanes = 0;

	for (unsigned int i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		bits = speeds[i].speed == port->active_speed ? speeds[i].megabits * 1000000 : bits;
	for (unsigned int i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		lanes = widths[i].width == port->active_width ? widths[i].lanes : lanes;
	return bits * lanes;
}

/* RDMA has its own packet sizes. */
static int add_rdma(xmlNode *to)
{
	int n = 0, added = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && added < NICS / 2; i++) {
		struct ibv_context *context = ibv_open_device(list[i]);
		struct ibv_port_attr port;
		xmlNode *nic;

		if (!context)
			continue;
		if (!ibv_query_port(context, 1, &port)) {
			nic = element_add(to, "nic");
			attribute_add_line(nic, "name", ibv_get_device_name(list[i]));
			attribute_add_number(nic, "mtu", 128u << port.active_mtu);
			if (bits_per_second(&port))
				attribute_add_number(nic, "bits-per-second",
						     bits_per_second(&port));
			added++;
		}
		ibv_close_device(context);
	}
	if (list)
		ibv_free_device_list(list);
	return added;
}

static void add_memory(xmlNode *to)
{
	const int memory = rashpa_memory_open();
	struct rashpa_query query;

	for (int node = 0; memory >= 0 && node < 64; node++) {
		xmlNode *element;

		query = (struct rashpa_query) {
			.head.flags = RASHPA_QUERY_NODE, .node = node,
		};
		if (rashpa_memory_query(memory, &query))
			break;
		element = element_add(to, "memory");
		add_node(element, node);
		attribute_add_number(element, "bytes", query.out_total);
		attribute_add_number(element, "free", query.out_largest);
	}
	if (memory >= 0)
		close(memory);
}

static void add_disk(xmlNode *to)
{
	struct statvfs fs;
	char path[512];
	xmlNode *disk;

	if (!getcwd(path, sizeof(path)) || statvfs(path, &fs))
		return;
	disk = element_add(to, "disk");
	attribute_add_line(disk, "path", path);
	attribute_add_number(disk, "free", (uint64_t)fs.f_bavail * fs.f_frsize);
}

/* --- reports of a child --- */

static uint64_t number(struct json_object *o, const char *key)
{
	return json_object_get_uint64(json_object_object_get(o, key));
}

static const char *word(struct json_object *o, const char *key)
{
	return json_object_get_string(json_object_object_get(o, key));
}

static void counts_of(xmlNode *to, struct json_object *counts)
{
	json_object_object_foreach(counts, name, value) {
		xmlNode *count = element_add(to, "count");
		char text[24];

		attribute_add(count, "name", name);
		snprintf(text, sizeof(text), "%" PRIu64, json_object_get_uint64(value));
		element_set(count, text);
	}
}

void counts_add(xmlNode *to, struct json_object *status)
{
	struct json_object *counts = json_object_object_get(status, "counts");
	struct json_object *links = json_object_object_get(status, "links");

	if (counts)
		counts_of(to, counts);
	for (size_t i = 0; links && i < json_object_array_length(links); i++) {
		struct json_object *o = json_object_array_get_idx(links, i);
		xmlNode *link = element_add(to, "link");

		attribute_add_line(link, "to", word(o, "to"));
		counts_of(link, json_object_object_get(o, "counts"));
	}
}

static void image_add(xmlNode *to, struct json_object *image)
{
	xmlNode *node;

	if (!image)
		return;
	node = element_add(to, "image");
	attribute_add_number(node, "width", number(image, "width"));
	attribute_add_number(node, "height", number(image, "height"));
	attribute_add(node, "pixel", word(image, "pixel"));
}

void configured_add(xmlNode *to, struct json_object *configured)
{
	struct json_object *paths = json_object_object_get(configured, "paths");

	image_add(to, json_object_object_get(configured, "image"));
	for (size_t i = 0; paths && i < json_object_array_length(paths); i++) {
		struct json_object *o = json_object_array_get_idx(paths, i);
		xmlNode *path = element_add(to, "path");

		attribute_add_line(path, "to", word(o, "to"));
		attribute_add_number(path, "needs", number(o, "needs"));
		attribute_add_number(path, "carries", number(o, "carries"));
	}
}

static void rate_add(xmlNode *to, struct json_object *rate)
{
	char text[32];

	if (!rate)
		return;
	snprintf(text, sizeof(text), "%.9f", json_object_get_double(rate));
	element_set(element_add(to, "rate"), text);
}

void able_add(xmlNode *to, struct json_object *able, bool before)
{
	struct json_object *engines = json_object_object_get(able, "engines");

	if (before) {
		image_add(to, json_object_object_get(able, "image"));
		rate_add(to, json_object_object_get(able, "rate"));
		for (const struct transport *t = transports; t->name; t++)
			element_set(element_add(to, "transport"), t->name);
		return;
	}
	for (size_t i = 0; engines && i < json_object_array_length(engines); i++) {
		struct json_object *o = json_object_array_get_idx(engines, i);
		xmlNode *engine = element_add(to, "engine");

		attribute_add(engine, "name", word(o, "name"));
		attribute_add_number(engine, "threads", number(o, "threads"));
		attribute_add_number(engine, "bytes-per-second", number(o, "bytes_per_second"));
	}
}

void machine_tell(xmlNode *to, struct json_object *able)
{
	/* in the order of the schema */
	able_add(to, able, true);
	add_boards(to);
	add_buffers(to);
	add_interfaces(to, NICS - add_rdma(to));
	able_add(to, able, false);
	add_memory(to);
	add_disk(to);
}

int machine_write_register(uint64_t fpga, const char *window, uint64_t offset, uint64_t value,
			   char *why)
{
	struct rashpa_window_make make = {};
	struct fpga f = FPGA_NONE;
	int result = -1, fd;
	void *view;

	if (fpga > UINT32_MAX || fpga_open(&f, fpga, why))
		return fpga > UINT32_MAX ? because(why, -1, "there is no fpga%" PRIu64 ": see rashpactl list",
							  (uint64_t)fpga) : -1;
	/* Permit only windows of the profile: telegrams must not write to the rest of a BAR. */
	strncpy(make.name, window, sizeof(make.name) - 1);
	fd = rashpa_device_window(f.device, &make);
	if (fd < 0 || rashpa_mmap(fd, 0, make.out_length, PROT_READ | PROT_WRITE, &view)) {
		because(why, -1, "fpga%u: window \"%s\": %s", f.number, window, rashpa_reason());
	} else {
		if (offset % 4 || offset + 4 > make.out_length || value > UINT32_MAX)
			because(why, -1, "fpga%u: window \"%s\" has %" PRIu64 " bytes, and takes words of 32 bits at multiples of 4",
				f.number, window, (uint64_t)make.out_length);
		else
			result = 0;
		if (!result)
			*(volatile uint32_t *)((char *)view + offset) = value;
		munmap(view, make.out_length);
	}
	if (fd >= 0)
		close(fd);
	fpga_close(&f);
	return result;
}
