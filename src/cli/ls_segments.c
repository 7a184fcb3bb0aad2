/* SPDX-License-Identifier: MIT */
/* freshet ls --segments: the segments that there are, whose they are, and whether they live. */
#include "cli/ls_segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/found.h"
#include "cli/open_view.h"
#include "cli/options.h"
#include "view/json.h"
#include "view/safe.h"
#include "view/segments.h"

static void add_text(struct buf *b, const struct found *all, size_t count)
{
	int width = 4;

	for (size_t i = 0; i < count; i++)
		if ((int)strlen(all[i].name) > width)
			width = (int)strlen(all[i].name);
	if (count)
		buf_printf(b, "%-*s  %-10s  %6s  %s\n", width, "NAME", "STATE", "GROUPS",
			   "PRODUCER");
	for (size_t i = 0; i < count; i++) {
		const struct found *f = &all[i];

		buf_printf(b, "%-*s  %-10s  ", width, f->name, found_state_names[f->state]);
		if (f->state == FOUND_UNREADABLE) {
			buf_printf(b, "%6s  %s: %s\n", "-", f->file, segments_error(f->error));
			continue;
		}
		buf_printf(b, "%6u  ", f->groups);
		safe_name(b, f->info.name, false);
		buf_printf(b, ", pid %d", (int)f->info.pid);
		if (f->state == FOUND_CURRENT || f->state == FOUND_STOPPED)
			buf_printf(b, ", %.1f s old", (double)f->age_ns / 1e9);
		if (f->info.overflowed)
			buf_printf(b, ", %llu groups without room",
				   (unsigned long long)f->info.overflowed);
		buf_char(b, '\n');
	}
}

static void add_json(struct buf *b, const struct found *all, size_t count)
{
	buf_str(b, "{\"segments\":[");
	for (size_t i = 0; i < count; i++) {
		const struct found *f = &all[i];

		buf_str(b, i ? ",\n{\"name\":" : "\n{\"name\":");
		json_string(b, f->name);
		buf_str(b, ",\"file\":");
		json_string(b, f->file);
		buf_printf(b, ",\"state\":\"%s\"", found_state_names[f->state]);
		if (f->state == FOUND_UNREADABLE) {
			buf_str(b, ",\"why\":");
			json_string(b, segments_error(f->error));
		} else {
			buf_str(b, ",\"producer\":");
			json_string(b, f->info.name);
			buf_printf(b,
				   ",\"pid\":%d,\"groups\":%u,\"max_groups\":%u,\"left_out\":%llu,"
				   "\"age_us\":%llu",
				   (int)f->info.pid, f->groups, f->info.max_groups,
				   (unsigned long long)f->info.overflowed,
				   (unsigned long long)f->age_ns / 1000);
		}
		buf_char(b, '}');
	}
	buf_str(b, "\n]}\n");
}

int ls_segments(bool json)
{
	struct found *all _free_ = NULL;
	struct buf b _cleanup_(buf_free) = BUF_INIT;
	size_t count;
	int r = found_all(&all, &count);

	if (r < 0)
		return complain("segments", strerror(-r));
	(json ? add_json : add_text)(&b, all, count);
	if (b.error)
		return complain("segments", strerror(-b.error));
	if (b.len)
		fwrite(b.data, 1, b.len, stdout);
	return options_written();
}
