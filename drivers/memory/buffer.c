// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: buffers: memory that this driver allocates.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "memory/memory.h"

/*
 * Buffers without a user whose pages are still held (by an RDMA registration, a pipe). That memory
 * stays, so its maker is charged with it until it goes. The kernel does not report when that is.
 */
static LIST_HEAD(rashpa_lingering);
static DEFINE_MUTEX(rashpa_lingering_lock);	/* rashpa_lingering */

static void rashpa_linger(struct work_struct *work);
static DECLARE_DELAYED_WORK(rashpa_linger_work, rashpa_linger);

static void rashpa_buffer_end(struct rashpa_buffer *buffer)
{
	rashpa_uncharge(&buffer->charge);
	mutex_destroy(&buffer->lock);
	kfree(buffer);
}

/* Give back what has come free meanwhile. */
void rashpa_buffers_sweep(void)
{
	struct rashpa_buffer *buffer, *next;
	u64 held;

	guard(mutex)(&rashpa_lingering_lock);
	list_for_each_entry_safe(buffer, next, &rashpa_lingering, entry) {
		held = rashpa_pages_free(&buffer->pages);
		rashpa_charge_less(&buffer->charge, held);
		if (held)
			continue;
		list_del(&buffer->entry);
		rashpa_buffer_end(buffer);
	}
	if (!list_empty(&rashpa_lingering))
		schedule_delayed_work(&rashpa_linger_work, HZ);
}

static void rashpa_linger(struct work_struct *work)
{
	rashpa_buffers_sweep();
}

/* Only buffers that linger are left. */
void rashpa_buffers_exit(void)
{
	struct rashpa_buffer *buffer, *next;

	cancel_delayed_work_sync(&rashpa_linger_work);
	list_for_each_entry_safe(buffer, next, &rashpa_lingering, entry) {
		rashpa_pages_drop(&buffer->pages);
		rashpa_buffer_end(buffer);
	}
}

/* The end of rashpa_buffer.ref. */
void rashpa_buffer_free(struct kref *ref)
{
	struct rashpa_buffer *buffer = container_of(ref, struct rashpa_buffer, ref);
	u64 held = rashpa_pages_free(&buffer->pages);

	if (!held) {
		rashpa_buffer_end(buffer);
		return;
	}
	rashpa_charge_less(&buffer->charge, held);
	guard(mutex)(&rashpa_lingering_lock);
	list_add(&buffer->entry, &rashpa_lingering);
	schedule_delayed_work(&rashpa_linger_work, HZ);
}

static void rashpa_buffer_info(struct rashpa_memory *memory, struct rashpa_info *info)
{
	struct rashpa_buffer *buffer = container_of(memory, struct rashpa_buffer, memory);

	info->out_kind = buffer->lock_memory ? RASHPA_KIND_LOCK : RASHPA_KIND_BUFFER;
	info->out_backend = buffer->pages.backend;
	info->out_cache = buffer->pages.cache;
	info->out_mappings = atomic_read(&buffer->mappings);
	rashpa_charge_owner(&buffer->charge, &info->out_uid, &info->out_pid);
	info->out_page_size = PAGE_SIZE << buffer->pages.order;
	if (rashpa_pages_pinnable(&buffer->pages))
		info->out_flags |= RASHPA_INFO_REGISTRABLE;
	if (!buffer->name[0])
		return;
	memcpy(info->out_name, buffer->name, sizeof(info->out_name));
	guard(mutex)(&buffer->lock);
	info->out_leases = buffer->leases;
	if (buffer->exclusive) {
		info->out_flags |= RASHPA_INFO_EXCLUSIVE;
		info->out_lease_uid = from_kuid_munged(current_user_ns(), buffer->exclusive->uid);
		info->out_lease_pid = pid_vnr(buffer->exclusive->pid);
	}
}

const struct rashpa_memory_ops rashpa_buffer_ops = {
	.info = rashpa_buffer_info,
	.mmap = rashpa_buffer_mmap,
};

/* Outputs are ignored on input: clear them. */
void rashpa_info_clear(struct rashpa_info *info)
{
	memset_startat(info, 0, out_kind);
	info->out_bar = -1;
}
