// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: the memories of a stream. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int memory_open(const struct rashpa_stream *s, struct memory *m, const char *name, bool write)
{
	const int prot = write ? PROT_READ | PROT_WRITE : PROT_READ;
	uint64_t length = 0;
	void *base;
	int error;

	*m = (struct memory)MEMORY_NONE;
	m->kind = strchr(name, '/') ? &memory_file : &memory_driver;
	m->node = m->kind->open(name, write);
	if (m->node < 0)
		return m->node;
	error = s ? stream_check_node(s, name, m->node, write) : 0;
	if (error)
		goto close;
	error = m->kind->length(m->node, &length);
	if (!error)
		error = rashpa_mmap(m->node, 0, length, prot, &base);
	if (!error) {
		m->base = base;
		m->length = length;
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
		m->dmabuf = m->kind->dmabuf(m->node);
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
