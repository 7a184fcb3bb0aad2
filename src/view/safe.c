/* SPDX-License-Identifier: MIT */
/* Implements safe.h. */
#include "view/safe.h"

#include <string.h>

/* Bytes of the valid UTF-8 character at s (NUL-terminated) and its code point; 0: not valid. */
static unsigned decode(const unsigned char *s, uint32_t *ret)
{
	unsigned len = s[0] < 0x80   ? 1
		       : s[0] < 0xc2 ? 0
		       : s[0] < 0xe0 ? 2
		       : s[0] < 0xf0 ? 3
		       : s[0] < 0xf5 ? 4
				     : 0;
	uint32_t c = s[0];

	if (len > 1)
		c &= 0x7fu >> len;
	for (unsigned i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* overlong, surrogates, beyond the end */
	if ((len == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
	    (len == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	*ret = c;
	return len;
}

static bool harmless(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && /* controls */
	       !(c >= 0x200b && c <= 0x200f) &&		/* zero width, direction marks */
	       !(c >= 0x2028 && c <= 0x202e) &&		/* line separators, embeddings, overrides */
	       !(c >= 0x2060 && c <= 0x206f) &&		/* isolates and other invisible ones */
	       c != 0x61c && c != 0xfeff;
}

void safe_name(struct buf *b, const char *s, bool ascii)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = (const unsigned char *)s;

	while (*p) {
		uint32_t c = 0;
		unsigned len = decode(p, &c);

		if (len && harmless(c) && (len == 1 || !ascii)) {
			buf_add(b, p, len);
			p += len;
			continue;
		}
		for (unsigned i = 0; i < (len ? len : 1); i++) {
			buf_str(b, "\\x");
			buf_char(b, hex[*p >> 4]);
			buf_char(b, hex[*p++ & 15]);
		}
	}
}
