// SPDX-License-Identifier: LGPL-2.1-or-later
/* Parse and print owner, group and mode of a buffer. */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rashpactl/owner.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

static bool find_user(const char *text, uint32_t *uid)
{
	const struct passwd *user = getpwnam(text);

	if (!user)
		return parse_u32(text, uid);
	*uid = user->pw_uid;
	return true;
}

static bool find_group(const char *text, uint32_t *gid)
{
	const struct group *group = getgrnam(text);

	if (!group)
		return parse_u32(text, gid);
	*gid = group->gr_gid;
	return true;
}

int parse_owner(const char *text, struct owner *owner, char *why)
{
	const char *colon = strchr(text, ':');
	char user[256];

	snprintf(user, sizeof(user), "%.*s", colon ? (int)(colon - text) : 255, text);
	if (!*user && (!colon || !colon[1]))
		return because(why, -1, "\"%s\" names neither a user nor a group: USER, USER:GROUP or :GROUP",
			       text);
	if (*user && !find_user(user, &owner->uid))
		return because(why, -1, "there is no user \"%s\"", user);
	if (colon && !find_group(colon + 1, &owner->gid))
		return because(why, -1, "there is no group \"%s\"", colon + 1);
	return 0;
}

int apply_owner(const char *name, const struct owner *owner)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/buffer/%s", rashpa_device_directory(), name);
	if (chown(path, owner->uid, owner->gid))
		return fail("buffer %s: the owner of %s cannot be set: %s", name, path,
			    strerror(errno));
	if (owner->has_mode && chmod(path, owner->mode))
		return fail("buffer %s: the mode of %s cannot be set: %s", name, path,
			    strerror(errno));
	return 0;
}

const char *user_name(char *buf, size_t size, uint32_t uid)
{
	/* a list has few users, many times each, and each look-up reads files */
	static char name[64];
	static uint32_t last;
	const struct passwd *user;

	if (!*name || uid != last) {
		user = getpwuid(uid);
		if (user)
			snprintf(name, sizeof(name), "%s", user->pw_name);
		else
			snprintf(name, sizeof(name), "%" PRIu32, uid);
		last = uid;
	}
	snprintf(buf, size, "%s", name);
	return buf;
}

const char *group_name(char *buf, size_t size, uint32_t gid)
{
	const struct group *group = getgrgid(gid);

	if (group)
		snprintf(buf, size, "%s", group->gr_name);
	else
		snprintf(buf, size, "%" PRIu32, gid);
	return buf;
}
