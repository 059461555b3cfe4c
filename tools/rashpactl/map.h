/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text and JSON of a map. */
#ifndef MAP_H
#define MAP_H

#include <json-c/json.h>
#include <linux/rashpa.h>

void put_map(struct json_object *to, const struct rashpa_map_make *map);
/* "peer, in BAR 4 of 0000:02:00.0, 1 segment" */
void print_map(const struct rashpa_map_make *map);
/* Flush the output, and wait for SIGINT, SIGTERM or SIGHUP. An exit code. */
int map_hold(void);

#endif /* MAP_H */
