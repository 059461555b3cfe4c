// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=off seconds=3 */
/* test: needs=bounce kernel=6.12 iommu=off seconds=3 */
/*
 * Another driver, vgem, imports our dma-buf. The tests also cover operations that fail on some
 * kernels.
 */
#include <drm/drm.h>
#include <drm/drm_mode.h>
#include <linux/dma-buf.h>

#include "common.h"

#define LEN	(8 * MIB)

/* The node of vgem, or -1. */
static int vgem_open(void)
{
	struct drm_version v;
	char path[32], name[16];
	int i, fd;

	for (i = 0; i < 16; i++) {
		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		v = (struct drm_version) { .name = name, .name_len = sizeof(name) };
		if (!ioctl(fd, DRM_IOCTL_VERSION, &v) && v.name_len == 4 &&
		    !memcmp(name, "vgem", 4))
			return fd;
		close(fd);
	}
	return -1;
}

/* Handle of @dmabuf in @vgem, 0 with errno set on failure. */
static uint32_t import(int vgem, int dmabuf)
{
	struct drm_prime_handle p = { .fd = dmabuf };

	return ioctl(vgem, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p) ? 0 : p.handle;
}

static int export(int vgem, uint32_t handle)
{
	struct drm_prime_handle p = { .handle = handle, .flags = DRM_CLOEXEC | DRM_RDWR };

	return ioctl(vgem, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p) ? -errno : p.fd;
}

static int gem_close(int vgem, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	return ioctl(vgem, DRM_IOCTL_GEM_CLOSE, &c) ? -errno : 0;
}

static unsigned int importers(int fd)
{
	struct rashpa_info info;

	return ANSWERED(buffer_info(fd, &info), 0, NULL) ? info.out_importers : ~0U;
}

static ino_t inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static int vgem = -1;

TEST(import, "vgem imports a buffer, and is counted until it lets go")
{
	int fd = buffer_alloc(LEN, NULL);
	uint32_t handle;

	REQUIRE(importers(fd) == 0, "an importer before the import");
	handle = import(vgem, fd);
	if (CHECK(handle, "PRIME_FD_TO_HANDLE: %s", strerror(errno))) {
		CHECK(importers(fd) == 1, "%u importers", importers(fd));
		CHECK(!gem_close(vgem, handle), "GEM_CLOSE fails");
	}
	CHECK(importers(fd) == 0, "%u importers after GEM_CLOSE", importers(fd));
	close(fd);
}

TEST(twice, "two importers are counted; a closed file lets go")
{
	int fd = buffer_alloc(LEN, NULL), second = vgem_open();
	uint32_t a = import(vgem, fd), b = import(second, fd);

	CHECK(a && b, "PRIME_FD_TO_HANDLE: %s", strerror(errno));
	CHECK(importers(fd) == 2, "%u importers", importers(fd));
	close(second);
	CHECK(importers(fd) == 1, "%u importers when one file is closed", importers(fd));
	gem_close(vgem, a);
	CHECK(importers(fd) == 0, "%u importers in the end", importers(fd));
	close(fd);
}

TEST(export, "vgem exports our dma-buf again, with our memory")
{
	int fd = buffer_alloc(LEN, NULL), again;
	uint32_t handle = import(vgem, fd);
	void *p, *q;

	REQUIRE(handle, "PRIME_FD_TO_HANDLE: %s", strerror(errno));
	again = export(vgem, handle);
	REQUIRE(again >= 0, "PRIME_HANDLE_TO_FD: %s", strerror(-again));
	CHECK(inode(again) == inode(fd), "vgem hands out another dma-buf");
	p = map_fd(fd, LEN);
	q = map_fd(again, LEN);
	fill(p, LEN, 41);
	CHECK(filled(q, LEN, 41), "the dma-buf of vgem shows other memory");
	fill(q, LEN, 42);
	CHECK(filled(p, LEN, 42), "data written to the dma-buf of vgem are not seen");
	munmap(p, LEN);
	unmap_fd(q, LEN, again);
	gem_close(vgem, handle);
	CHECK(importers(fd) == 0, "%u importers in the end", importers(fd));
	close(fd);
}

/* No kernel up to 7.3 maps an import through DRM's own node: mmap the dma-buf. */
TEST(map_dumb, "the node of vgem maps no import")
{
	struct drm_mode_map_dumb m = {};
	int fd = buffer_alloc(LEN, NULL);

	m.handle = import(vgem, fd);
	CHECK(m.handle, "PRIME_FD_TO_HANDLE: %s", strerror(errno));
	CHECK(ioctl(vgem, DRM_IOCTL_MODE_MAP_DUMB, &m) && errno == EINVAL,
	      "MAP_DUMB: %s", strerror(errno));
	gem_close(vgem, m.handle);
	close(fd);
}

TEST(named, "a name stays while vgem holds the buffer")
{
	int fd = buffer_alloc(LEN, "st-foreign");
	uint32_t handle = import(vgem, fd);

	CHECK(handle, "PRIME_FD_TO_HANDLE: %s", strerror(errno));
	close(fd);
	ANSWERED(buffer_remove("st-foreign"), EBUSY, "st-foreign|1 device");
	gem_close(vgem, handle);
	ANSWERED(buffer_remove("st-foreign"), 0, NULL);
}

/* The buffer's only holder is vgem; its memory comes back with the handle. */
TEST(outlives_fd, "a buffer that only vgem holds lives")
{
	u64 before = bytes_allocated();
	int fd = buffer_alloc(LEN, NULL), again;
	uint32_t handle = import(vgem, fd);
	void *p = map_fd(fd, LEN), *q;

	REQUIRE(handle, "PRIME_FD_TO_HANDLE: %s", strerror(errno));
	fill(p, LEN, 43);
	unmap_fd(p, LEN, fd);
	CHECK(bytes_allocated() == before + LEN, "memory was given back under an importer");
	again = export(vgem, handle);
	q = again < 0 ? NULL : map_fd(again, LEN);
	if (CHECK(q, "PRIME_HANDLE_TO_FD: %s", strerror(-again))) {
		CHECK(filled(q, LEN, 43), "the content is lost");
		munmap(q, LEN);
	}
	close(again);
	gem_close(vgem, handle);
	CHECK(bytes_allocated() == before, "the memory did not come back");
}

TEST(cma, "vgem imports CMA memory")
{
	struct rashpa_alloc a = { HEAD(a), .length = LEN, .backend = RASHPA_BACKEND_CMA };
	int err = call(memory, RASHPA_IOC_ALLOC, &a);
	uint32_t handle;

	if (!cma_here()) {
		ANSWERED(err, EOPNOTSUPP, "CMA");
		return;
	}
	REQUIRE(!err, "ALLOC: %s", reason);
	handle = import(vgem, a.out_fd);
	CHECK(handle, "PRIME_FD_TO_HANDLE: %s", strerror(errno));
	CHECK(importers(a.out_fd) == 1, "%u importers", importers(a.out_fd));
	gem_close(vgem, handle);
	CHECK(importers(a.out_fd) == 0, "%u importers in the end", importers(a.out_fd));
	close(a.out_fd);
}

static int sync_of(int fd, u64 flags)
{
	struct dma_buf_sync sync = { flags | DMA_BUF_SYNC_RW };

	return ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) ? -errno : 0;
}

/*
 * Where all DMA is copied (swiotlb=force), an importer that maps has a bounce buffer, with the
 * data of its device. A process that holds another dma-buf gets to see those data.
 */
TEST(sync, "CPU access through another dma-buf than that of vgem")
{
	char line[1024] = "";
	bool copied = read_text("/proc/cmdline", line, sizeof(line)) &&
		      strstr(line, "swiotlb=force");
	int fd = buffer_alloc(PAGE, "st-foreign");
	char *p = map_fd(fd, PAGE);
	int other = buffer_open("st-foreign", O_RDWR);
	uint32_t handle;

	REQUIRE(other >= 0 && tap_ok(), "no memory");
	fill(p, PAGE, 1);
	handle = import(vgem, fd);
	CHECK(handle, "PRIME_FD_TO_HANDLE: %s", strerror(errno));
	fill(p, PAGE, 2);
	CHECK(!sync_of(other, DMA_BUF_SYNC_START), "start");
	CHECK(filled(p, PAGE, copied ? 1 : 2), "the data of the device are not seen");
	fill(p, PAGE, 3);
	CHECK(!sync_of(other, DMA_BUF_SYNC_END), "end");
	fill(p, PAGE, 4);
	CHECK(!sync_of(fd, DMA_BUF_SYNC_START), "start");
	CHECK(filled(p, PAGE, copied ? 3 : 4), "the device has not got the data");
	CHECK(!sync_of(fd, DMA_BUF_SYNC_END), "end");
	gem_close(vgem, handle);
	munmap(p, PAGE);
	close(other);
	buffer_end(fd, "st-foreign");
}

void setup(void)
{
	vgem = system("modprobe -q vgem") ? -1 : vgem_open();
	if (vgem < 0)
		tap_skip_all("this kernel has no vgem");
}
