// SPDX-License-Identifier: LGPL-2.1-or-later
/* Modules that only tests load. */
#include <sys/syscall.h>

#include "foreign.h"

int liar = -1;

const char *module_load(const char *name, int *fd)
{
	const char *series = getenv("RASHPA_KERNEL");
	char path[128];
	int file;

	if (!series)
		return "RASHPA_KERNEL must name a folder of build/modules";
	snprintf(path, sizeof(path), "build/modules/%s/tests/rashpa_%s.ko", series, name);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return "the tests' modules are not built for this kernel";
	if (syscall(SYS_finit_module, file, "", 0) && errno != EEXIST)
		tap_bail("%s: %s", path, strerror(errno));
	close(file);
	snprintf(path, sizeof(path), "/dev/rashpa-%s", name);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		tap_bail("%s: %s", path, strerror(errno));
	return NULL;
}

int module_unload(const char *name)
{
	char module[64];

	snprintf(module, sizeof(module), "rashpa_%s", name);
	return syscall(SYS_delete_module, module, O_NONBLOCK) ? -errno : 0;
}

uint32_t bdf_of(const struct fpga *fpga)
{
	unsigned int domain, bus, slot, function;

	if (sscanf(fpga->bdf, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		tap_bail("%s is no PCI address", fpga->bdf);
	return domain << 16 | bus << 8 | slot << 3 | function;
}

static void *caller_run(void *arg)
{
	struct caller *c = arg;

	atomic_store(&c->tid, (int)syscall(SYS_gettid));
	if (c->what)
		c->err = c->what(c);
	else
		c->err = ioctl(c->fd, c->cmd, c->arg) ? -errno : 0;
	atomic_store(&c->done, true);
	return NULL;
}

bool caller_waits(struct caller *c, const char *function)
{
	char path[64], where[64] = "";

	if (pthread_create(&c->thread, NULL, caller_run, c))
		tap_bail("pthread_create");
	while (!strstr(where, function) && !atomic_load(&c->done)) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/wchan", atomic_load(&c->tid));
		read_text(path, where, sizeof(where));
		sched_yield();
	}
	return !atomic_load(&c->done);
}

int caller_ends(struct caller *c)
{
	pthread_join(c->thread, NULL);
	return c->err;
}

struct rashpa_liar_export liar_memory(uint32_t model, uint32_t kind, const struct fpga *bar)
{
	return (struct rashpa_liar_export) {
		.model = model, .kind = kind, .error = ENODEV, .length = LIAR_LENGTH,
		.bdf = bar ? bdf_of(bar) : 0, .bar = bar ? RFPGA_BAR_MEMORY : 0,
	};
}

int liar_export(struct rashpa_liar_export *arg)
{
	if (ioctl(liar, RASHPA_LIAR_EXPORT, arg))
		tap_bail("EXPORT: %s", strerror(errno));
	return arg->out_fd;
}

struct rashpa_liar_state liar_tell(unsigned long cmd, int fd, uint32_t kind)
{
	struct rashpa_liar_state s = { .fd = fd, .kind = kind };

	CHECK(!ioctl(liar, cmd, &s), "exporter: %s", strerror(errno));
	return s;
}

int liar_fence(unsigned long cmd, int fd, uint32_t bdf)
{
	struct rashpa_liar_fence arg = { .fd = fd, .bdf = bdf };
	int node = open("/dev/rashpa-liar", O_RDWR | O_CLOEXEC);

	CHECK(node >= 0 && !ioctl(node, cmd, &arg), "fence: %s", strerror(errno));
	return node;
}

void liar_arrive(int fence)
{
	struct rashpa_liar_fence arg = {};

	CHECK(!ioctl(fence, RASHPA_LIAR_SIGNAL, &arg), "SIGNAL: %s", strerror(errno));
}

void liar_is_free(int fd)
{
	struct rashpa_liar_state s = liar_tell(RASHPA_LIAR_COUNT, fd, 0);

	CHECK(!s.out_mapped && !s.out_pinned, "%u mappings and %u pins are left",
	      s.out_mapped, s.out_pinned);
}

void liar_close(int fd)
{
	liar_is_free(fd);
	close(fd);
}

void lent_up(struct lent *l, const struct fpga *fpga, int fd)
{
	l->fd = fd;
	l->memory = map_fd(fd, LIAR_LENGTH);
	rig_up(&l->rig, fpga, fd, 0, 0);
	fcntl(l->rig.map, F_SETFL, O_NONBLOCK);
}

void lent_down(struct lent *l)
{
	rig_down(&l->rig);
	munmap(l->memory, LIAR_LENGTH);
	liar_close(l->fd);
}
