/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processing units and rings: a board can have several, which run independently. */
#ifndef PARTS_H
#define PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "fpga.h"

struct json_object;

/* "units" and "rings" of this board. */
void parts_json(struct json_object *to, const struct fpga *fpga);
/* A line for each. */
void parts_print(const struct fpga *fpga);

/* A ring that has been started, as it was at the last look; gone: when its board was there. */
struct ring_seen {
	unsigned int fpga, ring;
	bool gone, running, waiting, faulted;
	uint64_t when, events, held, late, lost, errors;
	double events_per_second;
};

/* Of all boards with readable registers; others are skipped. */
struct rings {
	struct ring_seen *seen;
	unsigned int n;
};

/* Boards may go meanwhile: behind fpga_catch_removal(). */
void rings_look(struct rings *rings);
void rings_free(struct rings *rings);
struct json_object *rings_json(const struct rings *rings);

#endif /* PARTS_H */
