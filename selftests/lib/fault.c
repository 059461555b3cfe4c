// SPDX-License-Identifier: LGPL-2.1-or-later
/* Faults that the kernel injects where this thread allocates or copies. */
#include <sys/mount.h>

#include "common.h"
#include "fault.h"

#define DEBUGFS		"/sys/kernel/debug"

static int nth = -1;

/* Bail out on errors: without it nothing would fail, and all tests would pass. */
static void set(const char *what, const char *attribute, const char *value)
{
	char path[96];
	int err;

	snprintf(path, sizeof(path), DEBUGFS "/%s/%s", what, attribute);
	err = write_text(path, value);
	if (err)
		tap_bail("%s: %s", path, strerror(-err));
}

bool faults_open(void)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	size_t i;

	nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth < 0)
		return false;
	if (access(DEBUGFS "/failslab", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		/* a stack trace for each fault would look like a bug in the log */
		set(kinds[i], "verbose", "0");
	set("failslab", "ignore-gfp-wait", "N");
	set("fail_page_alloc", "ignore-gfp-wait", "N");
	set("fail_page_alloc", "ignore-gfp-highmem", "N");
	set("fail_page_alloc", "min-order", "0");
	return true;
}

void faults_arm(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	if (pwrite(nth, text, strlen(text), 0) < 0)
		tap_bail("fail-nth: %s", strerror(errno));
}

unsigned int faults_disarm(void)
{
	unsigned int left = 1;
	char text[16] = "";

	/* the fault may hit this read if it has not hit the call */
	if (pread(nth, text, sizeof(text) - 1, 0) > 0)
		left = strtoul(text, NULL, 10);
	while (pwrite(nth, "0", 1, 0) < 0)
		;
	return left;
}

void faults_close(void)
{
	close(nth);
}

bool fault_answer(int err)
{
	return !err || err == -ENOMEM || err == -EFAULT;
}
