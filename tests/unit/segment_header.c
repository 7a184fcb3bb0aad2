/* SPDX-License-Identifier: MIT */
/* The public header compiles alone (as C11 and, by segment_header.cpp, as C++17), and the library
 * exports every function that it declares. */
#include <freshet/freshet.h>

typedef void function(void);

static function *const all[] = {
#define F(name) (function *)freshet_##name
	F(attach), F(attach_fd), F(detach), F(producer), F(reattach), F(stats), F(stat_index),
	F(producer_info), F(root), F(find), F(children), F(info), F(path), F(read_total),
	F(last_pass), F(age), F(refresh), F(snapshot_new), F(snapshot_free), F(snapshot_take),
	F(snapshot_count), F(snapshot_entries), F(snapshot_moment), F(snapshot_find),
	F(snapshot_path), F(snapshot_limit), F(snapshot_memory), F(mapping), F(read), F(histograms),
	F(read_histogram), F(buckets), F(bucket_upper),
	F(quantile), F(is_live), F(place), F(open), F(close), F(backend), F(view_of), F(tree_root),
	F(create), F(lookup), F(remove), F(flush), F(add), F(add_set), F(observe),
};

int main(void)
{
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!all[i])
			return 1;
	return 0;
}
