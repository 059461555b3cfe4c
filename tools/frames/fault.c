// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/fault.h"

#include <inttypes.h>
#include <string.h>

#include "frames/opcode.h"
#include "common/parse.h"

#define IP		14
#define IP_CHECKSUM	(IP + 10)	/* offset in the frame */
#define UDP_CHECKSUM	(IP + 20 + 6)
#define BTH_END		(14 + 20 + 8 + 12)
#define REORDER_MAX	64

/* "to" is 0 for kinds without a value; "otherwise" is the default value. */
static const struct {
	const char *name;
	uint32_t from, to, otherwise;
} kinds[] = {
	[INJECT_ICRC] = { "icrc", 1, UINT32_MAX, 1 },
	[INJECT_PSN] = { "psn", 0, PSN_MASK, 0 },
	[INJECT_OPCODE] = { "opcode", 0, 0x1f, 0 },
	[INJECT_DROP] = { "drop", 0, 0, 0 },
	[INJECT_DUPLICATE] = { "duplicate", 0, 0, 0 },
	[INJECT_REORDER] = { "reorder", 1, REORDER_MAX, 1 },
	[INJECT_DF] = { "df", 0, 0, 0 },
	[INJECT_MTU] = { "mtu", 1, FRAME_MAX - FRAME_OVERHEAD - PATH_MTU_MAX, 4 },
	[INJECT_QP] = { "qp", 0, QPN_MASK, 0 },
	[INJECT_SHORT] = { "short", 14, FRAME_MAX, BTH_END },
	[INJECT_LENGTH] = { "length", 0, UINT32_MAX, 0 },
	[INJECT_PORT] = { "port", 1, 65535, ROCE_PORT + 1 },
	[INJECT_IMMEDIATE] = { "immediate", 0, UINT32_MAX, 0 },
	[INJECT_CHECKSUM] = { "checksum", 0, 0, 0 },
	[INJECT_UDP_CHECKSUM] = { "udp-checksum", 0, 65535, 1 },
};

const char *fault_name(enum injected kind)
{
	return kinds[kind].name;
}

static int parse_value(const char *text, const char *value, struct injected_fault *f, char *why)
{
	f->told = true;
	if (f->kind == INJECT_ICRC) {
		f->zero = !strcmp(value, "zero");
		f->swapped = !strcmp(value, "swapped");
		if (f->zero || f->swapped)
			return 0;
	}
	if (!kinds[f->kind].to)
		return because(why, -1, "%s: %s has no value: give %s@N", text, fault_name(f->kind),
			       fault_name(f->kind));
	if (!parse_u32(value, &f->value) || f->value < kinds[f->kind].from ||
	    f->value > kinds[f->kind].to)
		return because(why, -1, "%s: \"%s\" is not a number from %" PRIu32 " to %" PRIu32 "%s",
			       text, value, kinds[f->kind].from, kinds[f->kind].to,
			       f->kind == INJECT_ICRC ? ", zero or swapped" : "");
	return 0;
}

int fault_parse(const char *text, struct injected_fault *fault, char why[WHY_SIZE])
{
	const char *at = strchr(text, '@'), *colon = strchr(text, ':');
	size_t length = at ? (size_t)(at - text) : strlen(text);
	char number[24];
	unsigned int i;

	*fault = (struct injected_fault) {};
	for (i = 0; i < INJECTED_KINDS; i++) {
		if (strlen(kinds[i].name) == length && !strncmp(kinds[i].name, text, length))
			break;
	}
	if (i == INJECTED_KINDS)
		return because(why, -1, "%s: there is no such fault: use one of %s", text,
			       FAULT_KINDS);
	fault->kind = i;
	fault->value = kinds[i].otherwise;
	if (!at)
		return because(why, -1, "%s: the frame is missing: give %s@N", text, text);
	length = colon ? (size_t)(colon - at - 1) : strlen(at + 1);
	if (length < sizeof(number)) {
		memcpy(number, at + 1, length);
		number[length] = '\0';
	}
	if (length >= sizeof(number) || !parse_u64(number, UINT64_MAX, &fault->frame) ||
	    !fault->frame)
		return because(why, -1, "%s: the frame is not a number from 1 on", text);
	return colon ? parse_value(text, colon + 1, fault, why) : 0;
}

/* Another part of a message than there should be. */
static uint32_t other_operation(enum operation operation, bool immediate)
{
	switch (operation) {
	case WRITE_FIRST:
		return WRITE_MIDDLE;
	case WRITE_MIDDLE:
		return WRITE_FIRST;
	case WRITE_LAST:
	case WRITE_LAST_IMMEDIATE:
		return immediate ? WRITE_ONLY_IMMEDIATE : WRITE_ONLY;
	default:
		return immediate ? WRITE_LAST_IMMEDIATE : WRITE_LAST;
	}
}

int fault_fits(struct injected_fault *f, const struct plan *plan, char why[WHY_SIZE])
{
	const char *name = fault_name(f->kind);
	unsigned int parts;

	if (f->frame > plan_frames(plan))
		return because(why, -1, "%s@%" PRIu64 ": there are only %" PRIu64 " frames", name,
			       f->frame, plan_frames(plan));
	if (f->kind == INJECT_REORDER && f->value > plan_frames(plan) - f->frame)
		return because(why, -1, "reorder@%" PRIu64 ": fewer than %" PRIu32
			       " frames follow", f->frame, f->value);
	parts = opcode_parts(plan_opcode(plan, f->frame - 1));
	if (f->kind == INJECT_LENGTH && !(parts & HAS_RETH))
		return because(why, -1, "length@%" PRIu64 ": this frame has no RETH: use the first one of a message",
			       f->frame);
	if (f->kind == INJECT_IMMEDIATE && !(parts & HAS_IMMEDIATE))
		return because(why, -1, "immediate@%" PRIu64 ": this frame has none: use the last one of a message",
			       f->frame);
	if (f->told)
		return 0;
	switch (f->kind) {
	case INJECT_PSN:	/* as of a counter that has jumped */
		f->value = (uint32_t)(plan->like.psn + f->frame - 1 + 0x1000) & PSN_MASK;
		break;
	case INJECT_OPCODE:
		f->value = other_operation(plan_opcode(plan, f->frame - 1) & 0x1f,
					   parts & HAS_IMMEDIATE);
		break;
	case INJECT_QP:
		f->value = (plan->like.qpn + 1) & QPN_MASK;
		break;
	case INJECT_LENGTH:
		f->value = plan->size + 4;
		break;
	case INJECT_IMMEDIATE:
		f->value = (uint32_t)(plan->immediate + 0x1000 +
				      (f->frame - 1) / plan_per_message(plan));
		break;
	default:
		break;
	}
	return 0;
}

void fault_in_frame(const struct injected_fault *fault, const struct plan *plan, struct frame *f,
		    uint8_t *buf)
{
	size_t size;

	switch (fault->kind) {
	case INJECT_PSN:
		f->psn = fault->value;
		break;
	case INJECT_OPCODE:
		f->opcode = (uint8_t)(plan->transport | fault->value);
		break;
	case INJECT_DF:
		f->may_fragment = true;
		break;
	case INJECT_MTU:
		size = plan->path_mtu + fault->value;
		memset(buf + f->payload_size, 0, size - f->payload_size);
		f->payload_size = size;
		break;
	case INJECT_QP:
		f->qpn = fault->value;
		break;
	case INJECT_LENGTH:
		f->length = fault->value;
		break;
	case INJECT_PORT:
		f->to_port = (uint16_t)fault->value;
		break;
	case INJECT_IMMEDIATE:
		f->immediate = fault->value;
		break;
	default:
		break;
	}
}

void fault_in_bytes(const struct injected_fault *fault, uint8_t *data, size_t *size)
{
	uint8_t *icrc = data + *size - 4;
	uint32_t value;

	switch (fault->kind) {
	case INJECT_ICRC:
		memcpy(&value, icrc, 4);
		if (fault->zero)
			value = 0;
		else if (fault->swapped)
			value = __builtin_bswap32(value);
		else
			value ^= fault->value;
		memcpy(icrc, &value, 4);
		break;
	case INJECT_SHORT:
		if (*size > fault->value)
			*size = fault->value;
		break;
	case INJECT_CHECKSUM:
		data[IP_CHECKSUM] ^= 0xff;
		break;
	case INJECT_UDP_CHECKSUM:
		if (*size < UDP_CHECKSUM + 2)
			break;
		value = frame_udp_checksum(data + IP, 20, *size - IP) ^ fault->value;
		data[UDP_CHECKSUM] = (uint8_t)(value >> 8);
		data[UDP_CHECKSUM + 1] = (uint8_t)value;
		break;
	default:
		break;
	}
}
