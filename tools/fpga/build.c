// SPDX-License-Identifier: LGPL-2.1-or-later
/* BUILD_ID of the board: the program's build ID, a note written by the linker. */
#include "fpga/fpga.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#define ALIGNED(n)	(((n) + 3u) & ~3u)

/* Find the note in one segment of notes. */
static void find(struct fpga *fpga, const uint8_t *note, size_t size)
{
	ElfW(Nhdr) head;

	while (size >= sizeof(head)) {
		const uint8_t *name = note + sizeof(head), *id;
		size_t length;

		memcpy(&head, note, sizeof(head));
		id = name + ALIGNED(head.n_namesz);
		length = sizeof(head) + ALIGNED(head.n_namesz) + ALIGNED(head.n_descsz);
		if (length > size)
			return;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
		    !memcmp(name, ELF_NOTE_GNU, 4))
			memcpy(fpga->build_id, id, head.n_descsz < sizeof(fpga->build_id) ?
			       head.n_descsz : sizeof(fpga->build_id));
		note += length;
		size -= length;
	}
}

/* The first object is the program. */
static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			find(data, (const uint8_t *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			     info->dlpi_phdr[i].p_memsz);
	return 1;
}

void build_init(struct fpga *fpga)
{
	dl_iterate_phdr(look, fpga);
}
