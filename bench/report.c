/* SPDX-License-Identifier: MIT */
/* Implements report.h. */
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "view/json.h"

#define MAX_ROWS   2048
#define MAX_VALUES 32
#define MAX_ARRAY  16
#define MAX_LINES  128
#define MAX_POINTS 64
#define MAX_BARS   32
#define MAX_NOTES  64

struct value {
	const char *key;
	const char *text; /* NULL: numbers */
	double number[MAX_ARRAY];
	int count; /* of them; 0: one, which is no array */
	int decimals;
};

struct row {
	struct value value[MAX_VALUES];
	int count;
};

struct line {
	const char *plot, *name;
	double x[MAX_POINTS], y[MAX_POINTS];
	int count;
};

struct bar {
	char what[120];
	const char *unit;
	double value, limit;
	enum report_bar kind;
};

static struct {
	const char *bench;
	char cpu[128], kernel[136];
	long cpus, possible;
	double load;   /* average, of a minute */
	double in_use; /* CPUs, just before */
	struct row row[MAX_ROWS];
	int rows;
	const char *const *group; /* of rows, for tables; NULL: one table with all columns */
	const struct report_table *tables;
	int ntables;
	struct line line[MAX_LINES];
	int lines;
	struct bars {
		struct bar bar[MAX_BARS];
		int count;
	} bars, checks;
	char note[MAX_NOTES][320];
	int notes;
	struct buf picture;
} report;

/* What stands behind "model name" in /proc/cpuinfo; other architectures name it otherwise. */
static void cpu_model(char *ret, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(ret, size, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (!value || strncmp(line, "model name", 10) != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(ret, size, "%s", value + 1 + strspn(value + 1, " "));
		break;
	}
	if (f)
		fclose(f);
}

/* Ticks that all CPUs together have worked, for others' machines too. */
static double worked_ticks(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
	FILE *f = fopen("/proc/stat", "re");
	int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
			   &idle, &iowait, &irq, &softirq, &steal)
		  : 0;

	if (f)
		fclose(f);
	return n == 8 ? (double)(user + nice + system + irq + softirq + steal) : (double)NAN;
}

/* During half a second. Not the load average, which a bench before this one would still be in. */
static double cpus_in_use(void)
{
	const struct timespec half = { .tv_nsec = 500 * 1000 * 1000 };
	double before = worked_ticks();

	nanosleep(&half, NULL);
	return (worked_ticks() - before) * 2 / (double)sysconf(_SC_CLK_TCK);
}

void report_begin(const char *bench, bool measures)
{
	struct utsname u = { 0 };

	uname(&u);
	report.bench = bench;
	snprintf(report.kernel, sizeof(report.kernel), "%s %s", u.release, u.machine);
	cpu_model(report.cpu, sizeof(report.cpu));
	report.cpus = sysconf(_SC_NPROCESSORS_ONLN);
	report.possible = sysconf(_SC_NPROCESSORS_CONF);
	if (getloadavg(&report.load, 1) != 1)
		report.load = (double)NAN;
	report.in_use = measures ? cpus_in_use() : 0;
	if (measures && report.in_use > 0.2 * (double)report.cpus)
		fprintf(stderr,
			"freshet-bench: this machine is busy (%.2f of %ld CPUs in use): "
			"absolute figures will be too high\n",
			report.in_use, report.cpus);
}

void report_row(void)
{
	if (report.rows == MAX_ROWS)
		abort(); /* no bench has as many */
	report.rows++;
}

static struct value *next_value(const char *key)
{
	struct row *r = &report.row[report.rows - 1];

	if (r->count == MAX_VALUES)
		abort();
	r->value[r->count].key = key;
	return &r->value[r->count++];
}

void report_text(const char *key, const char *value)
{
	next_value(key)->text = value;
}

void report_number(const char *key, double value, int decimals)
{
	struct value *v = next_value(key);

	v->number[0] = value;
	v->decimals = decimals;
}

void report_tables(const char *const *group, const struct report_table *tables, int count)
{
	report.group = group;
	report.tables = tables;
	report.ntables = count;
}

void report_numbers(const char *key, const double *values, int count, int decimals)
{
	struct value *v = next_value(key);

	if (count > MAX_ARRAY)
		abort();
	memcpy(v->number, values, (size_t)count * sizeof(*values));
	v->count = count;
	v->decimals = decimals;
}

void report_line(const char *plot, const char *name, const double *x, const double *y, int count)
{
	struct line *l = &report.line[report.lines];

	if (report.lines++ == MAX_LINES || count > MAX_POINTS)
		abort();
	l->plot = plot;
	l->name = name;
	memcpy(l->x, x, (size_t)count * sizeof(*x));
	memcpy(l->y, y, (size_t)count * sizeof(*y));
	l->count = count;
}

__attribute__((format(printf, 6, 0))) static void add_bar(struct bars *to, enum report_bar kind,
							  double value, double limit,
							  const char *unit, const char *what,
							  va_list ap)
{
	struct bar *b = &to->bar[to->count];

	if (to->count++ == MAX_BARS)
		abort();
	vsnprintf(b->what, sizeof(b->what), what, ap);
	b->kind = kind;
	b->value = value;
	b->limit = limit;
	b->unit = unit;
}

void report_bar(enum report_bar kind, double value, double limit, const char *unit,
		const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	add_bar(&report.bars, kind, value, limit, unit, what, ap);
	va_end(ap);
}

void report_check(enum report_bar kind, double value, double limit, const char *unit,
		  const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	add_bar(&report.checks, kind, value, limit, unit, what, ap);
	va_end(ap);
}

void report_note(const char *format, ...)
{
	va_list ap;

	if (report.notes == MAX_NOTES)
		abort();
	va_start(ap, format);
	vsnprintf(report.note[report.notes++], sizeof(report.note[0]), format, ap);
	va_end(ap);
}

void report_picture(struct buf *text)
{
	report.picture = *text;
	*text = (struct buf)BUF_INIT;
}

static bool bar_met(const struct bar *b)
{
	return b->kind == BAR_BELOW ? b->value < b->limit : b->value >= b->limit;
}

static void print_number(struct buf *out, double number, int decimals, bool json)
{
	if (isfinite(number))
		buf_printf(out, "%.*f", decimals, number);
	else
		buf_str(out, json ? "null" : "-");
}

static void print_value(struct buf *out, const struct value *v, bool json)
{
	if (v->text && json) {
		json_string(out, v->text);
	} else if (v->text) {
		buf_str(out, v->text);
	} else if (v->count == 0) {
		print_number(out, v->number[0], v->decimals, json);
	} else {
		for (int i = 0; i < v->count; i++) {
			buf_str(out, i ? "," : json ? "[" : "");
			print_number(out, v->number[i], v->decimals, json);
		}
		if (json)
			buf_char(out, ']');
	}
}

/* ---- JSON ---- */

static void print_lines(struct buf *out)
{
	buf_str(out, "],\n\"lines\":[");
	for (int i = 0; i < report.lines; i++) {
		const struct line *l = &report.line[i];

		buf_str(out, i ? ",\n{\"plot\":" : "\n{\"plot\":");
		json_string(out, l->plot);
		buf_str(out, ",\"line\":");
		json_string(out, l->name);
		buf_str(out, ",\"points\":[");
		for (int k = 0, printed = 0; k < l->count; k++)
			if (isfinite(l->x[k]) && isfinite(l->y[k]))
				buf_printf(out, "%s[%.6g,%.6g]", printed++ ? "," : "", l->x[k],
					   l->y[k]);
		buf_str(out, "]}");
	}
}

/* The array called name + "s" that follows another. */
static void print_bars(struct buf *out, const struct bars *bars, const char *name)
{
	buf_printf(out, "],\n\"%ss\":[", name);
	for (int i = 0; i < bars->count; i++) {
		const struct bar *b = &bars->bar[i];

		buf_printf(out, "%s{\"%s\":", i ? ",\n" : "\n", name);
		json_string(out, b->what);
		buf_str(out, ",\"value\":");
		print_number(out, b->value, 3, true);
		buf_printf(out, ",\"%s\":%g,\"unit\":", b->kind == BAR_BELOW ? "below" : "at_least",
			   b->limit);
		json_string(out, b->unit);
		buf_printf(out, ",\"met\":%s}", bar_met(b) ? "true" : "false");
	}
}

static void print_json(struct buf *out)
{
	buf_printf(out, "{\"bench\":\"%s\",\"machine\":{\"cpu\":", report.bench);
	json_string(out, report.cpu);
	buf_printf(out, ",\"cpus\":%ld,\"possible_cpus\":%ld,\"kernel\":", report.cpus,
		   report.possible);
	json_string(out, report.kernel);
	buf_str(out, ",\"load\":");
	print_number(out, report.load, 2, true);
	buf_str(out, ",\"cpus_in_use\":");
	print_number(out, report.in_use, 2, true);
	buf_str(out, "},\"rows\":[");
	for (int i = 0; i < report.rows; i++) {
		const struct row *r = &report.row[i];

		for (int k = 0; k < r->count; k++) {
			buf_str(out, k ? "," : i ? ",\n{" : "\n{");
			json_string(out, r->value[k].key);
			buf_char(out, ':');
			print_value(out, &r->value[k], true);
		}
		buf_char(out, '}');
	}
	print_lines(out);
	print_bars(out, &report.bars, "bar");
	print_bars(out, &report.checks, "check");
	buf_str(out, "],\n\"notes\":[");
	for (int i = 0; i < report.notes; i++) {
		buf_str(out, i ? ",\n" : "\n");
		json_string(out, report.note[i]);
	}
	buf_str(out, "]}\n");
}

/* ---- tables ---- */

static bool same_keys(const struct row *a, const struct row *b)
{
	if (a->count != b->count)
		return false;
	for (int k = 0; k < a->count; k++)
		if (strcmp(a->value[k].key, b->value[k].key) != 0)
			return false;
	return true;
}

#define TEXT_WIDTH 16 /* at least */

static int longest_text(void)
{
	size_t longest = TEXT_WIDTH;

	for (const struct row *r = report.row; r < report.row + report.rows; r++)
		for (int k = 0; k < r->count; k++)
			if (r->value[k].text && strlen(r->value[k].text) > longest)
				longest = strlen(r->value[k].text);
	return (int)longest;
}

/* Texts to the left, numbers to the right, two spaces between. */
static void print_cell(struct buf *out, const struct value *v, int k, bool key, int text_width)
{
	struct buf text = BUF_INIT;
	int width = (int)strlen(v->key) > 8 ? (int)strlen(v->key) : 8;

	if (v->text)
		width = text_width;
	if (key)
		buf_str(&text, v->key);
	else
		print_value(&text, v, false);
	buf_printf(out, "%s%*.*s", k ? "  " : "", v->text ? -width : width, (int)text.len,
		   text.data ? text.data : "");
	buf_free(&text);
}

static void print_bar_lines(struct buf *out, const struct bars *bars, const char *met,
			    const char *not_met, const char *limit)
{
	for (int i = 0; i < bars->count; i++) {
		const struct bar *b = &bars->bar[i];

		buf_printf(out, "%-*s  %-52s %.4g%s (%s: %s %g%s)\n", (int)strlen(not_met),
			   bar_met(b) ? met : not_met, b->what, b->value, b->unit, limit,
			   b->kind == BAR_BELOW ? "below" : "at least", b->limit, b->unit);
	}
}

/* One table, or another one where the keys change. */
static void print_rows(struct buf *out)
{
	for (int i = 0; i < report.rows; i++) {
		const struct row *r = &report.row[i];

		if (i == 0 || !same_keys(r, r - 1)) {
			buf_char(out, '\n');
			for (int k = 0; k < r->count; k++)
				print_cell(out, &r->value[k], k, true, TEXT_WIDTH);
			buf_char(out, '\n');
		}
		for (int k = 0; k < r->count; k++)
			print_cell(out, &r->value[k], k, false, TEXT_WIDTH);
		buf_char(out, '\n');
	}
}

static const struct value *value_of(const struct row *r, const char *key)
{
	for (int k = 0; k < r->count; k++)
		if (!strcmp(r->value[k].key, key))
			return &r->value[k];
	abort(); /* report_tables() */
}

static bool same_group(const struct row *a, const struct row *b)
{
	for (const char *const *key = report.group; *key; key++)
		if (value_of(a, *key)->number[0] != value_of(b, *key)->number[0])
			return false;
	return true;
}

static void print_columns(struct buf *out, const struct row *r, const char *const *keys, bool key,
			  int text_width)
{
	for (int k = 0; keys[k]; k++)
		print_cell(out, value_of(r, keys[k]), k, key, text_width);
	buf_char(out, '\n');
}

static void print_groups(struct buf *out)
{
	const struct row *const end = report.row + report.rows;
	const int text_width = longest_text();

	for (const struct row *first = report.row, *next; first < end; first = next) {
		for (next = first + 1; next < end && same_group(first, next);)
			next++;
		buf_str(out, "\n--");
		for (const char *const *key = report.group; *key; key++) {
			buf_printf(out, "%s %s ", key == report.group ? "" : ",", *key);
			print_value(out, value_of(first, *key), false);
		}
		buf_str(out, " --\n");
		for (int t = 0; t < report.ntables; t++) {
			buf_printf(out, "\n%s\n", report.tables[t].title);
			print_columns(out, first, report.tables[t].keys, true, text_width);
			for (const struct row *r = first; r < next; r++)
				print_columns(out, r, report.tables[t].keys, false, text_width);
		}
	}
}

static void print_tables(struct buf *out)
{
	buf_printf(out, "%s on %s, %ld CPUs (%ld possible), Linux %s, %.2f CPUs in use\n",
		   report.bench, report.cpu, report.cpus, report.possible, report.kernel,
		   report.in_use);
	if (report.group)
		print_groups(out);
	else
		print_rows(out);
	buf_char(out, '\n');
	print_bar_lines(out, &report.bars, "met", "NOT met", "bar");
	if (report.checks.count)
		buf_str(out, "\nDoes each do what it is said to do, be it good or bad?\n");
	print_bar_lines(out, &report.checks, "as expected", "NOT as expected", "expected");
	buf_add(out, report.picture.data, report.picture.len);
	for (int i = 0; i < report.notes; i++)
		buf_printf(out, "%s%s\n", i ? "" : "\n", report.note[i]);
}

int report_print(bool json)
{
	struct buf out = BUF_INIT;
	int failed = 0;

	if (json)
		print_json(&out);
	else
		print_tables(&out);
	if (out.error || fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)) {
		fprintf(stderr, "freshet-bench: the result could not be written\n");
		failed = 1;
	}
	buf_free(&out);
	buf_free(&report.picture);
	return failed;
}
