// SPDX-License-Identifier: GPL-2.0-only
/* Owner, group and mode of a buffer, as people write them. */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owner.h"
#include "parse.h"
#include "rashpa.h"
#include "rashpactl.h"

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

int parse_owner(const char *text, struct rashpa_permit *permit, char *why)
{
	const char *colon = strchr(text, ':');
	char user[256];

	snprintf(user, sizeof(user), "%.*s", colon ? (int)(colon - text) : 255, text);
	if (!*user && (!colon || !colon[1]))
		return because(why, -1, "\"%s\" names neither a user nor a group: USER, USER:GROUP or :GROUP",
			       text);
	if (*user) {
		if (!find_user(user, &permit->uid))
			return because(why, -1, "there is no user \"%s\"", user);
		permit->head.flags |= RASHPA_PERMIT_UID;
	}
	if (colon) {
		if (!find_group(colon + 1, &permit->gid))
			return because(why, -1, "there is no group \"%s\"", colon + 1);
		permit->head.flags |= RASHPA_PERMIT_GID;
	}
	return 0;
}

int apply_permit(int memory, struct rashpa_permit *permit)
{
	const uint32_t flags = permit->head.flags;
	char path[512];

	if (rashpa_permit(memory, permit))
		return fail("buffer %s: %s", permit->name, rashpa_reason());
	/* Who opens the node has to pass the file system first. */
	snprintf(path, sizeof(path), "%s/buffer/%s", rashpa_device_directory(), permit->name);
	if (flags & (RASHPA_PERMIT_UID | RASHPA_PERMIT_GID) &&
	    chown(path, flags & RASHPA_PERMIT_UID ? permit->uid : (uid_t)-1,
		  flags & RASHPA_PERMIT_GID ? permit->gid : (gid_t)-1))
		return fail("buffer %s: the driver permits it now, but the owner of %s cannot be set: %s: chown it",
			    permit->name, path, strerror(errno));
	if (flags & RASHPA_PERMIT_MODE && chmod(path, permit->mode))
		return fail("buffer %s: the driver permits it now, but the mode of %s cannot be set: %s: chmod it",
			    permit->name, path, strerror(errno));
	return 0;
}

const char *user_name(char *buf, size_t size, uint32_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(buf, size, "%s", user->pw_name);
	else
		snprintf(buf, size, "%" PRIu32, uid);
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
