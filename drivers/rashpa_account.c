// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: who holds how much: the administrator's limits, and RLIMIT_MEMLOCK.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "rashpa_memory.h"

static unsigned int limit_mib;
module_param(limit_mib, uint, 0644);
MODULE_PARM_DESC(limit_mib, "limit for all buffers together in MiB, 0 for none");

static unsigned int user_limit_mib;
module_param(user_limit_mib, uint, 0644);
MODULE_PARM_DESC(user_limit_mib, "limit for the buffers of one user in MiB, 0 for none; not for CAP_SYS_RESOURCE");

/**
 * struct rashpa_user - what one user holds; there while it is more than nothing
 * @entry: in rashpa_users
 * @uid: who
 * @bytes: held
 */
struct rashpa_user {
	struct list_head entry;
	kuid_t uid;
	u64 bytes;
};

static LIST_HEAD(rashpa_users);
static u64 rashpa_total;
static DEFINE_MUTEX(rashpa_account_lock);	/* rashpa_users, rashpa_total */

/*
 * Who is charged. The ids of a namespace that an ordinary user has made are that user's own:
 * one limit for each would be none.
 */
static kuid_t rashpa_user_charged(void)
{
	const struct user_namespace *ns;
	kuid_t uid = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

static struct rashpa_user *rashpa_user_find(kuid_t uid)
{
	struct rashpa_user *user;

	lockdep_assert_held(&rashpa_account_lock);
	list_for_each_entry(user, &rashpa_users, entry)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static struct rashpa_user *rashpa_user_get(void)
{
	kuid_t uid = rashpa_user_charged();
	struct rashpa_user *user = rashpa_user_find(uid);

	if (user)
		return user;
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return NULL;
	user->uid = uid;
	list_add(&user->entry, &rashpa_users);
	return user;
}

static void rashpa_user_shrink(struct rashpa_user *user, u64 bytes)
{
	lockdep_assert_held(&rashpa_account_lock);
	user->bytes -= bytes;
	if (user->bytes)
		return;
	list_del(&user->entry);
	kfree(user);
}

static int rashpa_limit_check(struct rashpa_call *call, const char *whose, u64 held,
			      u64 bytes, unsigned int mib, const char *param)
{
	u64 limit = (u64)mib << 20;

	if (!limit || (held <= limit && bytes <= limit - held))
		return 0;
	return rashpa_fail(call, -EDQUOT,
			   "%llu MiB would exceed the limit of %llu MiB %s (%llu in use): raise the module parameter %s",
			   bytes >> 20, limit >> 20, whose, held >> 20, param);
}

/**
 * rashpa_charge() - more memory for this user
 * @call: the ioctl, for the reason
 * @charge: zeroed, or charged before
 * @bytes: to add; 0 does nothing
 *
 * Return: 0, -EDQUOT, -ENOMEM.
 */
int rashpa_charge(struct rashpa_call *call, struct rashpa_charge *charge, u64 bytes)
{
	unsigned int user_limit = READ_ONCE(user_limit_mib);
	struct rashpa_user *user;
	int err;

	if (!bytes)
		return 0;
	if (user_limit && capable(CAP_SYS_RESOURCE))
		user_limit = 0;
	mutex_lock(&rashpa_account_lock);
	user = charge->user ?: rashpa_user_get();
	if (!user) {
		err = -ENOMEM;
		goto out;
	}
	err = rashpa_limit_check(call, "for all", rashpa_total, bytes,
				 READ_ONCE(limit_mib), "limit_mib");
	if (!err)
		err = rashpa_limit_check(call, "for one user", user->bytes, bytes,
					 user_limit, "user_limit_mib");
	if (err) {
		rashpa_user_shrink(user, 0);
		goto out;
	}
	rashpa_total += bytes;
	user->bytes += bytes;
	charge->user = user;
	charge->bytes += bytes;
out:
	mutex_unlock(&rashpa_account_lock);
	return err;
}

/**
 * rashpa_uncharge() - memory was given back
 * @charge: from rashpa_charge(); zero again afterwards
 */
void rashpa_uncharge(struct rashpa_charge *charge)
{
	if (!charge->user)
		return;
	mutex_lock(&rashpa_account_lock);
	rashpa_total -= charge->bytes;
	rashpa_user_shrink(charge->user, charge->bytes);
	mutex_unlock(&rashpa_account_lock);
	memset(charge, 0, sizeof(*charge));
}

/**
 * rashpa_account_query() - the limits, and what is held
 * @query: out_allocated, out_limit, out_user_allocated, out_user_limit filled in
 */
void rashpa_account_query(struct rashpa_query *query)
{
	struct rashpa_user *user;

	mutex_lock(&rashpa_account_lock);
	user = rashpa_user_find(rashpa_user_charged());
	query->out_allocated = rashpa_total;
	query->out_user_allocated = user ? user->bytes : 0;
	mutex_unlock(&rashpa_account_lock);
	query->out_limit = (u64)READ_ONCE(limit_mib) << 20;
	query->out_user_limit = (u64)READ_ONCE(user_limit_mib) << 20;
}

/**
 * rashpa_memlock() - charge pinned pages to the caller's RLIMIT_MEMLOCK
 * @call: the ioctl, for the reason
 * @pages: to add
 *
 * As RDMA registration does: they count in mm->pinned_vm, which outlives the process as
 * long as somebody holds the mm.
 *
 * Return: 0 or -ENOMEM.
 */
int rashpa_memlock(struct rashpa_call *call, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 now = atomic64_add_return(pages, &current->mm->pinned_vm);

	if (now <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &current->mm->pinned_vm);
	return rashpa_fail(call, -ENOMEM,
			   "pinning %lu KiB would exceed RLIMIT_MEMLOCK of %lu KiB (%llu pinned): raise it (ulimit -l)",
			   pages << (PAGE_SHIFT - 10), limit << (PAGE_SHIFT - 10),
			   (now - pages) << (PAGE_SHIFT - 10));
}
