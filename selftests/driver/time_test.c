// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Limits of the processor time of others that a member of the group can take.
 * test: tier=check iommu=any seconds=5
 */
#include <sys/eventfd.h>

#include "common.h"
#include "trace.h"

#define PARAMETER	"/sys/module/rashpa/parameters/user_limit_interrupt"
#define PLACES		(RASHPA_LISTENERS_VECTOR / 2)	/* of one user at a vector */

static struct fpga f;

static int channel(void)
{
	struct rashpa_channel_make c = { HEAD(c), .sources = 256 };

	return ANSWERED(call(f.fd, RASHPA_IOC_CHANNEL_MAKE, &c), 0, NULL) ? c.out_fd : -1;
}

/* A source that the interrupt of vector 0 checks. Returns its id, or a negative errno. */
static int listen_to(int ch, int words)
{
	struct rashpa_source_add a = word_source(words, 0);

	return source_make(ch, &a);
}

struct listeners {
	int ch, words, most;
	const char *why;
	uid_t uid;
};

static void many(void *arg)
{
	const struct listeners *l = arg;
	int n = 0, id;

	become_user(l->uid);
	do
		id = listen_to(l->ch, l->words);
	while (id > 0 && ++n <= RASHPA_LISTENERS_VECTOR);
	ANSWERED(id, ENOSPC, l->why);
	CHECK(n == l->most, "%d sources", n);
}

TEST(vector, "users have few places at a vector")
{
	struct listeners l = { channel(), buffer_alloc(PAGE, NULL), PLACES,
			       "this user|user_limit_interrupt|CAP_SYS_RESOURCE", 1001 };

	tap_fork(many, &l);
	/* two users have all places for users; root has more */
	l.why = "64 sources of users|CAP_SYS_RESOURCE";
	l.uid = 1002;
	tap_fork(many, &l);
	CHECK(listen_to(l.ch, l.words) > 0, "%s", reason);
	close(l.ch);
	/* an administrator can give one user all */
	l.ch = channel();
	l.most = RASHPA_LISTENERS_VECTOR;
	ANSWERED(write_text(PARAMETER, "0"), 0, NULL);
	tap_fork(many, &l);
	ANSWERED(write_text(PARAMETER, "32"), 0, NULL);
	close(l.ch);
	close(l.words);
}

/* Was a function called by this process itself, not by an interrupt in it? */
static bool called_here(void)
{
	struct trace_line l = {};
	bool here = false;

	while (trace_next(&l))
		here |= l.pid == getpid() && strstr(l.text, " call: ") && !strchr("shH", l.flags[2]);
	return here;
}

/* A producer that calls LOOK does not wait for consumers. */
TEST(look, "LOOK leaves wake-ups to another thread")
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), ch = channel();
	int fd = buffer_alloc(PAGE, NULL);
	struct rashpa_source_add a = word_source(fd, RASHPA_SOURCE_LOOK);
	uint64_t *p = map_fd(fd, PAGE);

	CHECK(source_make(ch, &a) > 0, "%s", reason);
	ANSWERED(bind_eventfd(ch, event, 0), 0, NULL);
	if (trace_begin("eventfd_signal_mask")) {
		*p = 1;
		CHECK(look_at(fd) == 1 && wait_fd(event, POLLIN, 20000), "no signal");
		CHECK(traced("call:", "eventfd_signal_mask"), "no signal is traced");
		CHECK(!called_here(), "the producer gave the signal");
		trace_end();
	}
	unmap_fd(p, PAGE, fd);
	close(ch);
	close(event);
}

/* Unless the administrator has changed the limit. */
TEST(memory, "one user may hold a quarter of the memory")
{
	char text[32] = "";

	CHECK(read_text("/sys/module/rashpa/parameters/user_limit_mib", text, sizeof(text)), "no limit");
	CHECK(strtoull(text, NULL, 10) <= ram_bytes() / MIB / 4 + 1, "%s MiB", text);
}

void setup(void)
{
	fpga_need(&f);
	if (fpga_profile(&f, 0, NULL, 0))
		tap_bail("profile: %s", reason);
	fpga_watch(&f);
}
