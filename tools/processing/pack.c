// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Framing of bitshuffle and of LZ4: 8 bytes, how many there were; 4 bytes, how many a block has;
 * then the blocks, each behind 4 bytes with its size; all big-endian. Blocks of bitshuffle have
 * their bits in planes; up to seven numbers at the end stay as they are.
 */
#include "processing/pack.h"

#include <lz4.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "processing/clones.h"

#define HEADER		12u
#define PREFIX		4u
#define SHUFFLED	8192u		/* bytes of a block, as bitshuffle itself does */
#define PLAIN		(1u << 18)	/* of LZ4 */
#define PIECE		(1u << 18)	/* bytes that a thread takes at a time, at least */
#define BITS		8u
#define LEVEL		1		/* of zstd */

struct rpu_packer {
	enum rpu_packing packing;
	size_t number, bytes;		/* bytes of a number, and of an image */
	size_t block, block_room;	/* bytes, and those that they may become */
	size_t piece, pieces, room;	/* likewise, of a thread at a time */
	int threads;
	struct ZSTD_CCtx_s **zstd;	/* [threads] */
	size_t *packed;			/* [pieces]: bytes */
	uint8_t *data;
};

static void put_be(uint8_t *to, uint64_t value, unsigned int bytes)
{
	while (bytes--) {
		to[bytes] = value;
		value >>= BITS;
	}
}

/* Byte k has bit k of each byte: a matrix of 8 x 8 bits is turned over, in three steps of swaps. */
static inline uint64_t turn(uint64_t x)
{
	uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aa;

	x ^= t ^ (t << 7);
	t = (x ^ (x >> 14)) & 0x0000cccc0000cccc;
	x ^= t ^ (t << 14);
	t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0;
	return x ^ t ^ (t << 28);
}

/* Bit b of number i, of little-endian ones, becomes bit i of plane b. */
static inline __attribute__((always_inline))
void shuffle_any(const uint8_t *from, size_t n, size_t number, uint8_t *to)
{
	uint64_t eight[SHUFFLED / BITS];
	const size_t groups = n / BITS;

	for (size_t byte = 0; byte < number; byte++, to += n) {
		for (size_t i = 0; i < groups; i++) {
			uint64_t x = 0;

			for (unsigned int k = 0; k < BITS; k++)
				x |= (uint64_t)from[(BITS * i + k) * number + byte] << BITS * k;
			eight[i] = turn(x);
		}
		for (unsigned int k = 0; k < BITS; k++) {
			for (size_t i = 0; i < groups; i++)
				to[k * groups + i] = eight[i] >> BITS * k;
		}
	}
}

static CLONES void shuffle(const uint8_t *from, size_t bytes, size_t number, uint8_t *to)
{
	if (number == 1)
		shuffle_any(from, bytes, 1, to);
	else if (number == 2)
		shuffle_any(from, bytes / 2, 2, to);
	else
		shuffle_any(from, bytes / 4, 4, to);
}

/* Its size, and what became of it; how many bytes in all. */
static size_t pack_block(const struct rpu_packer *p, const uint8_t *from, size_t bytes, uint8_t *to)
{
	const size_t room = p->block_room - PREFIX;
	uint8_t planes[SHUFFLED];
	const void *data = from;
	size_t packed;

	if (p->packing != RPU_PACK_LZ4) {
		shuffle(from, bytes, p->number, planes);
		data = planes;
	}
	if (p->packing == RPU_PACK_BITSHUFFLE_ZSTD) {
		packed = ZSTD_compressCCtx(p->zstd[omp_get_thread_num()], to + PREFIX, room, data,
					   bytes, LEVEL);
	} else {
		packed = LZ4_compress_default(data, (char *)to + PREFIX, bytes, room);
		if (p->packing == RPU_PACK_LZ4 && packed >= bytes) {
			memcpy(to + PREFIX, data, bytes);	/* readers know by the size */
			packed = bytes;
		}
	}
	put_be(to, packed, PREFIX);
	return PREFIX + packed;
}

/* bitshuffle's blocks are multiples of eight numbers; the rest follows them. */
static size_t whole_part(const struct rpu_packer *p)
{
	return p->packing == RPU_PACK_LZ4 ? p->bytes : p->bytes - p->bytes % (BITS * p->number);
}

/* Threads pack pieces, each where there is room for it; then pieces are moved together. */
static size_t pack_blocks(struct rpu_packer *p, const uint8_t *image)
{
	const size_t whole = whole_part(p), left = p->bytes - whole;
	uint8_t *to = p->data + HEADER;

	#pragma omp parallel for schedule(dynamic) num_threads(p->threads)
	for (size_t k = 0; k < p->pieces; k++) {
		const size_t end = p->piece * (k + 1) < whole ? p->piece * (k + 1) : whole;
		size_t bytes = 0;

		for (size_t at = p->piece * k; at < end; at += p->block) {
			const size_t n = end - at < p->block ? end - at : p->block;

			bytes += pack_block(p, image + at, n, to + k * p->room + bytes);
		}
		p->packed[k] = bytes;
	}
	for (size_t k = 0; k < p->pieces; k++) {
		memmove(to, p->data + HEADER + k * p->room, p->packed[k]);
		to += p->packed[k];
	}
	memcpy(to, image + whole, left);
	put_be(p->data, p->bytes, 8);
	put_be(p->data + 8, p->block, 4);
	return to + left - p->data;
}

static size_t room_of(enum rpu_packing packing, size_t bytes)
{
	if (packing == RPU_PACK_BITSHUFFLE_ZSTD || packing == RPU_PACK_ZSTD)
		return ZSTD_compressBound(bytes);
	return LZ4_compressBound(bytes);
}

struct rpu_packer *rpu_packer_new(enum rpu_packing packing, size_t number, size_t numbers, int threads)
{
	struct rpu_packer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->packing = packing;
	p->number = number;
	p->bytes = number * numbers;
	if (packing == RPU_PACK_NONE)
		return p;
	p->threads = threads ? threads : omp_get_max_threads();
	p->block = packing == RPU_PACK_ZSTD ? p->bytes : packing == RPU_PACK_LZ4 ? PLAIN : SHUFFLED;
	p->block_room = PREFIX + room_of(packing, p->block);
	p->piece = p->block < PIECE ? PIECE : p->block;
	p->pieces = (whole_part(p) + p->piece - 1) / p->piece;
	p->room = p->piece / p->block * p->block_room;
	p->zstd = calloc(p->threads, sizeof(*p->zstd));
	p->packed = calloc(p->pieces + 1, sizeof(*p->packed));
	p->data = malloc(HEADER + p->pieces * p->room + BITS * number);
	if (!p->zstd || !p->packed || !p->data)
		goto failed;
	for (int i = 0; i < p->threads; i++) {
		if (packing == RPU_PACK_BITSHUFFLE_ZSTD || (packing == RPU_PACK_ZSTD && !i)) {
			p->zstd[i] = ZSTD_createCCtx();
			if (!p->zstd[i])
				goto failed;
		}
	}
	if (packing == RPU_PACK_ZSTD) {
		ZSTD_CCtx_setParameter(*p->zstd, ZSTD_c_compressionLevel, LEVEL);
		/* a library without threads refuses, and works without them */
		ZSTD_CCtx_setParameter(*p->zstd, ZSTD_c_nbWorkers, p->threads);
	}
	return p;
failed:
	rpu_packer_free(p);
	return NULL;
}

void rpu_packer_free(struct rpu_packer *p)
{
	if (!p)
		return;
	for (int i = 0; p->zstd && i < p->threads; i++)
		ZSTD_freeCCtx(p->zstd[i]);
	free(p->zstd);
	free(p->packed);
	free(p->data);
	free(p);
}

const void *rpu_pack(struct rpu_packer *p, const void *image, size_t *bytes)
{
	if (p->packing == RPU_PACK_NONE) {
		*bytes = p->bytes;
		return image;
	}
	if (p->packing != RPU_PACK_ZSTD) {
		*bytes = pack_blocks(p, image);
		return p->data;
	}
	*bytes = ZSTD_compress2(*p->zstd, p->data, p->block_room, image, p->bytes);
	return ZSTD_isError(*bytes) ? NULL : p->data;
}
