// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-fpga: the reference FPGA interface as a process, which QEMU presents as a PCI device. */
#include <argp.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "fpga/board.h"
#include "fpga/fpga.h"
#include "fpga/log.h"

enum {
	OPT_INTX = 256, OPT_WITHOUT, OPT_LIVE, OPT_ALIGN, OPT_PROCESSING, OPT_RINGS, OPT_WIRE,
	OPT_FETCH, OPT_BOARD,
};

static struct fpga fpga = { .features = FPGA_FEATURES, .sources = 1 };
static const struct model *model;	/* another engine */
static uint32_t units = UINT32_MAX, rings = UINT32_MAX;	/* not given */

static const struct argp_option option_list[] = {
	{ "without", OPT_WITHOUT, "FEATURE", 0,
	  "lack a feature: msix, lock, freerun, flush, group, drop, meta or verdict; may be "
	  "given several times", 0 },
	{ "live", OPT_LIVE, "N", 0, "live sources, 0 to 4 (1)", 0 },
	{ "processing", OPT_PROCESSING, "N", 0,
	  "processing units, 0 to 4 (1, if there is room)", 0 },
	{ "rings", OPT_RINGS, "N", 0, "rings, 0 to 4 (1, if there is room)", 0 },
	{ "wire", OPT_WIRE, "ADDRESS:PORT", 0,
	  "have rings send and receive UDP at this IPv4 address of the host, ring R at PORT + R; "
	  "0: at any port (no wire)", 0 },
	{ "fetch", OPT_FETCH, "FORMAT", 0,
	  "have no address table: fetch addresses from rings of descriptors in memory of the host. "
	  "FORMAT: array, chain or packed", 0 },
	{ "board", OPT_BOARD, "NAME", 0,
	  "be a model of another DMA engine, before a detector that makes a packet every 20 ms: "
	  "litepcie, wupper, verilog-pcie, xilinx-xdma or xilinx-xdma-stream", 0 },
	{ "align", OPT_ALIGN, "BYTES", 0,
	  "have offsets in memory be multiples of BYTES, a power of two up to 4096 (1)", 0 },
	{ "intx", OPT_INTX, NULL, 0,
	  "have an interrupt pin as well, for drivers without MSI-X", 0 },
	{ 0 },
};

static uint32_t parse_feature(const char *text, const struct argp_state *state)
{
	static const struct { const char *name; uint32_t bit; } features[] = {
		{ "msix", RFPGA_FEATURE_MSIX }, { "lock", RFPGA_FEATURE_LOCK },
		{ "freerun", RFPGA_FEATURE_FREERUN }, { "flush", RFPGA_FEATURE_FLUSH },
		{ "group", RFPGA_FEATURE_GROUP }, { "drop", RFPGA_FEATURE_DROP },
		{ "meta", RFPGA_FEATURE_META }, { "verdict", RFPGA_FEATURE_VERDICT },
	};
	size_t i;

	for (i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (!strcmp(text, features[i].name))
			return features[i].bit;
	argp_error(state, "without: %s is not a feature: see --help", text);
	return 0;
}

static void parse_wire(struct fpga *f, const char *text, const struct argp_state *state)
{
	const char *colon = strrchr(text, ':');
	char address[INET_ADDRSTRLEN] = "";
	struct in_addr at = { 0 };

	if (colon && (size_t)(colon - text) < sizeof(address))
		memcpy(address, text, (size_t)(colon - text));
	if (inet_pton(AF_INET, address, &at) != 1 || !at.s_addr)
		argp_error(state, "wire: %s is no IPv4 address and port, as 127.0.0.1:4000", text);
	else
		f->wire.port = option_count(colon + 1, 0, UINT16_MAX - FPGA_RINGS_MAX, "wire",
					    state);
	f->wire.address = ntohl(at.s_addr);
}

static enum fetch_format parse_fetch(const char *text, const struct argp_state *state)
{
	static const char *const formats[] = {
		[FETCH_ARRAY] = "array", [FETCH_CHAIN] = "chain", [FETCH_PACKED] = "packed",
	};

	for (enum fetch_format f = FETCH_ARRAY; f <= FETCH_PACKED; f++)
		if (!strcmp(text, formats[f]))
			return f;
	argp_error(state, "fetch: %s is no format: array, chain or packed", text);
	return FETCH_NONE;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct fpga *f = state->input;
	uint32_t bytes;

	switch (key) {
	case OPT_WITHOUT:
		f->features &= ~parse_feature(arg, state);
		return 0;
	case OPT_LIVE:
		f->sources = option_count(arg, 0, FPGA_SOURCES_MAX, "live", state);
		return 0;
	case OPT_PROCESSING:
		units = option_count(arg, 0, FPGA_UNITS_MAX, "processing", state);
		return 0;
	case OPT_RINGS:
		rings = option_count(arg, 0, FPGA_RINGS_MAX, "rings", state);
		return 0;
	case OPT_WIRE:
		parse_wire(f, arg, state);
		return 0;
	case OPT_ALIGN:
		bytes = option_count(arg, 1, 4096, "align", state);
		if (bytes & (bytes - 1))
			argp_error(state, "align: %s is no power of two", arg);
		f->align = (uint32_t)__builtin_ctz(bytes);
		return 0;
	case OPT_BOARD:
		model = board_find(arg);
		if (!model)
			argp_error(state, "board: %s is no model: litepcie, wupper, verilog-pcie, xilinx-xdma or xilinx-xdma-stream",
				   arg);
		return 0;
	case OPT_FETCH:
		f->fetch = parse_fetch(arg, state);
		f->features |= RFPGA_FEATURE_FETCH;
		return 0;
	case OPT_INTX:
		f->device.pin = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = { .options = option_list, .parser = parse_option };

int main(int argc, char **argv)
{
	struct device_options options = {
		.memory = 64ull << 20, .dtps = 8, .vectors = 8, .entries = BUS_ENTRIES_MAX,
	};
	struct server *server = server_open(argc, argv, &options, &argp, &fpga);
	int err;

	if (model)
		return board_run(server, model, &options);
	fpga.host = server_host(server);
	fpga.memory_size = options.memory;
	fpga.dtps = options.dtps;
	fpga.vectors = options.vectors;
	/* each needs its own doorbell page */
	fpga.units = units != UINT32_MAX ? units : fpga.dtps < RFPGA_DTPS_MAX;
	fpga.rings = rings != UINT32_MAX ? rings : fpga.dtps + fpga.units < RFPGA_DTPS_MAX;
	if (fpga.dtps + fpga.units + fpga.rings > RFPGA_BAR_DOORBELL_SIZE / RFPGA_DOORBELL_PAGE) {
		log_msg("cannot start: %u DTPs, %u processing units and %u rings have more than %u "
			"doorbells", fpga.dtps, fpga.units, fpga.rings,
			RFPGA_BAR_DOORBELL_SIZE / RFPGA_DOORBELL_PAGE);
		return EXIT_FAILURE;
	}
	fpga.entries = options.entries;
	err = fpga_init(&fpga);
	if (err) {
		log_msg("cannot start: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	err = server_run(server, &fpga.device);
	fpga_destroy(&fpga);
	return err;
}
