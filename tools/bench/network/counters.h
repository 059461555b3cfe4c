/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters of a network card, its interface and UDP. */
#ifndef BENCH_NETWORK_COUNTERS_H
#define BENCH_NETWORK_COUNTERS_H

#include <json-c/json.h>

#include "verbs/verbs.h"

/* "rdma.NAME", "interface.NAME", "udp.NAME": numbers. */
struct json_object *counters_now(const struct rashpa_net_info *port);

/*
 * Differences of counters that changed; frees both objects. With soft-RoCE, "frames_refused" counts
 * frames that reached the UDP port but were rejected, as those with a wrong ICRC.
 */
struct json_object *counters_since(struct json_object *before, struct json_object *after);

#endif /* BENCH_NETWORK_COUNTERS_H */
