/* SPDX-License-Identifier: MIT */
/*
 * Implements top_screen.h.
 *
 * Everything is written through put(), which cuts at the window's edge, so that any size of a
 * terminal will do, 1x1 included; what does not fit is left out, least important first.
 */
#include "view/top_screen.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "view/format.h"
#include "view/safe.h"

enum { PLAIN, GREEN, RED, YELLOW, CYAN, TITLE };

static struct {
	SCREEN *term;
	bool colour;
	bool ascii; /* the terminal is not UTF-8 */
	bool help;
	bool typing; /* the filter */
	int page;    /* rows of the table */
} screen;

/* ---- putting text ---- */

static attr_t attribute(int pair)
{
	return screen.colour ? (attr_t)COLOR_PAIR(pair) : A_NORMAL;
}

/* Writes text at (y, x) as far as column `end`; returns the column after it. */
static int put(int y, int x, int end, attr_t attr, const char *text)
{
	mbstate_t state = { 0 };
	size_t left = strlen(text);

	if (end > COLS)
		end = COLS;
	if (y < 0 || y >= LINES)
		return x;
	attrset((int)attr);
	move(y, x < COLS ? x : COLS - 1);
	while (left && x < end) {
		wchar_t wide[2] = { 0 };
		size_t n = mbrtowc(wide, text, left, &state);
		int width;

		if (n == (size_t)-1 || n == (size_t)-2) {
			n = 1;
			wide[0] = L'?';
			memset(&state, 0, sizeof(state));
		}
		width = wcwidth(wide[0]);
		if (width < 0) {
			wide[0] = L'?';
			width = 1;
		}
		if (x + width > end)
			break;
		addwstr(wide);
		x += width;
		text += n;
		left -= n;
	}
	attrset(0);
	return x;
}

/* The same for the contents of a buffer, which is emptied. */
static int put_buf(int y, int x, int end, attr_t attr, struct buf *b)
{
	buf_char(b, '\0');
	x = put(y, x, end, attr, b->error ? "?" : b->data);
	buf_clear(b);
	return x;
}

static void fill(int y, int x, int end, attr_t attr)
{
	for (; x < end && x < COLS; x++)
		put(y, x, end, attr, " ");
}

/* ---- the columns ---- */

#define NAME_WIDTH 24 /* columns that a program's numbers leave for names */

/* The columns that the terminal has room for, the sorted one among them. Gives how many. */
static unsigned fitting(const struct top_model *m, unsigned *ret)
{
	const struct top_columns *columns = top_model_columns(m);
	unsigned n = 0;
	bool reverse;
	int by = top_model_sorted_by(m, &reverse), left = COLS - NAME_WIDTH;

	if (!columns)
		return 0;
	if (by >= 0)
		left -= columns->column[by].width;
	for (unsigned c = 0; c < columns->count; c++) {
		const struct top_column *column = &columns->column[c];

		if (columns->host ? COLS < column->from : (int)c != by && left < column->width)
			continue;
		if ((int)c != by)
			left -= column->width;
		ret[n++] = c;
	}
	return n;
}

/* Looks of one number: what is nothing is dim, what is much or hurts stands out. */
static attr_t looks(const struct top_columns *columns, unsigned c, double number)
{
	enum top_kind kind = columns->column[c].kind;

	if (kind == TOP_TOTAL)
		return 0;
	if (isnan(number) || (kind == TOP_PERCENT ? number < 0.05 : fpclassify(number) == FP_ZERO))
		return A_DIM;
	if (!columns->host)
		return 0;
	if (c == TOP_THROTTLED)
		return attribute(YELLOW) | A_BOLD;
	if (c == TOP_USAGE && number >= 50)
		return A_BOLD;
	return 0;
}

static void draw_titles(const struct top_model *m, int y)
{
	bool reverse;
	int by = top_model_sorted_by(m, &reverse);
	const struct top_columns *columns = top_model_columns(m);
	unsigned shown[TOP_COLUMNS_MAX], n = fitting(m, shown);
	const char *arrow = screen.ascii ? (reverse ? "^" : "v") : (reverse ? "▴" : "▾");
	bool flat = top_model_is_flat(m);
	attr_t attr = screen.colour ? attribute(TITLE) : A_REVERSE;
	char text[64];
	int x = 0;

	fill(y, 0, COLS, attr);
	for (unsigned i = 0; i < n; i++) {
		const struct top_column *c = &columns->column[shown[i]];
		bool sorted = (int)shown[i] == by;

		snprintf(text, sizeof(text), "%*s%s%s", c->width - (int)strlen(c->title) - sorted,
			 "", c->title, sorted ? arrow : "");
		x = put(y, x, COLS, attr | (sorted ? A_BOLD : 0), text);
	}
	if (by == TOP_BY_NAME) /* names are ascending: the arrow says so */
		arrow = screen.ascii ? (reverse ? "v" : "^") : (reverse ? "▾" : "▴");
	snprintf(text, sizeof(text), "  %s%s%s", columns && !columns->host ? "GROUP" : "CGROUP",
		 flat ? " (flat)" : "", by == TOP_BY_NAME ? arrow : "");
	put(y, x, COLS, attr | (by == TOP_BY_NAME ? A_BOLD : 0), text);
}

/* The name of a row, from column x on: lines of the tree, name, what is folded away. */
static int draw_name(const struct top_model *m, size_t row, const struct top_status *status, int y,
		     int x, attr_t attr, bool plain)
{
	size_t n;
	const struct top_group *g = &top_model_groups(m, &n)[top_model_rows(m, &n)[row].group];
	unsigned levels = COLS - x > 20 ? (unsigned)(COLS - x - 16) / 2 : 2;
	char path[FRESHET_PATH_MAX];
	struct buf b = BUF_INIT;
	attr_t name = attr;

	if (g->depth > levels && !top_model_is_flat(m))
		x = put(y, x, COLS, attr | A_DIM, screen.ascii ? "~" : "…");
	top_model_guides(m, row, levels, screen.ascii, &b);
	x = put_buf(y, x, COLS, plain ? attr : attr | A_DIM, &b);
	if (!plain && top_model_filtered(m)[0])
		name |= g->matched ? A_BOLD | attribute(CYAN) : A_DIM;
	if (row == 0 && !top_model_rows(m, &n)[0].group) {
		safe_name(&b, status->root, screen.ascii);
	} else if (top_model_is_flat(m)) {
		top_model_path(m, top_model_rows(m, &n)[row].group, path, sizeof(path));
		safe_name(&b, path[0] ? path : status->root, screen.ascii);
	} else {
		safe_name(&b, g->name, screen.ascii);
	}
	x = put_buf(y, x, COLS, name, &b);
	if (g->folded && g->size > 1 && !top_model_is_flat(m) && !top_model_filtered(m)[0]) {
		buf_printf(&b, " [+%u]", g->size - 1);
		x = put_buf(y, x, COLS, plain ? attr : attr | attribute(CYAN), &b);
	}
	buf_free(&b);
	return x;
}

static void draw_row(const struct top_model *m, size_t row, const struct top_status *status, int y)
{
	size_t n;
	const struct top_group *g = &top_model_groups(m, &n)[top_model_rows(m, &n)[row].group];
	const struct top_columns *columns = top_model_columns(m);
	unsigned shown[TOP_COLUMNS_MAX], count = fitting(m, shown);
	bool selected = row == top_model_selected(m);
	bool plain = selected || status->stale; /* no looks of its own */
	attr_t attr = selected ? A_REVERSE : status->stale ? A_DIM : 0;
	char number[32], text[64];
	int x = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct top_column *c = &columns->column[shown[i]];
		const struct top_cell *cell = &g->cell[shown[i]];

		top_columns_text(c, cell->number, cell->value, number, sizeof(number));
		snprintf(text, sizeof(text), "%*s", c->width, number);
		x = put(y, x, COLS, plain ? attr : attr | looks(columns, shown[i], cell->number),
			text);
	}
	x = put(y, x, COLS, attr, "  ");
	x = draw_name(m, row, status, y, x, attr, plain);
	if (selected)
		fill(y, x, COLS, attr);
}

/* ---- head and foot ---- */

static void draw_head(const struct top_model *m, const struct top_status *status, int y)
{
	const char *dot = screen.ascii ? " - " : " · ";
	struct buf b = BUF_INIT;
	size_t groups;
	int x;

	top_model_groups(m, &groups);
	x = put(y, 0, COLS, A_BOLD | attribute(CYAN), " freshet");
	if (status->stale) {
		x = put(y, x, COLS, 0, "  ");
		buf_printf(&b, " STALE %.0fs ", (double)status->age_ns / 1e9);
		x = put_buf(y, x, COLS, A_REVERSE | A_BOLD | attribute(RED), &b);
		buf_printf(&b, " %s", status->stale);
		x = put_buf(y, x, COLS, A_BOLD | attribute(RED), &b);
	}
	if (status->left_out) {
		x = put(y, x, COLS, 0, dot);
		buf_printf(&b, "%" PRIu64 " group%s without room", status->left_out,
			   status->left_out == 1 ? "" : "s");
		x = put_buf(y, x, COLS, A_BOLD | attribute(RED), &b);
	}
	buf_printf(&b, "%s%s%s%zu group%s%s%s", dot, status->host, dot, groups,
		   groups == 1 ? "" : "s", dot, status->source);
	if (!status->stale)
		buf_printf(&b, "%s%.1f s old", dot, (double)status->age_ns / 1e9);
	put_buf(y, x, COLS, 0, &b);
	buf_free(&b);
}

/* All CPUs of the machine as one bar: user, then system. */
static void draw_meter(const struct top_model *m, const struct top_status *status, int y)
{
	size_t n;
	const struct top_group *g = top_model_groups(m, &n);
	double full = 100.0 * status->cpus, percent = n ? g->cell[TOP_USAGE].number : NAN;
	double user = n ? g->cell[TOP_USER].number : NAN;
	int width = COLS - 40 < 50 ? COLS - 40 : 50, bars, green;
	char text[96], number[32];
	int x;

	format_percent(percent, number, sizeof(number));
	snprintf(text, sizeof(text), " %s%s of %u CPU%s", number, isnan(percent) ? "" : "%",
		 status->cpus, status->cpus == 1 ? "" : "s");
	x = put(y, 0, COLS, 0, " CPU ");
	if (width >= 10) {
		bars = isnan(percent) ? 0 : (int)lround(fmin(percent / full, 1) * width);
		green = isnan(user) || percent <= 0 ? bars
						    : (int)lround(fmin(user / percent, 1) * bars);
		x = put(y, x, COLS, A_BOLD, "[");
		for (int i = 0; i < width; i++)
			x = put(y, x, COLS,
				status->stale ? A_DIM : attribute(i < green ? GREEN : RED),
				i < bars ? "|" : " ");
		x = put(y, x, COLS, A_BOLD, "]");
	}
	put(y, x, COLS, status->stale ? A_DIM : A_BOLD, text);
}

static void draw_foot(const struct top_model *m, int y)
{
	static const char *const keys[][2] = {
		{ "q", "quit" }, { "/", "filter" },  { "space", "fold" }, { "t", NULL },
		{ "s", "sort" }, { "r", "reverse" }, { "h", "help" },
	};
	struct buf b = BUF_INIT;
	int x = 1;

	if (screen.typing || top_model_filtered(m)[0]) {
		x = put(y, x, COLS, A_BOLD | attribute(CYAN), "filter: ");
		safe_name(&b, top_model_filtered(m), screen.ascii);
		x = put_buf(y, x, COLS, A_BOLD, &b);
		if (screen.typing)
			x = put(y, x, COLS, A_REVERSE, " ");
		put(y, x, COLS, A_DIM,
		    screen.typing ? "  enter: keep  esc: clear" : "  esc: clear");
		buf_free(&b);
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		x = put(y, x, COLS, A_BOLD | attribute(CYAN), keys[i][0]);
		x = put(y, x, COLS, 0, " ");
		x = put(y, x, COLS, 0,
			keys[i][1]             ? keys[i][1]
			: top_model_is_flat(m) ? "tree"
					       : "flat");
		x = put(y, x, COLS, 0, "   ");
	}
}

static void draw_help(bool host)
{
	const char *const lines[] = {
		"",
		"  up, down, PgUp, PgDn, Home, End   move",
		"  space, enter   fold or unfold a subtree",
		"  s              sort by the next column",
		"  r              the other way round",
		"  t              tree or flat list",
		"  /              show paths with some text only",
		"  q              quit",
		"",
		host ? "  100% is one CPU. %THR is the time the cgroup was held"
		     : "  /s: a second. %: time a time. P99: 99 of 100 observed",
		host ? "  back by its quota, summed over CPUs. A - has no rate yet."
		     : "  since the last look are at most that. A - has none yet.",
		"",
		"  any key: back",
		"",
	};
	int n = sizeof(lines) / sizeof(lines[0]), width = 61;
	int y = LINES > n ? (LINES - n) / 2 : 0, x = COLS > width ? (COLS - width) / 2 : 0;

	for (int i = 0; i < n; i++) {
		fill(y + i, x, x + width, A_REVERSE);
		put(y + i, x, x + width, A_REVERSE, lines[i]);
	}
}

void top_screen_draw(struct top_model *m, const struct top_status *status)
{
	size_t count, first;
	int y = 0, foot = LINES >= 6;

	erase();
	if (LINES >= 3 || status->stale)
		draw_head(m, status, y++);
	if (LINES >= 8 && (!top_model_columns(m) || top_model_columns(m)->host))
		draw_meter(m, status, y++);
	if (LINES >= 4)
		draw_titles(m, y++);
	screen.page = LINES - y - foot;
	if (screen.page < 1)
		screen.page = 1;
	first = top_model_scroll(m, (size_t)screen.page);
	top_model_rows(m, &count);
	for (int i = 0; i < screen.page && first + (size_t)i < count; i++)
		draw_row(m, first + (size_t)i, status, y + i);
	if (!count && top_model_filtered(m)[0])
		put(y, 2, COLS, A_DIM, "no path has this text");
	if (foot)
		draw_foot(m, LINES - 1);
	if (screen.help)
		draw_help(!top_model_columns(m) || top_model_columns(m)->host);
	refresh();
}

/* ---- keys ---- */

static void type_filter(struct top_model *m, int key)
{
	char text[256];
	size_t len;

	snprintf(text, sizeof(text), "%s", top_model_filtered(m));
	len = strlen(text);
	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		screen.typing = false;
		return;
	}
	if (key == 27) {
		screen.typing = false;
		len = 0;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		while (len && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
			len--;
		len -= !!len;
	} else if (key == 21) { /* ctrl-U */
		len = 0;
	} else if (key >= ' ' && key < 256 && len < sizeof(text) - 1) {
		text[len++] = (char)key;
	}
	text[len] = '\0';
	top_model_filter(m, text);
}

static int obey(struct top_model *m, int key)
{
	bool reverse;
	int by = top_model_sorted_by(m, &reverse);

	switch (key) {
	case 'q':
	case 'Q':
		return -ECANCELED;
	case KEY_UP:
	case 'k':
		top_model_move(m, -1);
		break;
	case KEY_DOWN:
	case 'j':
		top_model_move(m, 1);
		break;
	case KEY_PPAGE:
		top_model_move(m, -screen.page);
		break;
	case KEY_NPAGE:
		top_model_move(m, screen.page);
		break;
	case KEY_HOME:
	case 'g':
		top_model_select(m, 0);
		break;
	case KEY_END:
	case 'G':
		top_model_select(m, SIZE_MAX);
		break;
	case ' ':
	case '\n':
	case '\r':
	case KEY_ENTER:
		top_model_fold(m);
		break;
	case 's':
		/* after the last column the name, then the first again */
		if (top_model_columns(m) && by + 1 == (int)top_model_columns(m)->count)
			by = TOP_BY_NAME - 1;
		top_model_sort(m, by + 1, false);
		break;
	case 'r':
		top_model_sort(m, by, !reverse);
		break;
	case 't':
		top_model_flat(m, !top_model_is_flat(m));
		break;
	case '/':
		screen.typing = true;
		break;
	case 27:
		top_model_filter(m, NULL);
		break;
	case 'h':
	case '?':
	case KEY_F(1):
		screen.help = true;
		break;
	default:
		break;
	}
	return 1;
}

int top_screen_key(struct top_model *m, int timeout_ms)
{
	int key;

	timeout(timeout_ms);
	key = getch();
	if (key == ERR) {
		/* a terminal that is gone answers at once, for ever */
		struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

		return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR | POLLNVAL) ? -ECANCELED
											: 0;
	}
	if (key == KEY_RESIZE)
		return 1;
	if (screen.help) {
		screen.help = false;
		return key == 'q' || key == 'Q' ? -ECANCELED : 1;
	}
	if (screen.typing) {
		type_filter(m, key);
		return 1;
	}
	return obey(m, key);
}

/* ---- the terminal ---- */

int top_screen_open(bool colour)
{
	memset(&screen, 0, sizeof(screen));
	screen.term = newterm(NULL, stdout, stdin);
	if (!screen.term)
		return -ENOTTY;
	screen.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	screen.colour = colour && has_colors();
	if (screen.colour) {
		start_color();
		use_default_colors();
		init_pair(GREEN, COLOR_GREEN, -1);
		init_pair(RED, COLOR_RED, -1);
		init_pair(YELLOW, COLOR_YELLOW, -1);
		init_pair(CYAN, COLOR_CYAN, -1);
		init_pair(TITLE, COLOR_BLACK, COLOR_CYAN);
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	return 0;
}

void top_screen_close(void)
{
	if (!screen.term)
		return;
	endwin();
	delscreen(screen.term);
	screen.term = NULL;
}
