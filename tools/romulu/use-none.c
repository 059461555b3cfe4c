// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine that touches no pixel. */
#include "romulu/romulu.h"

const struct engine engine_count = { .name = "count" };
