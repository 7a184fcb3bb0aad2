/* SPDX-License-Identifier: MIT */
/* Implements say.h. */
#include "daemon/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "view/safe.h"

void say(const char *format, ...)
{
	struct buf line _cleanup_(buf_free) = BUF_INIT;
	char text[8192];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	safe_name(&line, text, false);
	buf_char(&line, '\n');
	if (!line.error)
		fwrite(line.data, 1, line.len, stderr);
}
