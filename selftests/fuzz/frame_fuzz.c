// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Frames from a network, and files of captures. The first byte of an input selects: a whole
 * capture, or frames, each after its kind of link and two bytes of size. A bit of the kind corrects
 * the ICRC of a frame, so that the code after the check is reached.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "frames/capture.h"
#include "frames/opcode.h"

#define SIZE_MAX_	65536
#define NEVER		UINT64_MAX

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void each(void *arg, const struct finding *f)
{
	struct check *c = arg;

	must(f->fault < FAULTS && f->frame && f->frame <= c->frames);
	must(memchr(f->text, '\0', sizeof(f->text)) && strlen(f->text) > 10);
}

static void begin(struct check *c, uint8_t how)
{
	static const struct queue_pair pairs[] = { { 0x11, 0, true }, { 0, 0, false } };
	struct check_options options = {
		.queue_pairs = pairs, .n_queue_pairs = how & 1 ? 2 : 0,
		.path_mtu = how & 2 ? 256 : 0, .mtu = how & 4 ? 300 : 0, .no_immediate = how & 8,
	};

	check_begin(c, &options, each, c);
}

static void end(struct check *c)
{
	uint64_t packets = 0, faults = 0;
	unsigned int i, j;

	check_end(c);
	for (i = 0; i < c->n_flows; i++) {
		packets += c->flows[i]->packets + c->flows[i]->responses;
		for (j = 0; j < FAULTS; j++)
			faults += c->flows[i]->faults[j];
	}
	must(packets <= c->roce && c->roce + c->others == c->frames);
	must(faults <= check_faults(c));
	check_free(c);
}

static void read_capture(uint8_t how, const uint8_t *data, size_t size)
{
	char why[WHY_SIZE] = "";
	struct capture capture;
	struct check check;
	bool stop = false;
	FILE *file;

	file = fmemopen((void *)data, size, "r");
	must(file);
	if (capture_open_file(&capture, file, "input", why)) {
		must(*why);
		capture_close(&capture);
		return;
	}
	begin(&check, how);
	if (capture_check(&capture, &check, &stop, 0, NEVER, why))
		must(*why);
	end(&check);
	capture_close(&capture);
}

/* Set the fields that the decoder expects. The sanitizer checks that it reads no further. */
static void make_right(uint8_t *frame, size_t size, size_t wire, enum frame_link link)
{
	struct frame f;

	if (frame_decode(&f, frame, size, wire, link) != FRAME_ROCE || !f.icrc_known)
		return;
	must(f.payload >= frame && f.payload + f.payload_size + f.pad + 4 <= frame + size);
	for (unsigned int i = 0; i < 4; i++)
		frame[f.payload - frame + f.payload_size + f.pad + i] =
			(uint8_t)(f.icrc_expected >> 8 * i);
	must(frame_decode(&f, frame, size, wire, link) == FRAME_ROCE && f.icrc == f.icrc_expected);
}

static void read_frames(uint8_t how, const uint8_t *data, size_t size)
{
	struct check check;
	size_t captured, wire;
	uint8_t *frame;
	uint8_t kind;

	begin(&check, how);
	while (size >= 3) {
		kind = data[0];
		captured = (size_t)data[1] << 8 | data[2];
		data += 3;
		size -= 3;
		captured = captured < size ? captured : size;
		wire = captured + (kind & 8 ? 100 : 0);
		/* separate memory, so that the sanitizer detects a read beyond it */
		frame = malloc(captured ? captured : 1);
		if (!frame)
			abort();
		memcpy(frame, data, captured);
		if (kind & 4)
			make_right(frame, captured, wire, kind & 3);
		must(!check_frame(&check, frame, captured, wire, kind & 3));
		free(frame);
		data += captured;
		size -= captured;
	}
	end(&check);
}

/* An encoded frame is decoded to the same values. */
static void encode(const uint8_t *data, size_t size)
{
	uint8_t bytes[SIZE_MAX_ + FRAME_OVERHEAD];
	struct frame f = { .ip = 4, .to_port = ROCE_PORT, .pkey = 0xffff }, g;
	size_t n;

	if (size < 24)
		return;
	f.opcode = data[0];
	f.solicited = data[1] & 1;
	f.ack_request = data[1] & 2;
	f.may_fragment = data[1] & 4;
	memcpy(&f.qpn, data + 2, 4);
	memcpy(&f.psn, data + 6, 4);
	memcpy(&f.address, data + 10, 8);
	memcpy(&f.immediate, data + 18, 4);
	f.qpn &= QPN_MASK;
	f.psn &= PSN_MASK;
	f.payload = data + 22;
	f.payload_size = size - 22;
	if (!(opcode_parts(f.opcode) & (PART_SEND | PART_WRITE)) ||
	    opcode_parts(f.opcode) & (HAS_DETH | HAS_INVALIDATE) || size > 60000)
		return;
	n = frame_encode(&f, bytes);
	must(n <= f.payload_size + FRAME_OVERHEAD);
	must(frame_decode(&g, bytes, n, n, LINK_ETHERNET) == FRAME_ROCE);
	must(g.icrc_known && g.icrc == g.icrc_expected && g.checksum == g.checksum_right);
	must(g.opcode == f.opcode && g.qpn == f.qpn && g.psn == f.psn);
	must(g.payload_size == f.payload_size && !memcmp(g.payload, f.payload, f.payload_size));
	must(g.solicited == f.solicited && g.ack_request == f.ack_request &&
	     g.may_fragment == f.may_fragment);
	if (opcode_parts(f.opcode) & HAS_RETH)
		must(g.address == f.address);
	if (opcode_parts(f.opcode) & HAS_IMMEDIATE)
		must(g.immediate == f.immediate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how;

	if (size < 2 || size > SIZE_MAX_)
		return 0;
	how = data[0] >> 4;
	switch (data[0] & 3) {
	case 0:
		read_capture(how, data + 1, size - 1);
		break;
	case 1:
		encode(data + 1, size - 1);
		break;
	default:
		read_frames(how, data + 1, size - 1);
	}
	return 0;
}
