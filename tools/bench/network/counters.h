/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a network card, its interface and UDP count. */
#ifndef BENCH_NETWORK_COUNTERS_H
#define BENCH_NETWORK_COUNTERS_H

#include <json-c/json.h>

#include "rashpa-network.h"

/* "rdma.NAME", "interface.NAME", "udp.NAME": numbers. */
struct json_object *counters_now(const struct rashpa_net_info *port);

/*
 * Those that differ, by how much; both are freed. Where it can be known: frames that reached the
 * card's UDP port and that it did not take ("frames_refused"), as those with a wrong ICRC.
 */
struct json_object *counters_since(struct json_object *before, struct json_object *after);

#endif /* BENCH_NETWORK_COUNTERS_H */
