// SPDX-License-Identifier: GPL-2.0-only
/*
 * The header that a producer puts at the beginning of a buffer, as a receiver checks it:
 * whatever is believed lies inside the buffer. An input is the buffer's length and a header.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/rashpa.h>

#include "../../tools/common/say.h"
#include "../../tools/common/stream.h"
#include "../../tools/lib/rashpa-fpga.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

/* Without the arithmetic of the code under test: wide enough not to overflow. */
static void must_fit(const struct rashpa_stream *s, uint64_t length)
{
	unsigned __int128 end = s->data_offset;
	unsigned int i;

	end += (unsigned __int128)(s->slots - 1) * s->slot_stride;
	end += (unsigned __int128)(s->bunch - 1) * s->image_stride;
	end += (unsigned __int128)(s->height - 1) * s->line_stride;
	end += (unsigned __int128)s->width * s->pixel_bytes;
	must(end <= length);
	if (s->meta_slot) {
		must(s->meta_slot == (unsigned __int128)s->bunch * RFPGA_META_SIZE &&
		     s->meta_offset >= end);
		end = s->meta_offset + (unsigned __int128)s->dtps * s->slots * s->meta_slot;
		must(end <= length);
		must(stream_meta(s, s->dtps - 1, UINT64_MAX, s->bunch - 1) + RFPGA_META_SIZE <=
		     end);
	} else {
		must(!s->live && s->policy != RASHPA_STREAM_DROP);
	}
	for (i = 0; i < s->dtps; i++) {
		const struct rashpa_stream_dtp *d = &s->dtp[i];

		/* in lock memory, or between header and data */
		if (*s->lock_name)
			must(d->lock_offset + RFPGA_LOCK_SIZE <=
			     RASHPA_LOCK_SLOTS_MAX * (uint64_t)RASHPA_LOCK_SLOT);
		else
			must(d->lock_offset >= sizeof(*s) &&
			     d->lock_offset + RFPGA_LOCK_SIZE <= s->data_offset);
		must(d->doorbell_offset + 8 <= RFPGA_BAR_DOORBELL_SIZE &&
		     (uint64_t)d->x + d->width <= s->width &&
		     (uint64_t)d->y + d->height <= s->height);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rashpa_stream shared = { .magic = RASHPA_STREAM_MAGIC,
					.header_size = sizeof(shared) }, s;
	char why[WHY_SIZE];
	uint64_t length, end, images;

	if (size < sizeof(length))
		return 0;
	memcpy(&length, data, sizeof(length));
	data += sizeof(length);
	size -= sizeof(length);
	memcpy(&shared, data, size < sizeof(shared) ? size : sizeof(shared));
	if (stream_copy(&shared, length, &s, why))
		return 0;
	must_fit(&s, length);
	end = stream_end(&s);
	images = stream_stack_images(&s, s.first_stack);
	must(images && images <= s.bunch);
	must(!s.images || stream_stack_images(&s, end - 1));
	must(!s.images || !stream_stack_images(&s, end));
	must(stream_bytes(&s, 1) >= s.data_offset);
	return 0;
}
