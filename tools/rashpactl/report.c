// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl report: the state of this machine, for a request for help */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/utsname.h>
#include <time.h>

#include "rashpactl/held.h"
#include "common/json-out.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

#define PARAMETERS	"/sys/module/rashpa/parameters"
#define LINES_MAX	200		/* lines of the kernel's log */

enum { LOG_ALL = 3, LOG_SIZE = 10 };	/* syslog(2) */

/* --- private data --- */

/*
 * Is a run of hexadecimal digits an address? Shorter ones are identities, flags and offsets of
 * registers; without "0x" there are decimal numbers, too.
 */
static bool is_address(const char *digits, size_t n, bool prefix)
{
	if (prefix)
		return n > 6;
	return n >= 12 || (n >= 8 && strspn(digits, "0123456789") < n);
}

/* A text with "0x?" instead of its addresses; a new string, or NULL. */
static char *without_addresses(const char *text)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	char *copy = malloc(2 * strlen(text) + 1), *to = copy;

	while (copy && *text) {
		const size_t prefix = !strncmp(text, "0x", 2) ? 2 : 0;
		const size_t n = strspn(text + prefix, hex);

		if (is_address(text + prefix, n, prefix)) {
			to = stpcpy(to, "0x?");
			text += prefix + n;
		} else {
			const size_t all = prefix + n ? prefix + n : 1;

			to = mempcpy(to, text, all);
			text += all;
		}
	}
	if (copy)
		*to = '\0';
	return copy;
}

static void put_clean(struct json_object *array, const char *text)
{
	char *clean = without_addresses(text);

	if (clean)
		json_object_array_add(array, json_object_new_string(clean));
	free(clean);
}

/* --- parts --- */

static struct json_object *kernel_json(void)
{
	struct json_object *o = json_object_new_object();
	struct utsname uts;

	uname(&uts);
	put_text(o, "release", uts.release);
	put_text(o, "version", uts.version);
	put_text(o, "machine", uts.machine);
	return o;
}

static struct json_object *module_json(void)
{
	struct json_object *o = json_object_new_object(), *parameters = json_object_new_object();
	struct dirent **names;
	char text[256];
	int n = scandir(PARAMETERS, &names, NULL, alphasort);

	put_text(o, "version", read_line(text, sizeof(text), "/sys/module/rashpa/version") ?
		 text : NULL);
	for (int i = 0; i < n; i++) {
		if (*names[i]->d_name != '.' &&
		    read_line(text, sizeof(text), PARAMETERS "/%s", names[i]->d_name))
			put_text(parameters, names[i]->d_name, text);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	json_object_object_add(o, "parameters", parameters);
	return o;
}

/* The last lines of the kernel's log about this driver, the IOMMU or bounce buffers. */
static struct json_object *log_json(void)
{
	static const char *const words[] = { "rashpa", "DMAR", "AMD-Vi", "swiotlb" };
	struct json_object *all = json_object_new_array(), *last;
	const int size = klogctl(LOG_SIZE, NULL, 0);
	char *text = size > 0 ? malloc(size + 1) : NULL, *line, *next = text;
	int n = text ? klogctl(LOG_ALL, text, size) : -1;
	size_t lines;

	if (n < 0) {
		say("the kernel's log is left out: %s; with kernel.dmesg_restrict only root may read it",
		    strerror(errno));
		free(text);
		json_object_put(all);
		return NULL;
	}
	text[n] = '\0';
	while ((line = strsep(&next, "\n"))) {
		bool ours = false;

		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
			if (strstr(line, words[w]))
				ours = true;
		if (ours)
			put_clean(all, line);
	}
	free(text);
	lines = json_object_array_length(all);
	if (lines <= LINES_MAX)
		return all;
	last = json_object_new_array();
	for (size_t i = lines - LINES_MAX; i < lines; i++)
		json_object_array_add(last, json_object_get(json_object_array_get_idx(all, i)));
	json_object_put(all);
	return last;
}

/* Sentences of the driver and names of devices may contain texts of other users. */
static struct json_object *clean(struct json_object *from)
{
	struct json_object *to;
	char *text;

	switch (json_object_get_type(from)) {
	case json_type_string:
		text = without_addresses(json_object_get_string(from));
		to = text ? json_object_new_string(text) : NULL;
		free(text);
		return to;
	case json_type_array:
		to = json_object_new_array();
		for (size_t i = 0; i < json_object_array_length(from); i++)
			json_object_array_add(to, clean(json_object_array_get_idx(from, i)));
		return to;
	case json_type_object:
		to = json_object_new_object();
		json_object_object_foreach(from, key, value) {
			json_object_object_add(to, key, clean(value));
		}
		return to;
	default:
		return json_object_get(from);
	}
}

int cmd_report(int argc, char **argv)
{
	struct json_object *o, *list, *limits, *cleaned;
	unsigned int problems;
	char date[32];
	time_t now = time(NULL);

	command_simple(argc, argv, NULL);
	o = json_object_new_object();
	list = json_object_new_object();
	limits = json_object_new_array();
	strftime(date, sizeof(date), "%FT%TZ", gmtime(&now));
	put_text(o, "rashpactl", RASHPA_VERSION);
	put_text(o, "date", date);
	json_object_object_add(o, "kernel", kernel_json());
	json_object_object_add(o, "module", module_json());
	json_object_object_add(o, "doctor", doctor_json(&problems));
	/* the call has reported its errors, and they do not hide the rest */
	list_all(list);
	json_object_object_add(o, "list", list);
	limits_list(limits);
	json_object_object_add(o, "limits", limits);
	json_object_object_add(o, "top", top_json(0.5));
	json_object_object_add(o, "log", log_json());
	cleaned = clean(o);
	json_object_put(o);
	return json_finish(cleaned);
}
