/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Holders of resources. */
#ifndef HELD_H
#define HELD_H

#include <json-c/json.h>

/* Add all holdings to @to, or print them (NULL). An exit code, after a message. */
int held_list(struct json_object *to);
/* The same for maps only. */
int maps_list(struct json_object *to);

/* The same for usage and limits of each resource. */
int limits_list(struct json_object *to);

#endif /* HELD_H */
