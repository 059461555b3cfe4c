// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the kernel's trace. */
#include "common.h"
#include "trace.h"

#define TRACING	"/sys/kernel/tracing/"
#define CALLS	TRACING "events/rashpa_test/enable"

static bool probed;

bool trace_begin(const char *function)
{
	char text[128];

	if (access(TRACING "trace", R_OK)) {
		tap_skip("tracefs is not mounted");
		return false;
	}
	if (function) {
		snprintf(text, sizeof(text), "p:rashpa_test/call %s", function);
		probed = !write_text(TRACING "kprobe_events", text);
		if (!probed) {
			tap_skip("this kernel has no probes");
			return false;
		}
		ANSWERED(write_text(CALLS, "1"), 0, NULL);
	}
	ANSWERED(write_text(TRACING "events/rashpa/enable", "1"), 0, NULL);
	return true;
}

void trace_end(void)
{
	ANSWERED(write_text(TRACING "events/rashpa/enable", "0"), 0, NULL);
	if (!probed)
		return;
	ANSWERED(write_text(CALLS, "0"), 0, NULL);
	ANSWERED(write_text(TRACING "kprobe_events", "-:rashpa_test/call"), 0, NULL);
	probed = false;
}

bool traced(const char *event, const char *words)
{
	char line[512];
	bool found = false;
	FILE *file = fopen(TRACING "trace", "re");

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, event) && strstr(line, words);
	if (file)
		fclose(file);
	return found;
}

bool traced_off(const char *event, const char *words)
{
	char line[512], *flags;
	bool off = false;
	FILE *file = fopen(TRACING "trace", "re");

	while (file && !off && fgets(line, sizeof(line), file)) {
		/* flags follow the CPU in brackets; Z: a probe that traps, no information */
		flags = strstr(line, "] ");
		off = flags && strstr(line, event) && strstr(line, words) &&
		      (flags[2] == 'd' || flags[2] == 'D') && flags[4] != 'Z' && flags[4] != 'z';
	}
	if (file)
		fclose(file);
	return off;
}

bool called_after(const char *event, const char *words)
{
	char line[512], task[64] = "";
	bool called = false;
	FILE *file = fopen(TRACING "trace", "re");

	while (file && !called && fgets(line, sizeof(line), file)) {
		/* name and number precede the CPU in brackets */
		if (task[0])
			called = strstr(line, " call: ") && !strncmp(line, task, strlen(task));
		else if (strstr(line, event) && strstr(line, words))
			snprintf(task, sizeof(task), "%.*s", (int)strcspn(line, "["), line);
	}
	if (file)
		fclose(file);
	return called;
}
