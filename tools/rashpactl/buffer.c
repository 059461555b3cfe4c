// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl buffer list, info, permit, remove */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json-out.h"
#include "rashpactl/owner.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

/* Properties of a buffer, as far as known. */
struct entry {
	const char *name;
	struct rashpa_info info;	/* with !error */
	struct rashpa_role role;	/* likewise */
	int error;			/* -EBUSY, -EACCES: only the owner and mode are known */
	uint32_t uid, gid, mode;
};

/*
 * The driver describes a buffer to users who may open it for reading and writing, even during an
 * exclusive lease. Users who may only read must take a lease. Owner and mode are public.
 */
static int look(const char *name, struct entry *entry)
{
	int fd = rashpa_buffer_open(name, O_ACCMODE);
	const bool lease = fd == -EACCES;
	struct stat st;
	char path[512];

	*entry = (struct entry) { .name = name, .info.fd = -1 };
	snprintf(path, sizeof(path), "%s/buffer/%s", rashpa_device_directory(), name);
	if (lease)
		fd = rashpa_buffer_open(name, O_RDONLY);
	entry->error = fd < 0 ? fd : rashpa_memory_get_info(fd, &entry->info);
	if (!entry->error)
		entry->error = rashpa_buffer_role(fd, &entry->role);
	if (fd >= 0)
		close(fd);
	if (entry->error && fd != -EBUSY && fd != -EACCES)
		return entry->error;
	/* our own */
	if (lease && entry->info.out_leases)
		entry->info.out_leases--;
	if (stat(path, &st))
		return -errno;
	entry->uid = st.st_uid;
	entry->gid = st.st_gid;
	entry->mode = st.st_mode & 0777;
	return 0;
}

static const char *why_unknown(const struct entry *e)
{
	return e->error == -EBUSY ? "leased exclusively" : "not for you";
}

static const char *const roles[RASHPA_ROLES] = { "producer", "consumer" };

/* null: no process has this role */
static struct json_object *role_json(const struct rashpa_role *role, unsigned int i)
{
	struct json_object *o;

	if (!(role->out_held >> i & 1))
		return NULL;
	o = json_object_new_object();
	put_int(o, "pid", role->out_pid[i]);
	put_int(o, "uid", role->out_uid[i]);
	return o;
}

static struct json_object *entry_json(const struct entry *e)
{
	const struct rashpa_info *i = &e->info;
	struct json_object *o = json_object_new_object();
	char text[OWNER_SIZE];

	put_text(o, "name", e->name);
	put_text(o, "unknown", e->error ? why_unknown(e) : NULL);
	put_int(o, "uid", e->uid);
	put_int(o, "gid", e->gid);
	put_text(o, "owner", user_name(text, sizeof(text), e->uid));
	put_text(o, "group", group_name(text, sizeof(text), e->gid));
	snprintf(text, sizeof(text), "%04" PRIo32, e->mode);
	put_text(o, "mode", text);
	if (e->error)
		return o;
	put_u64(o, "length_bytes", i->out_length);
	put_text(o, "kind", rashpa_kind_name(i->out_kind));
	put_text(o, "backend", rashpa_backend_name(i->out_backend));
	put_text(o, "cache", rashpa_cache_name(i->out_cache));
	put_int(o, "numa_node", i->out_node);
	put_int(o, "segments", i->out_segments);
	put_u64(o, "page_bytes", i->out_page_size);
	put_bool(o, "registrable", i->out_flags & RASHPA_INFO_REGISTRABLE);
	put_int(o, "leases", i->out_leases);
	put_bool(o, "exclusive", i->out_flags & RASHPA_INFO_EXCLUSIVE);
	if (i->out_flags & RASHPA_INFO_EXCLUSIVE) {
		put_int(o, "lease_uid", i->out_lease_uid);
		put_int(o, "lease_pid", i->out_lease_pid);
	}
	put_int(o, "importers", i->out_importers);
	put_int(o, "mappings", i->out_mappings);
	for (unsigned int k = 0; k < RASHPA_ROLES; k++)
		json_object_object_add(o, roles[k], role_json(&e->role, k));
	return o;
}

static void print_row(const struct entry *e)
{
	char user[OWNER_SIZE], group[OWNER_SIZE], owner[2 * OWNER_SIZE + 1], size[SIZE_TEXT];

	snprintf(owner, sizeof(owner), "%s:%s", user_name(user, sizeof(user), e->uid),
		 group_name(group, sizeof(group), e->gid));
	if (e->error)
		printf("%-24s %10s  %-7s %4s  %-16s %04" PRIo32 "  %s\n", e->name, "-", "-", "-",
		       owner, e->mode, why_unknown(e));
	else
		printf("%-24s %10s  %-7s %4d  %-16s %04" PRIo32 " %6" PRIu32 " %9" PRIu32
		       " %8" PRIu32 "\n",
		       e->name, format_size(size, e->info.out_length),
		       rashpa_backend_name(e->info.out_backend), e->info.out_node, owner, e->mode,
		       e->info.out_leases, e->info.out_importers, e->info.out_mappings);
}

int cmd_buffer_list(int argc, char **argv)
{
	struct json_object *list = NULL;
	struct entry entry;
	char **names;
	int n, error, result = 0;

	command_simple(argc, argv, NULL);
	n = rashpa_buffer_list(&names);
	if (n < 0)
		return fail("%s", rashpa_reason());
	if (command_json)
		list = json_object_new_array();
	else
		printf("%-24s %10s  %-7s %4s  %-16s %4s %6s %9s %8s\n", "NAME", "SIZE", "BACKEND",
		       "NODE", "OWNER", "MODE", "LEASES", "IMPORTERS", "MAPPINGS");
	for (int i = 0; i < n; i++) {
		error = look(names[i], &entry);
		if (error == -ENOENT)
			continue;	/* removed meanwhile */
		if (error)
			result = fail("buffer %s: %s", names[i], rashpa_reason());
		else if (list)
			json_object_array_add(list, entry_json(&entry));
		else
			print_row(&entry);
	}
	rashpa_buffer_list_free(names, n);
	if (list && json_finish(list))
		result = EXIT_FAILED;
	return result;
}

static void print_entry(const struct entry *e)
{
	const struct rashpa_info *i = &e->info;
	char text[SIZE_TEXT], user[OWNER_SIZE], group[OWNER_SIZE];

	printf("name         %s\n", e->name);
	printf("owner        %s:%s\n", user_name(user, sizeof(user), e->uid),
	       group_name(group, sizeof(group), e->gid));
	printf("mode         %04" PRIo32 "\n", e->mode);
	printf("kind         %s\n", rashpa_kind_name(i->out_kind));
	printf("length       %" PRIu64 " (%s)\n", (uint64_t)i->out_length,
	       format_size(text, i->out_length));
	printf("backend      %s\n", rashpa_backend_name(i->out_backend));
	printf("cache        %s\n", rashpa_cache_name(i->out_cache));
	printf("node         %d\n", i->out_node);
	printf("segments     %" PRIu32 "\n", i->out_segments);
	printf("page size    %s\n", format_size(text, i->out_page_size));
	printf("by address   %s\n", i->out_flags & RASHPA_INFO_REGISTRABLE ?
	       "can be registered (RDMA, direct I/O)" :
	       "cannot be registered (RDMA, direct I/O): only as dma-buf");
	if (i->out_flags & RASHPA_INFO_EXCLUSIVE)
		printf("leases       1, exclusive: process %" PRId32 " of %s\n", i->out_lease_pid,
		       user_name(user, sizeof(user), i->out_lease_uid));
	else
		printf("leases       %" PRIu32 "\n", i->out_leases);
	printf("importers    %" PRIu32 "\n", i->out_importers);
	printf("mappings     %" PRIu32 "\n", i->out_mappings);
	for (unsigned int k = 0; k < RASHPA_ROLES; k++) {
		if (e->role.out_held >> k & 1)
			printf("%-12s process %" PRId32 " of %s\n", roles[k], e->role.out_pid[k],
			       user_name(user, sizeof(user), e->role.out_uid[k]));
	}
}

int cmd_buffer_info(int argc, char **argv)
{
	const char *name;
	struct entry entry;

	command_simple(argc, argv, &name);
	if (look(name, &entry) || entry.error)
		return fail("buffer %s: %s", name, rashpa_reason());
	if (command_json)
		return json_finish(entry_json(&entry));
	print_entry(&entry);
	return 0;
}

/* --- permit --- */

static const struct argp_option permit_options[] = {
	{ "owner", 'o', "USER[:GROUP]", 0, "new owner, or :GROUP for the group only", 0 },
	{ "mode", 'm', "OCTAL", 0, "permission bits", 0 },
	{}
};

struct permit {
	char name[RASHPA_NAME_SIZE];
	struct owner owner;
};

static error_t parse_permit(int key, char *arg, struct argp_state *state)
{
	struct permit *permit = state->input;
	struct owner *owner = &permit->owner;

	switch (key) {
	case 'o':
		option_owner(state, arg, owner);
		break;
	case 'm':
		option_mode(state, arg, &owner->mode);
		owner->has_mode = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			return ARGP_ERR_UNKNOWN;
		option_buffer(state, arg, permit->name);
		break;
	case ARGP_KEY_END:
		if (!state->arg_num)
			argp_error(state, "give NAME");
		if (owner->uid == (uint32_t)-1 && owner->gid == (uint32_t)-1 && !owner->has_mode)
			argp_error(state, "give --owner, --mode or both");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_buffer_permit(int argc, char **argv)
{
	static const struct argp argp = { .options = permit_options, .parser = parse_permit };
	struct permit permit = { .owner = OWNER_NONE };
	int fd;

	command_parse(&argp, argc, argv, &permit);
	/* only the name of a buffer, not a path to another file */
	fd = rashpa_buffer_open(permit.name, O_PATH);
	if (fd < 0)
		return fail("%s", rashpa_reason());
	close(fd);
	return apply_owner(permit.name, &permit.owner);
}

int cmd_buffer_remove(int argc, char **argv)
{
	const char *name;

	command_read(&command_bare, argc, argv, NULL, &name);
	return rashpa_buffer_remove(name) ? fail("buffer %s: %s", name, rashpa_reason()) : 0;
}
