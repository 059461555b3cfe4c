// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=1 */
/* Roles at a named buffer: one producer, one consumer, and their readers. */
#include "common.h"

#define NAME	"st-role"
#define BOTH	(RASHPA_ROLE_PRODUCER | RASHPA_ROLE_CONSUMER)

static int role(int node, uint32_t take, uint32_t drop, struct rashpa_role *r)
{
	*r = (struct rashpa_role) { HEAD(*r), .take = take, .drop = drop };
	memset(r->out_uid, 0x55, sizeof(r->out_uid));
	memset(r->out_pid, 0x55, sizeof(r->out_pid));
	return call(node, RASHPA_IOC_ROLE, r);
}

static int make(void)
{
	close(buffer_alloc(PAGE, NAME));
	return buffer_node(NAME, O_RDWR);
}

TEST(take_and_ask, "a role is taken, and each open node may ask")
{
	int a = make(), b = buffer_node(NAME, O_RDWR), c = buffer_node(NAME, O_RDONLY);
	int d = buffer_node(NAME, O_ACCMODE);
	struct rashpa_role r;

	REQUIRE(a >= 0 && b >= 0 && c >= 0 && d >= 0, "open: %s", strerror(errno));
	ANSWERED(role(a, 0, 0, &r), 0, NULL);
	CHECK(!r.out_mine && !r.out_held && !r.out_pid[0] && !r.out_pid[1] && !r.out_uid[0] &&
	      !r.out_uid[1], "a new buffer has roles %#x", r.out_held);
	ANSWERED(role(a, RASHPA_ROLE_PRODUCER, 0, &r), 0, NULL);
	CHECK(r.out_mine == RASHPA_ROLE_PRODUCER && r.out_held == RASHPA_ROLE_PRODUCER &&
	      r.out_pid[0] == getpid() && r.out_uid[0] == getuid() && !r.out_pid[1],
	      "mine %#x of %#x, process %d", r.out_mine, r.out_held, r.out_pid[0]);
	/* again is no change */
	ANSWERED(role(a, RASHPA_ROLE_PRODUCER, 0, &r), 0, NULL);
	ANSWERED(role(b, RASHPA_ROLE_CONSUMER, 0, &r), 0, NULL);
	CHECK(r.out_mine == RASHPA_ROLE_CONSUMER && r.out_held == BOTH, "mine %#x of %#x",
	      r.out_mine, r.out_held);
	/* all may ask */
	ANSWERED(role(c, 0, 0, &r), 0, NULL);
	CHECK(!r.out_mine && r.out_held == BOTH && r.out_pid[1] == getpid(), "mine %#x of %#x",
	      r.out_mine, r.out_held);
	ANSWERED(role(d, 0, 0, &r), 0, NULL);
	CHECK(!r.out_mine && r.out_held == BOTH, "mine %#x of %#x", r.out_mine, r.out_held);
	ANSWERED(role(c, RASHPA_ROLE_CONSUMER, 0, &r), EACCES, "writing");
	ANSWERED(role(d, RASHPA_ROLE_CONSUMER, 0, &r), EACCES, "writing");
	ANSWERED(role(c, 0, BOTH, &r), 0, NULL);
	ANSWERED(role(d, 0, BOTH, &r), 0, NULL);
	ANSWERED(role(a, 4, 0, &r), EINVAL, "role");
	ANSWERED(role(a, 0, 1u << 31, &r), EINVAL, "role");
	ANSWERED(role(d, 0, 0, &r), 0, NULL);
	CHECK(r.out_held == BOTH, "held %#x", r.out_held);
	close(a);
	close(b);
	close(c);
	buffer_end(d, NAME);
}

TEST(one_of_a_kind, "each role has one holder")
{
	int a = make(), b = buffer_node(NAME, O_RDWR);
	struct rashpa_role r;
	char who[32];

	snprintf(who, sizeof(who), "process %d", getpid());
	REQUIRE(a >= 0 && b >= 0, "open: %s", strerror(errno));
	ANSWERED(role(a, RASHPA_ROLE_CONSUMER, 0, &r), 0, NULL);
	ANSWERED(role(b, RASHPA_ROLE_CONSUMER, 0, &r), EBUSY, who);
	/* all or nothing, also of roles that are given back */
	ANSWERED(role(b, RASHPA_ROLE_PRODUCER, 0, &r), 0, NULL);
	ANSWERED(role(b, BOTH, RASHPA_ROLE_PRODUCER, &r), EBUSY, "consumer");
	ANSWERED(role(b, 0, 0, &r), 0, NULL);
	CHECK(r.out_mine == RASHPA_ROLE_PRODUCER, "mine %#x", r.out_mine);
	/* a file cannot give back the role of another one */
	ANSWERED(role(b, 0, RASHPA_ROLE_CONSUMER, &r), 0, NULL);
	CHECK(r.out_held == BOTH, "held %#x", r.out_held);
	ANSWERED(role(a, 0, RASHPA_ROLE_CONSUMER, &r), 0, NULL);
	CHECK(!r.out_mine && r.out_held == RASHPA_ROLE_PRODUCER && !r.out_pid[1],
	      "mine %#x of %#x", r.out_mine, r.out_held);
	ANSWERED(role(b, RASHPA_ROLE_CONSUMER, 0, &r), 0, NULL);
	CHECK(r.out_mine == BOTH, "mine %#x", r.out_mine);
	close(a);
	buffer_end(b, NAME);
}

TEST(exchange, "one call gives roles back and takes others")
{
	int a = make(), b = buffer_node(NAME, O_RDWR);
	struct rashpa_role r;

	REQUIRE(a >= 0 && b >= 0, "open: %s", strerror(errno));
	ANSWERED(role(a, RASHPA_ROLE_CONSUMER, 0, &r), 0, NULL);
	ANSWERED(role(a, RASHPA_ROLE_PRODUCER, RASHPA_ROLE_CONSUMER, &r), 0, NULL);
	CHECK(r.out_mine == RASHPA_ROLE_PRODUCER && r.out_held == RASHPA_ROLE_PRODUCER &&
	      r.out_pid[0] == getpid() && !r.out_pid[1], "mine %#x of %#x", r.out_mine,
	      r.out_held);
	ANSWERED(role(b, RASHPA_ROLE_CONSUMER, 0, &r), 0, NULL);
	/* the same role: first given back, then taken */
	ANSWERED(role(a, RASHPA_ROLE_PRODUCER, BOTH, &r), 0, NULL);
	CHECK(r.out_mine == RASHPA_ROLE_PRODUCER && r.out_held == BOTH, "mine %#x of %#x",
	      r.out_mine, r.out_held);
	close(a);
	buffer_end(b, NAME);
}

TEST(ends_with_file, "a role ends with its file, even if a dma-buf of the file stays")
{
	int a = make(), b = buffer_node(NAME, O_RDWR), copy = dup(a);
	struct rashpa_export e = { HEAD(e) };
	struct rashpa_role r;

	REQUIRE(a >= 0 && b >= 0 && copy >= 0, "open: %s", strerror(errno));
	ANSWERED(call(a, RASHPA_IOC_EXPORT, &e), 0, NULL);
	ANSWERED(role(a, BOTH, 0, &r), 0, NULL);
	close(a);
	ANSWERED(role(b, RASHPA_ROLE_PRODUCER, 0, &r), EBUSY, "producer");
	close(copy);
	ANSWERED(role(b, BOTH, 0, &r), 0, NULL);
	close(e.out_fd);
	buffer_end(b, NAME);
}

static void play(void *arg)
{
	struct rashpa_role r;

	ANSWERED(role(buffer_node(NAME, O_RDWR), BOTH, 0, &r), 0, NULL);
	tap_fork_hold();
}

TEST(dies, "the roles of a killed process end")
{
	struct rashpa_role r;
	int node = make();
	pid_t pid = tap_fork_held(play, NULL);
	char who[32];

	snprintf(who, sizeof(who), "process %d", pid);
	ANSWERED(role(node, RASHPA_ROLE_PRODUCER, 0, &r), EBUSY, who);
	ANSWERED(role(node, 0, 0, &r), 0, NULL);
	CHECK(r.out_pid[0] == pid && r.out_pid[1] == pid, "processes %d and %d", r.out_pid[0],
	      r.out_pid[1]);
	tap_fork_kill(pid);
	ANSWERED(role(node, BOTH, 0, &r), 0, NULL);
	buffer_end(node, NAME);
}
