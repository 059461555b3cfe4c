// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: the memories of a stream. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int memory_open(const struct rashpa_stream *s, struct memory *m, const char *name, bool write)
{
	const int prot = write ? PROT_READ | PROT_WRITE : PROT_READ;
	struct rashpa_info info = { .fd = -1 };
	void *base;
	int error;

	*m = (struct memory)MEMORY_NONE;
	m->node = rashpa_buffer_open(name, write ? O_RDWR : O_RDONLY);
	if (m->node < 0)
		return m->node;
	error = s ? stream_check_node(s, name, m->node, write) : 0;
	if (error)
		goto close;
	error = rashpa_memory_get_info(m->node, &info);
	if (!error)
		error = rashpa_mmap(m->node, 0, info.out_length, prot, &base);
	if (!error) {
		m->base = base;
		m->length = info.out_length;
		return 0;
	}
	librashpa_prefix(error, "buffer %s: ", name);
close:
	memory_close(m);
	return error;
}

int memory_dmabuf(struct memory *m)
{
	if (m->dmabuf < 0)
		m->dmabuf = rashpa_buffer_dmabuf(m->node);
	return m->dmabuf;
}

void memory_close(struct memory *m)
{
	if (m->base)
		munmap(m->base, m->length);
	if (m->dmabuf >= 0)
		close(m->dmabuf);
	if (m->node >= 0)
		close(m->node);
	*m = (struct memory)MEMORY_NONE;
}
