/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Holders of resources. */
#ifndef HELD_H
#define HELD_H

#include <json-c/json.h>

/* Add all that is held to @to, or print it (NULL). An exit code, after a message. */
int held_list(struct json_object *to);
/* Of that, the maps. */
int maps_list(struct json_object *to);

/* Likewise, how much of each resource is held, and may be. */
int limits_list(struct json_object *to);

#endif /* HELD_H */
