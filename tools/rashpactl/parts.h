/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processing units and rings: a board can have several, which run independently. */
#ifndef PARTS_H
#define PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rashpa-board.h>

struct json_object;

/* Add "units" and "rings" of this board. */
void parts_json(struct json_object *to, const struct rashpa_board *board);
/* Print a line for each. */
void parts_print(const struct rashpa_board *board);

/* State of a started ring at the last check; gone: of the last check before its board went. */
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

/* Call fpga_catch_removal() before, because boards may be removed meanwhile. */
void rings_look(struct rings *rings);
void rings_free(struct rings *rings);
struct json_object *rings_json(const struct rings *rings);

#endif /* PARTS_H */
