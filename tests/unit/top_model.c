/* SPDX-License-Identifier: MIT */
/* The model of `freshet top`: passes in, rows out; times are made up. */
#include "view/top_model.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "tap.h"

enum { USAGE, USER, SYSTEM, THROTTLED, NSTATS };

static const struct freshet_stat stats[NSTATS] = {
	[USAGE] = { "cpu", "usage", "usage_usec", "", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0 },
	[USER] = { "cpu", "user", "user_usec", "", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0 },
	[SYSTEM] = { "cpu", "system", "system_usec", "", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0 },
	[THROTTLED] = { "cpu", "throttled", "throttled_usec", "", FRESHET_COUNTER,
			FRESHET_NANOSECONDS, 0 },
};

static struct top_columns columns;

#define MAX 20

/* A tree under construction: groups are added in pre-order. */
struct tree {
	struct freshet_entry entry[MAX];
	uint64_t value[MAX][NSTATS];
	uint32_t count;
	struct top_pass pass;
};

static void begin(struct tree *t, uint64_t pass, uint64_t second)
{
	*t = (struct tree){ 0 };
	t->pass.moment.pass = pass;
	t->pass.moment.begin_ns = second * NSEC_PER_SEC;
	if (!columns.count)
		top_columns_host(stats, NSTATS, &columns);
	t->pass.columns = &columns;
	t->pass.identity[0] = 1;
}

/* usage in ms, two thirds of it user's */
static void add(struct tree *t, uint64_t id, uint32_t parent, const char *name, uint64_t usage_ms)
{
	uint32_t i = t->count++;
	struct freshet_entry *e = &t->entry[i];

	*e = (struct freshet_entry){ .id = id, .parent = parent, .size = 1, .name = name };
	e->present = 1u << USAGE | 1u << USER | 1u << SYSTEM;
	e->values = t->value[i];
	t->value[i][USAGE] = usage_ms * NSEC_PER_MSEC;
	t->value[i][USER] = usage_ms * NSEC_PER_MSEC * 2 / 3;
	t->value[i][SYSTEM] = usage_ms * NSEC_PER_MSEC / 3;
	if (!i)
		return;
	e->depth = t->entry[parent].depth + 1;
	for (uint32_t up = parent;; up = t->entry[up].parent) {
		t->entry[up].size++;
		if (!up)
			break;
	}
}

static int give(struct top_model *m, struct tree *t)
{
	t->pass.entries = t->entry;
	return top_model_pass(m, &t->pass);
}

/* "/ [a [b c] d]": names of the rows in order, with brackets where the depth changes. */
static const char *shown(const struct top_model *m)
{
	static char text[512];
	size_t n, len = 0;
	const struct top_group *groups = top_model_groups(m, &n);
	const struct top_row *rows = top_model_rows(m, &n);
	uint32_t depth = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		const struct top_group *g = &groups[rows[i].group];
		uint32_t now = top_model_is_flat(m) ? 0 : g->depth;

		for (; depth > now; depth--)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "]");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s", i ? " " : "",
					now > depth ? "[" : "", g->name[0] ? g->name : "/");
		depth = now;
	}
	for (; depth; depth--)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "]");
	return text;
}

#define EXPECT_SHOWN(m, wanted) \
	EXPECT(!strcmp(shown(m), wanted), "shown: %s, wanted: %s", shown(m), wanted)

static const struct top_group *group(const struct top_model *m, const char *name)
{
	static struct top_cell no_cell[TOP_HOST_COLUMNS] = { { .number = -1 }, { .number = -1 } };
	static const struct top_group none = { .cell = no_cell };
	size_t n;
	const struct top_group *g = top_model_groups(m, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(g[i].name, name))
			return &g[i];
	return &none;
}

static const char *selected(const struct top_model *m)
{
	size_t n;
	const struct top_row *rows = top_model_rows(m, &n);

	if (!n)
		return "(none)";
	return top_model_groups(m, &(size_t){ 0 })[rows[top_model_selected(m)].group].name;
}

/*
 * /, a [a1, a2], b, c [c1]; from pass 1 at 10 s to pass 2 at 12 s: a1 50 %, a2 10 %, b 90 %,
 * c1 0 %.
 */
static void sample(struct tree *t, int pass)
{
	uint64_t k = pass == 2;

	begin(t, (uint64_t)pass, 10 + 2 * k);
	add(t, 1, 0, "", 9000 + 3000 * k);
	add(t, 10, 0, "a", 3000 + 1200 * k);
	add(t, 11, 1, "a1", 1000 + 1000 * k);
	add(t, 12, 1, "a2", 2000 + 200 * k);
	add(t, 20, 0, "b", 1500 + 1800 * k);
	add(t, 30, 0, "c", 4500);
	add(t, 31, 5, "c1", 4500);
}

static struct top_model *model(void)
{
	struct top_model *m = NULL;
	struct tree t;

	if (top_model_new(&m))
		abort();
	sample(&t, 1);
	give(m, &t);
	sample(&t, 2);
	give(m, &t);
	return m;
}

TEST(no_rate_before_a_second_pass)
{
	struct top_model *m;
	struct tree t;

	REQUIRE(top_model_new(&m) == 0);
	sample(&t, 1);
	EXPECT_EQ(give(m, &t), 1);
	EXPECT(isnan(group(m, "a1")->cell[TOP_USAGE].number));
	EXPECT_EQ(group(m, "a1")->cell[TOP_USAGE].value, 1000 * NSEC_PER_MSEC);
	top_model_free(m);
}

TEST(rates_are_differences_over_the_time_between_passes)
{
	struct top_model *m = model();

	EXPECT(fabs(group(m, "a1")->cell[TOP_USAGE].number - 50) < 1e-9);
	EXPECT(fabs(group(m, "b")->cell[TOP_USAGE].number - 90) < 1e-9);
	EXPECT(fabs(group(m, "b")->cell[TOP_USER].number - 60) < 1e-6);
	EXPECT(fabs(group(m, "b")->cell[TOP_SYSTEM].number - 30) < 1e-6);
	EXPECT(group(m, "c1")->cell[TOP_USAGE].number == 0);
	EXPECT(isnan(group(m, "b")->cell[TOP_THROTTLED].number), "absent is not 0");
	top_model_free(m);
}

TEST(the_same_pass_again_keeps_rates)
{
	struct top_model *m = model();
	struct tree t;

	sample(&t, 2);
	EXPECT_EQ(give(m, &t), 0);
	EXPECT(fabs(group(m, "b")->cell[TOP_USAGE].number - 90) < 1e-9);
	top_model_free(m);
}

/* A pass of b alone, `ms` after 20 s, in which it has used usage_ms. */
static int give_b(struct top_model *m, uint64_t pass, uint64_t ms, uint64_t usage_ms)
{
	struct tree t;

	begin(&t, pass, 20);
	t.pass.moment.begin_ns += ms * NSEC_PER_MSEC;
	add(&t, 1, 0, "", usage_ms);
	add(&t, 20, 0, "b", usage_ms);
	return give(m, &t);
}

/* One tick of 10 ms between two passes 1 ms apart is not ten CPUs. */
TEST(rates_of_passes_close_together_are_held)
{
	struct top_model *m;

	REQUIRE(top_model_new(&m) == 0);
	give_b(m, 1, 0, 1000);
	EXPECT_EQ(give_b(m, 2, 1, 1010), 1);
	EXPECT(isnan(group(m, "b")->cell[TOP_USAGE].number), "no base that old yet");
	EXPECT_EQ(group(m, "b")->cell[TOP_USAGE].value, 1010 * NSEC_PER_MSEC);
	give_b(m, 3, 99, 1040);
	EXPECT(isnan(group(m, "b")->cell[TOP_USAGE].number));

	give_b(m, 4, 100, 1050); /* the base is pass 1 */
	EXPECT(fabs(group(m, "b")->cell[TOP_USAGE].number - 50) < 1e-9, "%f",
	       group(m, "b")->cell[TOP_USAGE].number);
	give_b(m, 5, 101, 1060); /* now it is pass 4 */
	EXPECT(fabs(group(m, "b")->cell[TOP_USAGE].number - 50) < 1e-9, "held: %f",
	       group(m, "b")->cell[TOP_USAGE].number);
	EXPECT_EQ(group(m, "b")->cell[TOP_USAGE].value, 1060 * NSEC_PER_MSEC);
	give_b(m, 6, 101, 1060); /* at the same time */
	EXPECT(fabs(group(m, "b")->cell[TOP_USAGE].number - 50) < 1e-9);
	give_b(m, 7, 225, 1150);
	EXPECT(fabs(group(m, "b")->cell[TOP_USAGE].number - 80) < 1e-9, "%f",
	       group(m, "b")->cell[TOP_USAGE].number);
	top_model_free(m);
}

TEST(a_group_that_came_after_the_base_has_no_rate)
{
	struct top_model *m;
	struct tree t;

	REQUIRE(top_model_new(&m) == 0);
	begin(&t, 1, 20);
	add(&t, 1, 0, "", 0);
	give(m, &t);
	give_b(m, 2, 50, 1000);
	EXPECT(isnan(group(m, "b")->cell[TOP_USAGE].number));
	give_b(m, 3, 150, 1100);
	EXPECT(isnan(group(m, "b")->cell[TOP_USAGE].number));
	give_b(m, 4, 250, 1110);
	EXPECT(fabs(group(m, "b")->cell[TOP_USAGE].number - 10) < 1e-9, "%f",
	       group(m, "b")->cell[TOP_USAGE].number);
	top_model_free(m);
}

TEST(a_restarted_producer_starts_rates_anew_and_keeps_folds)
{
	struct top_model *m = model();
	struct tree t;

	top_model_select(m, 2); /* a */
	EXPECT(!strcmp(selected(m), "a"), "%s", selected(m));
	top_model_fold(m);
	sample(&t, 2);
	t.pass.identity[0] = 2;
	t.pass.moment.pass = 1;
	t.pass.moment.begin_ns += NSEC_PER_SEC;
	EXPECT_EQ(give(m, &t), 1);
	EXPECT(isnan(group(m, "b")->cell[TOP_USAGE].number));
	EXPECT(group(m, "a")->folded);
	EXPECT(!strcmp(selected(m), "a"), "%s", selected(m));
	/* also when the pass number is the same one as before */
	sample(&t, 2);
	t.pass.identity[0] = 3;
	t.pass.moment.pass = 1;
	EXPECT_EQ(give(m, &t), 1);
	top_model_free(m);
}

TEST(a_counter_that_fell_has_no_rate)
{
	struct top_model *m = model();
	struct tree t;

	sample(&t, 1);
	t.pass.moment.pass = 3;
	t.pass.moment.begin_ns = 14 * NSEC_PER_SEC;
	EXPECT_EQ(give(m, &t), 1);
	EXPECT(isnan(group(m, "b")->cell[TOP_USAGE].number));
	EXPECT(group(m, "c")->cell[TOP_USAGE].number == 0);
	top_model_free(m);
}

TEST(groups_appear_without_a_rate_and_vanish)
{
	struct top_model *m = model();
	struct tree t;

	begin(&t, 3, 14);
	add(&t, 1, 0, "", 14000);
	add(&t, 40, 0, "new", 700);
	add(&t, 20, 0, "b", 3300);
	/* the name of a removed group, another group */
	add(&t, 99, 0, "a", 5000);
	EXPECT_EQ(give(m, &t), 1);
	EXPECT(isnan(group(m, "new")->cell[TOP_USAGE].number));
	EXPECT(isnan(group(m, "a")->cell[TOP_USAGE].number));
	EXPECT(group(m, "b")->cell[TOP_USAGE].number == 0);
	/* what has no rate comes last, by name; both ways round */
	EXPECT_SHOWN(m, "/ [b a new]");
	top_model_sort(m, TOP_USAGE, true);
	EXPECT_SHOWN(m, "/ [b a new]");
	top_model_free(m);
}

TEST(trees_sort_siblings)
{
	struct top_model *m = model();
	bool reverse;

	EXPECT_SHOWN(m, "/ [b a [a1 a2] c [c1]]");
	top_model_sort(m, TOP_USAGE, true);
	EXPECT_SHOWN(m, "/ [c [c1] a [a2 a1] b]");
	EXPECT(top_model_sorted_by(m, &reverse) == TOP_USAGE && reverse);
	top_model_sort(m, TOP_TIME, false);
	EXPECT_SHOWN(m, "/ [c [c1] a [a2 a1] b]");
	top_model_sort(m, TOP_BY_NAME, false);
	EXPECT_SHOWN(m, "/ [a [a1 a2] b c [c1]]");
	top_model_sort(m, TOP_BY_NAME, true);
	EXPECT_SHOWN(m, "/ [c [c1] b a [a2 a1]]");
	top_model_free(m);
}

TEST(flat_lists_sort_all)
{
	struct top_model *m = model();

	top_model_flat(m, true);
	EXPECT_SHOWN(m, "/ b a a1 a2 c c1");
	top_model_sort(m, TOP_BY_NAME, false);
	EXPECT_SHOWN(m, "/ a a1 a2 b c c1");
	top_model_filter(m, "/A");
	EXPECT_SHOWN(m, "a a1 a2");
	top_model_sort(m, TOP_USAGE, false);
	EXPECT_SHOWN(m, "a a1 a2");
	top_model_free(m);
}

TEST(folds_hide_descendants_and_follow_the_group)
{
	struct top_model *m = model();
	struct tree t;

	top_model_select(m, 3); /* a1 */
	top_model_fold(m);      /* a leaf: nothing */
	EXPECT_SHOWN(m, "/ [b a [a1 a2] c [c1]]");
	top_model_select(m, 2);
	top_model_fold(m);
	EXPECT_SHOWN(m, "/ [b a c [c1]]");
	sample(&t, 2);
	t.pass.moment.pass = 3;
	t.pass.moment.begin_ns += NSEC_PER_SEC;
	t.value[1][USAGE] += 950 * NSEC_PER_MSEC;
	give(m, &t);
	EXPECT_SHOWN(m, "/ [a b c [c1]]");
	EXPECT(!strcmp(selected(m), "a"), "%s", selected(m));
	top_model_fold(m);
	EXPECT_SHOWN(m, "/ [a [a1 a2] b c [c1]]");
	top_model_select(m, 0);
	top_model_fold(m);
	EXPECT_SHOWN(m, "/");
	top_model_free(m);
}

TEST(filters_keep_ancestors_and_ignore_folds)
{
	struct top_model *m = model();

	top_model_select(m, 2);
	top_model_fold(m);
	top_model_filter(m, "A2");
	EXPECT_SHOWN(m, "/ [a [a2]]");
	EXPECT(group(m, "a2")->matched && !group(m, "a")->matched);
	/* a path's text: what is below matches too */
	top_model_filter(m, "c");
	EXPECT_SHOWN(m, "/ [c [c1]]");
	top_model_filter(m, "nothing");
	EXPECT_SHOWN(m, "");
	top_model_move(m, 1);
	top_model_fold(m);
	EXPECT_EQ(top_model_selected(m), 0);
	top_model_filter(m, NULL);
	EXPECT_SHOWN(m, "/ [b a c [c1]]");
	top_model_free(m);
}

TEST(the_selection_follows_its_group)
{
	struct top_model *m = model();
	struct tree t;

	top_model_select(m, 3);
	EXPECT(!strcmp(selected(m), "a1"), "%s", selected(m));
	top_model_sort(m, TOP_BY_NAME, true);
	EXPECT(!strcmp(selected(m), "a1"), "%s", selected(m));
	top_model_sort(m, TOP_USAGE, false);
	EXPECT_EQ(top_model_selected(m), 3);

	/* its ancestor is folded by another way than itself: a pass brings folds along */
	top_model_select(m, 2);
	top_model_fold(m);
	top_model_fold(m);
	top_model_select(m, 4); /* a2 */
	top_model_filter(m, "a1");
	EXPECT(!strcmp(selected(m), "a"), "hidden: the nearest ancestor, not %s", selected(m));
	top_model_filter(m, NULL);

	/* vanished: the row at its place */
	top_model_select(m, 1);
	EXPECT(!strcmp(selected(m), "b"), "%s", selected(m));
	begin(&t, 3, 14);
	add(&t, 1, 0, "", 14000);
	add(&t, 10, 0, "a", 5000);
	add(&t, 30, 0, "c", 4500);
	give(m, &t);
	EXPECT_SHOWN(m, "/ [a c]");
	EXPECT_EQ(top_model_selected(m), 1);

	/* the last one vanished */
	top_model_select(m, 99);
	EXPECT(!strcmp(selected(m), "c"), "%s", selected(m));
	begin(&t, 4, 15);
	add(&t, 1, 0, "", 14000);
	give(m, &t);
	EXPECT_EQ(top_model_selected(m), 0);
	top_model_move(m, -5);
	EXPECT_EQ(top_model_selected(m), 0);
	top_model_free(m);
}

TEST(scrolling_keeps_the_selection_in_the_window)
{
	struct top_model *m = model(); /* 7 rows */

	EXPECT_EQ(top_model_scroll(m, 3), 0);
	top_model_move(m, 2);
	EXPECT_EQ(top_model_scroll(m, 3), 0);
	top_model_move(m, 1);
	EXPECT_EQ(top_model_scroll(m, 3), 1);
	top_model_move(m, 100);
	EXPECT_EQ(top_model_selected(m), 6);
	EXPECT_EQ(top_model_scroll(m, 3), 4);
	top_model_move(m, -1);
	EXPECT_EQ(top_model_scroll(m, 3), 4);
	EXPECT_EQ(top_model_scroll(m, 1), 5);
	EXPECT_EQ(top_model_scroll(m, 100), 0);
	top_model_move(m, -100);
	EXPECT_EQ(top_model_scroll(m, 1), 0);
	top_model_free(m);
}

TEST(a_subtree_is_a_tree_of_its_own)
{
	struct top_model *m;
	struct tree t;
	char path[64];

	REQUIRE(top_model_new(&m) == 0);
	sample(&t, 1);
	t.pass.first = 1;
	give(m, &t);
	EXPECT_SHOWN(m, "a [a1 a2]");
	top_model_path(m, 2, path, sizeof(path));
	EXPECT(!strcmp(path, "/a2"), "%s", path);
	top_model_path(m, 0, path, sizeof(path));
	EXPECT(!strcmp(path, ""), "%s", path);
	top_model_free(m);
}

TEST(guides_draw_the_tree)
{
	static const char *const wanted[] = { "", "|-", "|-", "| |-", "| `-", "`-", "  `-" };
	struct top_model *m = model();
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < 7; i++) {
		buf_clear(&b);
		top_model_guides(m, i, 99, true, &b);
		buf_char(&b, '\0');
		EXPECT(!strcmp(b.data, wanted[i]), "row %zu: '%s', wanted '%s'", i, b.data,
		       wanted[i]);
	}
	buf_clear(&b);
	top_model_guides(m, 3, 1, true, &b);
	EXPECT(b.len == 2 && !memcmp(b.data, "|-", 2), "the deepest level only");
	buf_free(&b);
	top_model_free(m);
}

/* A path that was cut is not taken for another group's. */
TEST(paths_that_do_not_fit_say_so)
{
	char name[FRESHET_NAME_MAX + 1], path[FRESHET_PATH_MAX];
	struct top_model *m = NULL;
	struct tree t;

	memset(name, 'n', FRESHET_NAME_MAX);
	name[FRESHET_NAME_MAX] = '\0';
	begin(&t, 1, 1);
	add(&t, 1, 0, "", 0);
	for (uint32_t i = 1; i < 18; i++)
		add(&t, 1 + i, i - 1, i == 17 ? "last" : name, 0);
	REQUIRE(top_model_new(&m) == 0 && give(m, &t) == 1);
	top_model_path(m, 15, path, sizeof(path));
	EXPECT(path[0] == '/' && strlen(path) == 15 * 256);
	top_model_path(m, 16, path, sizeof(path));
	EXPECT(!strncmp(path, ".../n", 5) && strlen(path) == 3 + 15 * 256, "%.8s", path);
	top_model_path(m, 17, path, sizeof(path));
	EXPECT(!strncmp(path, ".../n", 5) && !strcmp(path + strlen(path) - 5, "/last"));
	top_model_free(m);
}

TEST(nonsensical_trees_do_no_harm)
{
	struct top_model *m;
	struct tree t;

	REQUIRE(top_model_new(&m) == 0);
	sample(&t, 1);
	t.entry[2].parent = 77; /* not before it */
	t.entry[3].id = 11;     /* twice the same */
	t.entry[4].size = 1000; /* beyond the end */
	t.entry[5].depth = 0;
	give(m, &t);
	sample(&t, 2);
	t.entry[1].size = 0;
	t.entry[6].parent = 6;
	t.pass.moment.pass = 9;
	give(m, &t);
	top_model_flat(m, true);
	top_model_sort(m, TOP_BY_NAME, false);
	top_model_filter(m, "1");
	top_model_flat(m, false);
	EXPECT(strlen(shown(m)) < 100);
	top_model_free(m);
}

TEST(an_empty_model_answers)
{
	struct top_model *m;
	size_t n;

	REQUIRE(top_model_new(&m) == 0);
	top_model_rows(m, &n);
	EXPECT_EQ(n, 0);
	top_model_sort(m, TOP_TIME, true);
	top_model_filter(m, "x");
	top_model_fold(m);
	top_model_move(m, 1);
	EXPECT_EQ(top_model_selected(m), 0);
	EXPECT_EQ(top_model_scroll(m, 0), 0);
	top_model_free(m);
}

TAP_MAIN
