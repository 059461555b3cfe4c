/* SPDX-License-Identifier: GPL-2.0-only */
/* Owner, group and mode of a buffer, as people write them. */
#ifndef OWNER_H
#define OWNER_H

#include <linux/rashpa.h>
#include <stddef.h>
#include <stdint.h>

/*
 * USER, USER:GROUP or :GROUP, each a name or a number: sets uid, gid and the flags of
 * what was given. 0, or -1 with the reason in why[WHY_SIZE].
 */
int parse_owner(const char *text, struct rashpa_permit *permit, char *why);

/* Tell the driver, and set the node alike. An exit code, after a message. */
int apply_permit(int memory, struct rashpa_permit *permit);

#define OWNER_SIZE	64

/* The name, or the number where there is none; buf. */
const char *user_name(char *buf, size_t size, uint32_t uid);
const char *group_name(char *buf, size_t size, uint32_t gid);

#endif /* OWNER_H */
