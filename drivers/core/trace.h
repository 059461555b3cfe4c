/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rashpa: tracepoints: interrupt, delivery, wake-up. No addresses: readers
 * of traces need not see them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rashpa

#if !defined(RASHPA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RASHPA_TRACE_H

#include <linux/tracepoint.h>

/* the handler of an interrupt has begun */
TRACE_EVENT(rashpa_interrupt,
	TP_PROTO(int fpga, u32 vector),
	TP_ARGS(fpga, vector),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(u32, vector)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->vector = vector;
	),
	TP_printk("fpga%d vector=%u", __entry->fpga, __entry->vector)
);

/* a record was queued, or lost for lack of room */
TRACE_EVENT(rashpa_event,
	TP_PROTO(int fpga, u32 source, u32 kind, u64 sequence, u64 time, u64 value, u64 lost),
	TP_ARGS(fpga, source, kind, sequence, time, value, lost),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(u32, source)
		__field(u32, kind)
		__field(u64, sequence)
		__field(u64, time)
		__field(u64, value)
		__field(u64, lost)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->source = source;
		__entry->kind = kind;
		__entry->sequence = sequence;
		__entry->time = time;
		__entry->value = value;
		__entry->lost = lost;
	),
	TP_printk("fpga%d source=%u kind=%u sequence=%llu time=%llu value=%llu lost=%llu",
		  __entry->fpga, __entry->source, __entry->kind, __entry->sequence,
		  __entry->time, __entry->value, __entry->lost)
);

DECLARE_EVENT_CLASS(rashpa_records,
	TP_PROTO(int fpga, u64 records),
	TP_ARGS(fpga, records),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(u64, records)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->records = records;
	),
	TP_printk("fpga%d records=%llu", __entry->fpga, __entry->records)
);

/* the readers of the channel wake up; programs with eventfd or ring are not seen here */
DEFINE_EVENT(rashpa_records, rashpa_wakeup,
	TP_PROTO(int fpga, u64 records), TP_ARGS(fpga, records)
);

/* a reader leaves the kernel with records */
DEFINE_EVENT(rashpa_records, rashpa_read,
	TP_PROTO(int fpga, u64 records), TP_ARGS(fpga, records)
);

/* user space has mapped a window, e.g. a doorbell page: stores to it are its own */
TRACE_EVENT(rashpa_window_mmap,
	TP_PROTO(int fpga, u32 bar, u64 offset, u64 length),
	TP_ARGS(fpga, bar, offset, length),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(u32, bar)
		__field(u64, offset)
		__field(u64, length)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->bar = bar;
		__entry->offset = offset;
		__entry->length = length;
	),
	TP_printk("fpga%d bar=%u offset=0x%llx length=0x%llx", __entry->fpga, __entry->bar,
		  __entry->offset, __entry->length)
);

#endif /* RASHPA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
