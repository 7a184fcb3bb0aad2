/* SPDX-License-Identifier: MIT */
/* Implements safe.h. */
#include "view/safe.h"

#include <string.h>

#include "base/utf8.h"

/* Code point of the valid character of n bytes at s. */
static uint32_t code_point(const char *s, size_t n)
{
	uint32_t c = (unsigned char)s[0];

	if (n > 1)
		c &= 0x7fu >> n;
	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

static bool harmless(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && /* controls */
	       !(c >= 0x200b && c <= 0x200f) &&         /* zero width, direction marks */
	       !(c >= 0x2028 && c <= 0x202e) &&         /* line separators, overrides */
	       !(c >= 0x2060 && c <= 0x206f) &&         /* isolates and other invisible ones */
	       c != 0x061c && c != 0xfeff;
}

void safe_name(struct buf *b, const char *s, bool ascii)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = strlen(s), n;

	for (size_t i = 0; i < len; i += n) {
		n = utf8_char(s + i, len - i);
		if (n && harmless(code_point(s + i, n)) && (n == 1 || !ascii)) {
			buf_add(b, s + i, n);
			continue;
		}
		if (!n)
			n = 1;
		for (size_t j = i; j < i + n; j++) {
			buf_str(b, "\\x");
			buf_char(b, hex[(unsigned char)s[j] >> 4]);
			buf_char(b, hex[(unsigned char)s[j] & 15]);
		}
	}
}
