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
	close(open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC));
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

bool trace_next(struct trace_line *l)
{
	if (!l->file)
		l->file = fopen(TRACING "trace", "re");
	while (l->file && fgets(l->text, sizeof(l->text), l->file)) {
		/* "name-PID [CPU] flags time: event: words" */
		l->flags = strstr(l->text, "] ");
		if (!l->flags)
			continue;
		l->pid = atoi((char *)memrchr(l->text, '-', l->flags - l->text) + 1);
		l->flags += 2;
		return true;
	}
	if (l->file)
		fclose(l->file);
	return false;
}

bool traced(const char *event, const char *words)
{
	struct trace_line l = {};
	bool found = false;

	while (trace_next(&l))
		found |= strstr(l.text, event) && strstr(l.text, words);
	return found;
}

bool traced_off(const char *event, const char *words)
{
	struct trace_line l = {};
	bool off = false;

	while (trace_next(&l))
		/* Z: a probe that traps, no information */
		off |= strstr(l.text, event) && strstr(l.text, words) &&
		       strchr("dD", l.flags[0]) && !strchr("Zz", l.flags[2]);
	return off;
}

bool called_after(const char *event, const char *words)
{
	struct trace_line l = {};
	bool called = false;
	pid_t pid = 0;

	while (trace_next(&l)) {
		if (pid)
			called |= l.pid == pid && strstr(l.text, " call: ");
		else if (strstr(l.text, event) && strstr(l.text, words))
			pid = l.pid;
	}
	return called;
}
