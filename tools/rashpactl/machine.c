// SPDX-License-Identifier: LGPL-2.1-or-later
/* Properties of the running kernel and its modules. */
#include <libkmod.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "rashpactl/rashpactl.h"

static FILE *open_config(void)
{
	static const char *const paths[] = { "/boot/config-%s", "/lib/modules/%s/config" };
	struct utsname uts;
	FILE *file = NULL;
	char *path;

	uname(&uts);
	for (size_t i = 0; !file && i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (asprintf(&path, paths[i], uts.release) < 0)
			return NULL;
		file = fopen(path, "re");
		free(path);
	}
	return file;
}

char kernel_config(const char *name)
{
	char *line = NULL;
	size_t room = 0, length = strlen(name);
	FILE *file = open_config();
	char result = 'n';

	if (!file)
		return 0;
	while (getline(&line, &room, file) > 0) {
		if (!strncmp(line, name, length) && line[length] == '=')
			result = line[length + 1];
	}
	free(line);
	fclose(file);
	return result;
}

uint64_t meminfo(const char *key)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];
	size_t length = strlen(key);

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, length) && line[length] == ':')
			sscanf(line + length + 1, "%llu", &kib);
	}
	if (file)
		fclose(file);
	return kib << 10;
}

bool module_parameter(char *buf, size_t size, const char *name)
{
	return read_line(buf, size, "/sys/module/rashpa/parameters/%s", name);
}

static void find_field(char *buf, size_t size, const struct kmod_list *fields, const char *name)
{
	const struct kmod_list *field;

	kmod_list_foreach(field, fields) {
		if (!strcmp(kmod_module_info_get_key(field), name))
			snprintf(buf, size, "%s", kmod_module_info_get_value(field));
	}
}

bool module_field(char *buf, size_t size, const char *release, const char *name)
{
	struct kmod_list *fields = NULL;
	struct kmod_module *module;
	struct kmod_ctx *context;
	char folder[512];
	int error;

	*buf = '\0';
	snprintf(folder, sizeof(folder), "/lib/modules/%s", release);
	context = kmod_new(folder, NULL);
	error = context ? kmod_module_new_from_name(context, "rashpa", &module) : -1;
	if (!error) {
		error = kmod_module_get_path(module) ? kmod_module_get_info(module, &fields) : -1;
		if (error >= 0)
			find_field(buf, size, fields, name);
		kmod_module_info_free_list(fields);
		kmod_module_unref(module);
	}
	kmod_unref(context);
	return error >= 0;
}
