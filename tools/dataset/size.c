// SPDX-License-Identifier: LGPL-2.1-or-later
/* Number and size of the images of a dataset, as its format has found them. */
#include "dataset/formats.h"

#include <inttypes.h>

#include "common/say.h"

int dataset_set(struct dataset *d, uint64_t images, uint64_t width, uint64_t height,
		enum rashpa_pixel pixel, char *why)
{
	if (!images || !width || !height)
		return because(why, -1, "dataset %s: it has no images", d->source);
	if (images > UINT32_MAX || width > GEOMETRY_SIDE || height > GEOMETRY_SIDE)
		return because(why, -1, "dataset %s: %" PRIu64 " images of %" PRIu64 " x %" PRIu64
			       " pixels are too large: %" PRIu32 " of %d pixels a side are possible",
			       d->source, images, width, height, UINT32_MAX, GEOMETRY_SIDE);
	d->images = images;
	d->geometry = (struct geometry) { width, height, pixel };
	return 0;
}
