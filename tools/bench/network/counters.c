// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/network/counters.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"

#define RDMA	"/sys/class/infiniband/%s/ports/%u/"

/* Read all files of a folder that contain a number. */
static bool read_folder(struct json_object *to, const char *prefix, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char file[512], key[320];
		uint64_t value;
		FILE *f;

		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		f = *entry->d_name == '.' ? NULL : fopen(file, "re");
		if (!f)
			continue;
		snprintf(key, sizeof(key), "%s.%s", prefix, entry->d_name);
		if (fscanf(f, "%" SCNu64, &value) == 1)
			put_u64(to, key, value);
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return dir;
}

/* In a network namespace, sysfs has no counters of an RDMA device, so run rdma(8). */
static void ask_rdma(struct json_object *to, const struct rashpa_net_info *port)
{
	struct json_object *all = NULL, *first = NULL;
	char command[128], key[128];
	FILE *out;

	/* the kernel's name for a device has no quotes */
	snprintf(command, sizeof(command), "exec timeout 10 rdma -j statistic show link '%s/%u' 2>/dev/null", port->device,
		 port->port);
	out = popen(command, "re");
	if (out)
		all = json_object_from_fd(fileno(out));
	/* rdma(8) is not installed */
	if (json_object_is_type(all, json_type_array))
		first = json_object_array_get_idx(all, 0);
	if (json_object_is_type(first, json_type_object)) {
		json_object_object_foreach(first, name, value) {
			snprintf(key, sizeof(key), "rdma.%s", name);
			if (json_object_is_type(value, json_type_int) && strcmp(name, "port"))
				put_u64(to, key, json_object_get_uint64(value));
		}
	}
	json_object_put(all);
	if (out)
		pclose(out);
}

/* UDP counters include frames for soft-RoCE. */
static void read_udp(struct json_object *to)
{
	uint64_t datagrams, all = 0, errors = 0, buffer = 0;
	char name[64];
	FILE *f = fopen("/proc/net/snmp", "re");
	char line[1024];

	/* two lines for each protocol: names, values */
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Udp: %" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64, &datagrams,
			   &errors, &buffer) == 3)
			all += datagrams;
	}
	if (f)
		fclose(f);
	f = fopen("/proc/net/snmp6", "re");
	while (f && fscanf(f, "%63s %" SCNu64, name, &datagrams) == 2) {
		if (!strcmp(name, "Udp6InDatagrams"))
			all += datagrams;
	}
	if (f)
		fclose(f);
	put_u64(to, "udp.received", all);
	put_u64(to, "udp.errors", errors);
	put_u64(to, "udp.buffer_errors", buffer);
}

struct json_object *counters_now(const struct rashpa_net_info *port)
{
	struct json_object *o = json_object_new_object();
	char path[512], interface[64] = "";
	FILE *f;

	read_udp(o);
	if (!port)
		return o;
	snprintf(path, sizeof(path), RDMA "counters", port->device, port->port);
	read_folder(o, "rdma", path);
	snprintf(path, sizeof(path), RDMA "hw_counters", port->device, port->port);
	if (!read_folder(o, "rdma", path))
		ask_rdma(o, port);
	snprintf(path, sizeof(path), RDMA "gid_attrs/ndevs/%u", port->device, port->port,
		 port->gid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%63s", interface) == 1) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/statistics", interface);
		read_folder(o, "interface", path);
	}
	if (f)
		fclose(f);
	return o;
}

static int64_t number(struct json_object *o, const char *key)
{
	return json_object_get_int64(json_object_object_get(o, key));
}

struct json_object *counters_since(struct json_object *before, struct json_object *after)
{
	struct json_object *o = json_object_new_object(), *value;

	json_object_object_foreach(after, key, now) {
		const int64_t more = json_object_get_int64(now) - number(before, key);

		if (more && strcmp(key, "rdma.lifespan"))
			put_int(o, key, more);
	}
	/* only soft-RoCE has this counter, and UDP counts its frames, too */
	if (json_object_object_get_ex(after, "rdma.rcvd_pkts", &value))
		put_int(o, "frames_refused",
			number(o, "udp.received") - number(o, "rdma.rcvd_pkts"));
	json_object_put(before);
	json_object_put(after);
	return o;
}
