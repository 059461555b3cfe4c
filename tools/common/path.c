// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/path.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BUS(bdf)	((bdf) >> 8)	/* domain and bus */
#define DEVICE(bdf)	((bdf) >> 3)
/* flag in a line of "resource": <linux/ioport.h> */
#define IORESOURCE_MEM	0x200
#define BARS		6

/* A number of at most @digits hexadecimal digits, and @stop after them. */
static bool field(const char **text, unsigned int digits, char stop, uint32_t *value)
{
	const char *c = *text;

	*value = 0;
	for (; isxdigit((unsigned char)*c) && c < *text + digits; c++)
		*value = *value << 4 | (isdigit((unsigned char)*c) ? *c - '0' :
					tolower((unsigned char)*c) - 'a' + 10);
	if (c == *text || *c != stop)
		return false;
	*text = c + (stop != '\0');
	return true;
}

bool parse_bdf(const char *text, char bdf[BDF_SIZE])
{
	const char *colon = strchr(text, ':');
	uint32_t domain = 0, bus, device, function;

	if (colon && strchr(colon + 1, ':') && !field(&text, 8, ':', &domain))
		return false;
	if (!field(&text, 2, ':', &bus) || !field(&text, 2, '.', &device) ||
	    !field(&text, 1, '\0', &function) || device > 31 || function > 7)
		return false;
	bdf_text(bdf, PCI_BDF(domain, bus, device << 3 | function));
	return true;
}

const char *bdf_text(char bdf[BDF_SIZE], uint64_t function)
{
	const uint32_t f = function;

	snprintf(bdf, BDF_SIZE, "%04x:%02x:%02x.%u", (uint32_t)(function >> 16), f >> 8 & 0xff,
		 f >> 3 & 0x1f, f & 7);
	return bdf;
}

/* "resource" has a line for each: first and last address, flags. */
uint64_t path_largest_bar(const char *root, const char *bdf)
{
	uint64_t first, last, flags, largest = 0;
	char path[512], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/resource", root, bdf);
	file = fopen(path, "re");
	for (int i = 0; file && i < BARS && fgets(line, sizeof(line), file); i++) {
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &first, &last, &flags) == 3 &&
		    flags & IORESOURCE_MEM && last > first && last - first >= largest)
			largest = last - first + 1;
	}
	if (file)
		fclose(file);
	return largest;
}

enum meeting chains_meet(const struct chain *a, const struct chain *b, uint64_t *where)
{
	*where = 0;
	if (a->at[0] == b->at[0])
		return MEET_SAME;
	for (unsigned int i = 1; i < a->n; i++) {
		for (unsigned int j = 1; j < b->n; j++) {
			if (a->at[i] != b->at[j])
				continue;
			*where = a->at[i];
			if (i == 1 && j == 1 && DEVICE(a->at[0]) == DEVICE(b->at[0]))
				return MEET_DEVICE;
			/* A bridge below a bridge is where a switch begins. */
			return i + 1 < a->n ? MEET_SWITCH : MEET_PORT;
		}
	}
	if (a->n == 1 && b->n == 1 && DEVICE(a->at[0]) == DEVICE(b->at[0]))
		return MEET_DEVICE;
	return BUS(a->at[a->n - 1]) == BUS(b->at[b->n - 1]) ? MEET_BRIDGE : MEET_NOWHERE;
}

const char *meeting_name(enum meeting meeting)
{
	static const char *const names[] = {
		[MEET_SAME] = "same-function", [MEET_DEVICE] = "same-device",
		[MEET_SWITCH] = "switch", [MEET_PORT] = "root-port",
		[MEET_BRIDGE] = "host-bridge", [MEET_NOWHERE] = "processors",
	};

	return names[meeting];
}
