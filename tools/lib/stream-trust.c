// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: names in the header of a stream. Every user who may write a buffer can write a header
 * there, and its consumer may have more rights than that user. So a name is used only if all
 * writers of the header may open it themselves, or if the consumer accepts it by name.
 */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACL	"system.posix_acl_access"
#define GROUPS	256		/* most groups of a user */

/* Mode bits that permit access for the group, and for all others. */
static mode_t group_bits(bool write)
{
	return write ? S_IRGRP | S_IWGRP : S_IRGRP;
}

static mode_t all_bits(bool write)
{
	return group_bits(write) | (write ? S_IROTH | S_IWOTH : S_IROTH);
}

static bool has(const struct stat *st, mode_t bits)
{
	return (st->st_mode & bits) == bits;
}

/* As the system's databases have it. */
static bool is_member(uid_t user, gid_t group)
{
	gid_t groups[GROUPS];
	int n = GROUPS;
	struct passwd entry, *found;
	char text[4096];

	if (getpwuid_r(user, &entry, text, sizeof(text), &found) || !found ||
	    getgrouplist(entry.pw_name, entry.pw_gid, groups, &n) < 0)
		return false;
	while (n--) {
		if (groups[n] == group)
			return true;
	}
	return false;
}

/* An owner may change the mode of a file, and root may open all. */
static bool user_may_open(uid_t user, const struct stat *to, bool write)
{
	return !user || user == to->st_uid || user == geteuid() ||
	       (has(to, group_bits(write)) && is_member(user, to->st_gid));
}

/*
 * Each user who may write @from may open @to, too. Bits for the group do not say who that is where there
 * is an access control list.
 */
static bool as_open(const struct stat *from, const struct stat *to, bool lists, bool write)
{
	if (lists)
		return false;
	if (has(to, all_bits(write)))
		return true;
	if (from->st_mode & S_IWGRP && (from->st_gid != to->st_gid || !has(to, group_bits(write))))
		return false;
	return !(from->st_mode & S_IWOTH) && user_may_open(from->st_uid, to, write);
}

static bool has_list(int fd)
{
	return fgetxattr(fd, ACL, NULL, 0) > 0;
}

static bool accepted(const struct rashpa_stream *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_accepted; i++) {
		if (!strcmp(s->accepted[i], name))
			return true;
	}
	return false;
}

static int refuse(const struct rashpa_stream *s, const char *name, bool write)
{
	return fail(EPERM, "buffer %s: its header names %s, but some users who may write the header may not open that for %s: accept it (romulu --accept %s), or give both nodes one owner, group and mode",
		    s->name, name, write ? "writing" : "reading", name);
}

int stream_check_node(const struct rashpa_stream *s, const char *name, int node, bool write)
{
	struct stat from, to;

	/* a producer names what it wants itself */
	if (s->producer || accepted(s, name))
		return 0;
	if (fstat(s->buffer.node, &from) || fstat(node, &to))
		return fail(errno, "%s: %s", name, strerror(errno));
	return as_open(&from, &to, has_list(s->buffer.node) || has_list(node), write) ? 0 :
	       refuse(s, name, write);
}

int stream_check_socket(const struct rashpa_stream *s, const char *name, int socket, const char *path)
{
	struct stat from, to;

	if (s->producer || accepted(s, name))
		return 0;
	if (fstat(s->buffer.node, &from) || fstat(socket, &to))
		return fail(errno, "buffer %s: %s", s->name, strerror(errno));
	/* the folder may exclude users that the mode of the socket permits */
	to.st_mode &= ~S_IRWXO;
	return as_open(&from, &to, has_list(s->buffer.node) || getxattr(path, ACL, NULL, 0) > 0, true) ?
	       0 : refuse(s, name, true);
}

int rashpa_stream_accept(struct rashpa_stream *s, const char *name)
{
	if (!name || !*name || strlen(name) >= RASHPA_STREAM_NAME)
		return fail(EINVAL, "the name to accept is missing, or too long");
	if (s->n_accepted == STREAM_ACCEPTED)
		return fail(ENOSPC, "a handle accepts at most %d names", STREAM_ACCEPTED);
	strcpy(s->accepted[s->n_accepted++], name);
	return 0;
}
