/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One access to a register that is mapped, of 1, 2, 4 or 8 bytes, wherever it is. */
#ifndef WORDS_H
#define WORDS_H

#include <stdint.h>

static inline uint64_t word_read(const volatile void *at, unsigned int size)
{
	switch (size) {
	case 1: return *(const volatile uint8_t *)at;
	case 2: return *(const volatile uint16_t *)at;
	case 4: return *(const volatile uint32_t *)at;
	default: return *(const volatile uint64_t *)at;
	}
}

static inline void word_write(volatile void *at, uint64_t value, unsigned int size)
{
	switch (size) {
	case 1:
		*(volatile uint8_t *)at = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)at = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)at = value;
	}
}

#endif /* WORDS_H */
