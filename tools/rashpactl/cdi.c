// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl cdi: buffers and boards as devices of containers (Container Device Interface) */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

#define VERSION		"0.5.0"		/* the first one whose names may begin with a digit */
#define KIND		"rashpa/node"

static struct json_object *list_of(struct json_object *only)
{
	struct json_object *list = json_object_new_array();

	json_object_array_add(list, only);
	return list;
}

/*
 * A runtime permits the device of a node. If it made a new node, locks of streams and boards, which belong to the
 * inode, would not be seen there: it finds this one mounted, and leaves it.
 */
static struct json_object *edits(const char *name)
{
	struct json_object *o = json_object_new_object(), *node = json_object_new_object();
	struct json_object *mount = json_object_new_object(), *options = json_object_new_array();
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", rashpa_device_directory(), name);
	put_text(node, "path", path);
	put_text(mount, "hostPath", path);
	put_text(mount, "containerPath", path);
	json_object_array_add(options, json_object_new_string("bind"));
	json_object_array_add(options, json_object_new_string("nosuid"));
	json_object_array_add(options, json_object_new_string("noexec"));
	json_object_object_add(mount, "options", options);
	json_object_object_add(o, "deviceNodes", list_of(node));
	json_object_object_add(o, "mounts", list_of(mount));
	return o;
}

static void add(struct json_object *devices, const char *name, const char *path)
{
	struct json_object *o;

	if (!isalnum((unsigned char)*name) || !isalnum((unsigned char)name[strlen(name) - 1])) {
		say("%s is left out: the name of a device of a container begins and ends with a letter or digit",
		    name);
		return;
	}
	o = json_object_new_object();
	put_text(o, "name", name);
	json_object_object_add(o, "containerEdits", edits(path));
	json_object_array_add(devices, o);
}

int cmd_cdi(int argc, char **argv)
{
	struct json_object *o, *devices;
	unsigned int *boards = NULL;
	char **buffers, path[512];
	int n, n_boards;

	command_simple(argc, argv, NULL);
	n = rashpa_buffer_list(&buffers);
	n_boards = n < 0 ? n : rashpa_device_list(&boards);
	if (n_boards < 0) {
		rashpa_buffer_list_free(buffers, n);
		return fail("%s", rashpa_reason());
	}
	devices = json_object_new_array();
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "buffer/%s", buffers[i]);
		add(devices, buffers[i], path);
	}
	for (int i = 0; i < n_boards; i++) {
		snprintf(path, sizeof(path), "fpga%u", boards[i]);
		add(devices, path, path);
	}
	rashpa_buffer_list_free(buffers, n);
	free(boards);
	o = json_object_new_object();
	put_text(o, "cdiVersion", VERSION);
	put_text(o, "kind", KIND);
	json_object_object_add(o, "devices", devices);
	/* each of them needs it to wait */
	json_object_object_add(o, "containerEdits", edits("memory"));
	return json_finish(o);
}
