/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parse and print owner, group and mode of a buffer. */
#ifndef OWNER_H
#define OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Users who may open a buffer. -1, or !has_mode: unchanged. */
struct owner {
	uint32_t uid, gid;
	uint32_t mode;
	bool has_mode;
};

#define OWNER_NONE	{ .uid = -1, .gid = -1 }

/*
 * USER, USER:GROUP or :GROUP, each a name or a number. 0, or -1 with the reason in
 * why[WHY_SIZE].
 */
int parse_owner(const char *text, struct owner *owner, char *why);

/* Set owner and mode of a buffer's node. An exit code, after a message. */
int apply_owner(const char *name, const struct owner *owner);

#define OWNER_SIZE	64

/* Name, or the number if it has no name; returns buf. */
const char *user_name(char *buf, size_t size, uint32_t uid);
const char *group_name(char *buf, size_t size, uint32_t gid);

#endif /* OWNER_H */
