// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/shown.h"

#include <stdio.h>
#include <string.h>

/* Controls have no picture, nor have characters that turn the order of others, or hide them. */
static bool has_picture(unsigned int code)
{
	static const struct { unsigned int first, last; } without[] = {
		{ 0, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x61c, 0x61c }, { 0x180e, 0x180e },
		{ 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff }, { 0xfff0, 0xfffb }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		if (code >= without[i].first && code <= without[i].last)
			return false;
	}
	return true;
}

size_t shown_next(const char *text, unsigned int *code, bool *plain)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *c = (const unsigned char *)text;
	size_t n = 2;

	*code = *c;
	*plain = *c < 0x80 && has_picture(*c);
	if (*c < 0x80)
		return 1;
	/* 110xxxxx, 1110xxxx and 11110xxx begin 2, 3 and 4 bytes */
	while (n < 5 && *c >> (7 - n) != (2 << n) - 2)
		n++;
	if (n == 5)
		return 0;
	*code = *c & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		/* also where the text ends */
		if (c[i] >> 6 != 2) {
			*code = *c;
			return 0;
		}
		*code = *code << 6 | (c[i] & 0x3f);
	}
	if (*code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff)) {
		*code = *c;
		return 0;
	}
	*plain = has_picture(*code);
	return n;
}

char *show_text(char *to, size_t size, const char *text)
{
	size_t n = 0, bytes;
	unsigned int code;
	bool plain;

	while (*text) {
		bytes = shown_next(text, &code, &plain);
		if (plain && n + bytes < size) {
			memcpy(to + n, text, bytes);
			n += bytes;
		} else if (!plain && n + strlen("\\xNN") < size) {
			/* the next bytes of the character follow in this loop, each as a byte that is no UTF-8 */
			n += sprintf(to + n, "\\x%02x", (unsigned char)*text);
			bytes = 1;
		} else {
			break;
		}
		text += bytes;
	}
	to[n] = '\0';
	return to;
}

bool is_shown_as_is(const char *text)
{
	size_t bytes;
	unsigned int code;
	bool plain;

	for (; *text; text += bytes) {
		bytes = shown_next(text, &code, &plain);
		if (!plain)
			return false;
	}
	return true;
}
