/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rashpa: tracepoints: events on their way, and the life of memory and maps. No addresses:
 * readers of traces need not see them.
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

/* memory for a buffer was taken; @longest: bytes of the longest run, if the search failed */
TRACE_EVENT(rashpa_search,
	TP_PROTO(u64 length, int node, u32 backend, int err, u64 longest),
	TP_ARGS(length, node, backend, err, longest),
	TP_STRUCT__entry(
		__field(u64, length)
		__field(int, node)
		__field(u32, backend)
		__field(int, err)
		__field(u64, longest)
	),
	TP_fast_assign(
		__entry->length = length;
		__entry->node = node;
		__entry->backend = backend;
		__entry->err = err;
		__entry->longest = longest;
	),
	TP_printk("length=%llu node=%d backend=%u err=%d longest=%llu",
		  __entry->length, __entry->node, __entry->backend, __entry->err,
		  __entry->longest)
);

/* a map became valid */
TRACE_EVENT(rashpa_map,
	TP_PROTO(int fpga, u32 map, u32 class, u32 segments, u64 generation),
	TP_ARGS(fpga, map, class, segments, generation),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(u32, map)
		__field(u32, class)
		__field(u32, segments)
		__field(u64, generation)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->map = map;
		__entry->class = class;
		__entry->segments = segments;
		__entry->generation = generation;
	),
	TP_printk("fpga%d map=%u class=%u segments=%u generation=%llu",
		  __entry->fpga, __entry->map, __entry->class, __entry->segments,
		  __entry->generation)
);

/* PROGRAM of a map has ended */
TRACE_EVENT(rashpa_program,
	TP_PROTO(int fpga, u32 map, u32 first, u32 entries, int err),
	TP_ARGS(fpga, map, first, entries, err),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(u32, map)
		__field(u32, first)
		__field(u32, entries)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->map = map;
		__entry->first = first;
		__entry->entries = entries;
		__entry->err = err;
	),
	TP_printk("fpga%d map=%u first=%u entries=%u err=%d",
		  __entry->fpga, __entry->map, __entry->first, __entry->entries, __entry->err)
);

/* the function was stopped, or one engine; @engine: -1 for all */
TRACE_EVENT(rashpa_stop,
	TP_PROTO(int fpga, int engine, int err),
	TP_ARGS(fpga, engine, err),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(int, engine)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->engine = engine;
		__entry->err = err;
	),
	TP_printk("fpga%d engine=%d err=%d", __entry->fpga, __entry->engine, __entry->err)
);

/* a map was revoked; @what: enum rashpa_device_event of the stop, or 0 */
TRACE_EVENT(rashpa_revoke,
	TP_PROTO(int fpga, u32 map, bool for_good, u64 what),
	TP_ARGS(fpga, map, for_good, what),
	TP_STRUCT__entry(
		__field(int, fpga)
		__field(u32, map)
		__field(bool, for_good)
		__field(u64, what)
	),
	TP_fast_assign(
		__entry->fpga = fpga;
		__entry->map = map;
		__entry->for_good = for_good;
		__entry->what = what;
	),
	TP_printk("fpga%d map=%u for_good=%d what=%llu",
		  __entry->fpga, __entry->map, __entry->for_good, __entry->what)
);

#endif /* RASHPA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
