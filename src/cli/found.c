/* SPDX-License-Identifier: MIT */
/* Implements found.h. */
#include "cli/found.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/open_view.h"
#include "view/guard.h"
#include "view/segments.h"

const char *const found_state_names[] = {
	[FOUND_LIVE] = "live",   [FOUND_CURRENT] = "current",       [FOUND_STOPPED] = "stopped",
	[FOUND_ENDED] = "ended", [FOUND_UNREADABLE] = "unreadable",
};

static void examine(struct found *f, const struct freshet_view *view)
{
	struct freshet_group root;
	struct freshet_info info;
	int r = freshet_producer_info(view, &f->info), producer = freshet_producer(view);

	if (r == 0)
		r = freshet_root(view, &root);
	if (r == 0)
		r = freshet_info(view, root, &info);
	f->groups = r == 0 ? info.descendants + 1 : 0;
	if (r == 0 || r == -ENOENT) /* passes may have no groups */
		r = freshet_age(view, &f->age_ns);
	if (r < 0 || producer < 0) {
		f->state = FOUND_UNREADABLE;
		f->error = r < 0 ? r : producer;
		return;
	}
	if (producer != FRESHET_ALIVE)
		f->state = FOUND_ENDED;
	else if (freshet_is_live(view))
		f->state = FOUND_LIVE;
	else /* without asking it: such a view knows no socket */
		f->state = open_view_stopped(view, 0) > 0 ? FOUND_STOPPED : FOUND_CURRENT;
}

static int add_directory(const char *directory, struct found **all, size_t *count)
{
	struct segments_list list;
	struct found *more;
	int r = segments_list(directory, &list);

	if (list.more)
		complain(directory, "it holds too many files: not all are looked at");
	if (r < 0 || !list.count)
		return r == -EACCES ? 0 : r;
	more = reallocarray(*all, *count + list.count, sizeof(**all));
	if (!more)
		r = -ENOMEM;
	else
		*all = more;
	for (size_t i = 0; i < list.count && r == 0; i++) {
		struct found *f = &(*all)[(*count)++];
		struct freshet_view *view;

		*f = (struct found){ .state = FOUND_UNREADABLE };
		snprintf(f->file, sizeof(f->file), "%s/%s", directory, list.entry[i].name);
		f->error = segments_attach(&list, i, false, &view);
		if (f->error == 0) {
			guard_begin(view);
			examine(f, view);
			if (guard_end()) {
				f->state = FOUND_UNREADABLE;
				f->error = -EIO;
			}
			freshet_detach(view);
		}
	}
	segments_list_free(&list);
	return r;
}

int found_all(struct found **ret, size_t *count)
{
	char directory[SEGMENTS_DIRECTORIES_MAX][FRESHET_PATH_MAX];
	unsigned n = segments_directories(directory);
	int r = 0;

	*ret = NULL;
	*count = 0;
	for (unsigned i = 0; i < n && r == 0; i++)
		r = add_directory(directory[i], ret, count);
	for (size_t i = 0; i < *count; i++)
		(*ret)[i].name = strrchr((*ret)[i].file, '/') + 1;
	if (r < 0) {
		free(*ret);
		*ret = NULL;
	}
	return r;
}
