// SPDX-License-Identifier: LGPL-2.1-or-later
/* A fault of a frame: its name, its sentence, its counts. */
#include "frames/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char * const fault_names[FAULTS] = {
	[FAULT_ICRC] = "icrc",
	[FAULT_PSN] = "psn",
	[FAULT_PSN_GAP] = "psn-gap",
	[FAULT_PSN_DUPLICATE] = "psn-duplicate",
	[FAULT_PSN_ORDER] = "psn-order",
	[FAULT_PSN_BACK] = "psn-back",
	[FAULT_OPCODE] = "opcode",
	[FAULT_LENGTH] = "length",
	[FAULT_MTU] = "mtu",
	[FAULT_DF] = "df",
	[FAULT_FRAGMENT] = "fragment",
	[FAULT_SHORT] = "short",
	[FAULT_CHECKSUM] = "checksum",
	[FAULT_PORT] = "port",
	[FAULT_HEADER] = "header",
	[FAULT_QUEUE_PAIR] = "queue-pair",
	[FAULT_IMMEDIATE] = "immediate",
	[FAULT_IMMEDIATE_GAP] = "immediate-gap",
	[FAULT_IMMEDIATE_DUPLICATE] = "immediate-duplicate",
	[FAULT_IMMEDIATE_ORDER] = "immediate-order",
	[FAULT_IMMEDIATE_BACK] = "immediate-back",
};

const char *flow_text(char text[FLOW_TEXT], const struct flow *f)
{
	char from[ADDRESS_TEXT], to[ADDRESS_TEXT];

	snprintf(text, FLOW_TEXT, "%s > %s queue pair 0x%06" PRIx32,
		 frame_address(from, f->key.ip, f->key.from),
		 frame_address(to, f->key.ip, f->key.to), f->key.qpn);
	return text;
}

void found(struct check *c, struct flow *f, uint64_t number, enum fault fault, uint64_t expected,
	   uint64_t got, const char *format, ...)
{
	struct finding finding = {
		.frame = number, .fault = fault, .expected = expected, .got = got,
	};
	char flow[FLOW_TEXT];
	va_list args;
	int n;

	n = snprintf(finding.text, sizeof(finding.text), "frame %" PRIu64 ": %s%s", number,
		     f ? flow_text(flow, f) : "", f ? ": " : "");
	va_start(args, format);
	vsnprintf(finding.text + n, sizeof(finding.text) - (size_t)n, format, args);
	va_end(args);
	c->faults[fault]++;
	if (f)
		f->faults[fault]++;
	c->found(c->arg, &finding);
}
