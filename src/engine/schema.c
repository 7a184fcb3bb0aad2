/* SPDX-License-Identifier: MIT */
/*
 * Implements schema.h. A cell is (inline.h): the stamp; a word for each stat; if there is a gauge on
 * its own, a word for each stat's decreases; the sets; the histograms. A stat of a set has a word,
 * too, for updates of it alone.
 */
#include "engine/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool good_name(const char *s)
{
	if (!s || *s < 'a' || *s > 'z')
		return false;
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '_'))
			return false;
	return true;
}

/* Not what JSON has beside the families of a group already. */
static bool good_family(const char *s)
{
	return good_name(s) && strcmp(s, "path") && strcmp(s, "id") && strcmp(s, "parent") &&
	       strcmp(s, "age_us");
}

static const char *key_of(const char *key, const char *name)
{
	return key ? key : name;
}

/* Whether two numbers of a family can be told apart, by name and by key. */
static bool differ(const char *family, const char *name, const char *key, const char *family2,
		   const char *name2, const char *key2)
{
	return strcmp(family, family2) ||
	       (strcmp(name, name2) && strcmp(key_of(key, name), key_of(key2, name2)));
}

/* Stats of the set that begins at stat i: 1 for one on its own. */
static unsigned set_size(const struct freshet_schema *in, unsigned i)
{
	unsigned n = 1;

	if (in->stats[i].set)
		while (i + n < in->nstats && in->stats[i + n].set == in->stats[i].set)
			n++;
	return n;
}

static bool stats_good(const struct freshet_schema *in)
{
	for (unsigned i = 0; i < in->nstats; i++) {
		const struct freshet_stat *s = &in->stats[i];

		if (!good_family(s->family) || !good_name(s->name) || (s->key && !*s->key) ||
		    (s->kind != FRESHET_COUNTER && s->kind != FRESHET_GAUGE) ||
		    s->unit > FRESHET_BYTES)
			return false;
		for (unsigned j = 0; j < i; j++) {
			const struct freshet_stat *t = &in->stats[j];

			if (!differ(s->family, s->name, s->key, t->family, t->name, t->key))
				return false;
			/* a set stands together */
			if (s->set && in->stats[j].set == s->set &&
			    in->stats[i - 1].set != s->set)
				return false;
		}
		if (set_size(in, i) > FRESHET_MAX_SET)
			return false;
	}
	return true;
}

static bool histograms_good(const struct freshet_schema *in)
{
	for (unsigned i = 0; i < in->nhistograms; i++) {
		const struct freshet_histogram *h = &in->histograms[i];

		if (!good_family(h->family) || !good_name(h->name) || (h->key && !*h->key) ||
		    h->unit > FRESHET_BYTES ||
		    freshet_buckets(h->precision, h->lowest, h->highest) == 0)
			return false;
		for (unsigned j = 0; j < in->nstats; j++) {
			const struct freshet_stat *t = &in->stats[j];

			if (!differ(h->family, h->name, h->key, t->family, t->name, t->key))
				return false;
		}
		for (unsigned j = 0; j < i; j++) {
			const struct freshet_histogram *t = &in->histograms[j];

			if (!differ(h->family, h->name, h->key, t->family, t->name, t->key))
				return false;
		}
	}
	return true;
}

static const char *keep(char **at, const char *s)
{
	const char *copy = *at;
	size_t len = strlen(s) + 1;

	memcpy(*at, s, len);
	*at += len;
	return copy;
}

static size_t length(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

/* Copies everything; a missing key is the name, a missing help is empty. */
static int copy(const struct freshet_schema *in, struct schema *s)
{
	size_t size = 0;
	char *at;

	for (unsigned i = 0; i < in->nstats; i++)
		size += length(in->stats[i].family) + 2 * length(in->stats[i].name) +
			length(in->stats[i].key) + length(in->stats[i].help) + 1;
	for (unsigned i = 0; i < in->nhistograms; i++)
		size += length(in->histograms[i].family) + 2 * length(in->histograms[i].name) +
			length(in->histograms[i].key) + length(in->histograms[i].help) + 1;
	at = s->strings = malloc(size);
	if (!at)
		return -ENOMEM;
	for (unsigned i = 0; i < in->nstats; i++) {
		const struct freshet_stat *f = &in->stats[i];

		s->stats[i] = *f;
		s->stats[i].family = keep(&at, f->family);
		s->stats[i].name = keep(&at, f->name);
		s->stats[i].key = keep(&at, f->key ? f->key : f->name);
		s->stats[i].help = keep(&at, f->help ? f->help : "");
	}
	for (unsigned i = 0; i < in->nhistograms; i++) {
		const struct freshet_histogram *f = &in->histograms[i];

		s->histograms[i] = *f;
		s->histograms[i].family = keep(&at, f->family);
		s->histograms[i].name = keep(&at, f->name);
		s->histograms[i].key = keep(&at, f->key ? f->key : f->name);
		s->histograms[i].help = keep(&at, f->help ? f->help : "");
	}
	s->nstats = in->nstats;
	s->nhistograms = in->nhistograms;
	return 0;
}

static struct seg_part *add_part(struct schema *s, enum part_type type, unsigned count,
				 unsigned at_word)
{
	struct seg_part *p = &s->parts[s->nparts++];

	*p = (struct seg_part){ .type = type, .first = s->words, .count = count,
				.at = 8 * at_word };
	s->words += count;
	return p;
}

/* Counters on their own that follow each other are one part. */
static void add_counter(struct schema *s, unsigned stat)
{
	struct seg_part *last = s->nparts ? &s->parts[s->nparts - 1] : NULL;

	if (last && last->type == PART_WORDS) {
		last->count++;
		s->words++;
	} else {
		add_part(s, PART_WORDS, 1, 1 + stat);
	}
}

static int lay_out(const struct freshet_schema *in, struct schema *s)
{
	struct seg_part *part;
	unsigned next, n;

	for (unsigned i = 0; i < s->nstats; i += n) {
		n = set_size(in, i);
		if (n == 1 && s->stats[i].kind == FRESHET_GAUGE)
			s->down = true;
	}
	next = 1 + s->nstats * (s->down ? 2 : 1);
	for (unsigned i = 0; i < s->nstats; i += n) {
		n = set_size(in, i);
		for (unsigned j = 0; j < n; j++)
			s->stats[i + j].set = i;
		if (n > 1) {
			part = add_part(s, PART_SET, n, 1 + i);
			part->down = 8 * next;
			part->less = s->down ? 8 * (1 + s->nstats + i) : 0;
			s->set[i].offset = (uint16_t)next;
			s->set[i].count = (uint16_t)n;
			next += 1 + FRESHET_BANKS * n;
		} else if (s->stats[i].kind == FRESHET_GAUGE) {
			add_part(s, PART_PAIR, 1, 1 + i)->down = 8 * (1 + s->nstats + i);
		} else {
			add_counter(s, i);
		}
	}
	for (unsigned i = 0; i < s->nhistograms; i++) {
		struct freshet_histogram *h = &s->histograms[i];

		h->buckets = (uint16_t)freshet_buckets(h->precision, h->lowest, h->highest);
		h->word = (uint16_t)s->words;
		if (s->words + h->buckets + 1u > FRESHET_MAX_WORDS)
			return -EINVAL;
		s->histogram[i] = (uint16_t)next;
		add_part(s, PART_WORDS, h->buckets + 1u, next);
		next += h->buckets + 1u;
	}
	/* Whole cache lines: who reads a group flat out disturbs no other group's updates. */
	s->cell_size = (unsigned)seg_round(8 * next, 64);
	return 0;
}

bool schema_knows(const void *s, size_t size, size_t known)
{
	const char *byte = s;

	if (size < known || size > 4096)
		return false;
	for (size_t i = known; i < size; i++)
		if (byte[i])
			return false;
	return true;
}

int schema_make(const struct freshet_schema *in, struct schema *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	if (!in || !schema_knows(in, in->size, sizeof(*in)) || !in->stats || in->nstats == 0 ||
	    in->nstats > FRESHET_MAX_STATS || in->nhistograms > FRESHET_MAX_HISTOGRAMS ||
	    (in->nhistograms && !in->histograms) || !stats_good(in) || !histograms_good(in))
		return -EINVAL;
	r = copy(in, ret);
	if (r == 0)
		r = lay_out(in, ret);
	if (r)
		schema_free(ret);
	return r;
}

void schema_free(struct schema *s)
{
	free(s->strings);
	s->strings = NULL;
}
