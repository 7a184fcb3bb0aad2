/* SPDX-License-Identifier: MIT */
/*
 * Implements programs.h: a table of the files there are, and what became of each. A file that could not
 * be shown is left alone until another lies at its name, or it has changed; what takes too much is tried
 * again now and then.
 *
 * The first copy is made here, so a look that takes long leaves the rest to the next one, and a file
 * that took long to no avail has to wait longer than the others.
 */
#include "daemon/programs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "daemon/loop.h"
#include "daemon/say.h"
#include "view/guard.h"
#include "view/segments.h"

#define DIRECTORIES_MAX (SEGMENTS_DIRECTORIES_MAX + 16u)
#define LINES_MAX       8u                    /* of one look */
#define LOOK_NS         (250 * NSEC_PER_MSEC) /* nothing new is tried after that */
#define AGAIN_NS        (4 * NSEC_PER_SEC)   /* what took too much may take less then */
#define AGAIN_SHARE     20u                   /* of the time, at most, goes into one file */

struct directory {
	char path[FRESHET_PATH_MAX];
	bool any_owner;
	bool said_more;
	int said; /* why it cannot be looked at */
};

struct file {
	struct file *next;
	unsigned directory;
	char name[FRESHET_NAME_MAX + 1];
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	const struct freshet_view *view; /* shown: the server's; NULL: it is not */
	bool seen;                       /* in this look */
	bool settled;                    /* not shown, and no use to try again */
	uint64_t again_ns;               /* else: not before */
	int said;                        /* why it is not shown */
};

struct programs {
	struct directory directory[DIRECTORIES_MAX];
	unsigned ndirectories;
	struct file *files;
	bool said_full;
	bool room;         /* one was dropped: others may find their place now */
	unsigned lines;    /* that this look had to say */
	uint64_t until_ns; /* this look tries new ones */
};

/* Names come and go as others like: not all that could be said is. */
static bool may_say(struct programs *p)
{
	return p->lines++ < LINES_MAX;
}

int programs_new(const char *directories, struct programs **ret)
{
	char where[SEGMENTS_DIRECTORIES_MAX][FRESHET_PATH_MAX];
	struct programs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ndirectories = segments_directories(where);
	for (unsigned i = 0; i < p->ndirectories; i++)
		strcpy(p->directory[i].path, where[i]);
	while (*directories && p->ndirectories < DIRECTORIES_MAX) {
		struct directory *d = &p->directory[p->ndirectories];
		size_t len = strcspn(directories, ":");

		if (len && len < sizeof(d->path)) {
			memcpy(d->path, directories, len);
			d->any_owner = true;
			p->ndirectories++;
		}
		directories += len + (directories[len] == ':');
	}
	*ret = p;
	return 0;
}

void programs_free(struct programs *p)
{
	struct file *f;

	while (p && (f = p->files)) {
		p->files = f->next;
		free(f);
	}
	free(p);
}

static void drop(struct programs *p, const struct daemon *d, struct file *f)
{
	if (!f->view)
		return;
	http_program_drop(d->http, f->name);
	f->view = NULL;
	p->room = true;
}

/* Not to be shown; said once, unless the reason is another. */
static void refuse(struct programs *p, struct file *f, int error, const char *why)
{
	if (f->said != error && may_say(p))
		say("freshet serve: %s/%s is not shown: %s", p->directory[f->directory].path,
		    f->name, why);
	f->said = error;
	f->settled = error != -E2BIG;
	if (!f->settled)
		f->again_ns = clock_ns() + AGAIN_NS;
}

static bool is_own(const struct daemon *d, const struct file *f)
{
	struct stat st;

	return fstat(collector_fd(d->collector), &st) == 0 && st.st_dev == f->dev &&
	       st.st_ino == f->ino;
}

/* Whether it is of any use: a producer that lives, and is no serve, whose numbers are the host's. */
static bool wanted(const struct freshet_view *view)
{
	struct freshet_producer_info info = { 0 };
	int state;

	guard_begin(view);
	state = freshet_producer(view);
	freshet_producer_info(view, &info);
	return !guard_end() && state == FRESHET_ALIVE && strcmp(info.name, SERVE_PRODUCER) != 0;
}

/* What the next look may find otherwise, though the file is the same. */
static bool passes_by(int error)
{
	switch (error) {
	case -EAGAIN: /* nothing published yet; or it changed all the time */
	case -ESTALE:
	case -ENOENT:
	case -EINTR:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return true;
	default:
		return false;
	}
}

static void show(struct programs *p, const struct daemon *d, struct file *f,
		 struct freshet_view *view)
{
	char without[256] = "";
	int r = http_program_add(d->http, f->name, view, without, sizeof(without));

	if (r == 0) {
		f->view = view;
		if (f->said != -E2BIG) /* it may grow again, and that is said once */
			f->said = 0;
		if (without[0] && may_say(p))
			say("freshet serve: %s/%s: metrics left out, their names are taken or "
			    "none: "
			    "%s",
			    p->directory[f->directory].path, f->name, without);
		return;
	}
	freshet_detach(view);
	if (r == -ENODEV) {
		f->settled = true;
	} else if (r == HTTP_PREFIX_TAKEN) {
		refuse(p, f, r, "its name, or what its metrics are called, is another's");
	} else if (r == HTTP_FULL) {
		if (!p->said_full && may_say(p))
			say("freshet serve: no more than %u segments of programs are shown: %s/%s "
			    "is not among them",
			    HTTP_PROGRAMS_MAX, p->directory[f->directory].path, f->name);
		p->said_full = true;
		f->said = r;
		f->settled = true;
	} else if (!passes_by(r)) {
		refuse(p, f, r, segments_error(r));
	}
}

static void try_file(struct programs *p, const struct daemon *d, struct file *f,
		     const struct segments_list *list, size_t i)
{
	struct freshet_view *view;
	uint64_t begin = clock_ns(), end;
	int r;

	if (is_own(d, f))
		return;
	r = segments_attach(list, i, p->directory[f->directory].any_owner, &view);
	if (passes_by(r))
		return;
	if (r < 0) {
		refuse(p, f, r, segments_error(r));
	} else if (!wanted(view)) {
		freshet_detach(view);
		f->settled = true;
	} else {
		show(p, d, f, view);
	}
	end = clock_ns();
	if (f->again_ns < end + AGAIN_SHARE * (end - begin))
		f->again_ns = end + AGAIN_SHARE * (end - begin);
}

/* One that is shown: drops it if it is not as it was. */
static void check(struct programs *p, const struct daemon *d, struct file *f)
{
	int state, error = http_program_error(d->http, f->name);

	guard_begin(f->view);
	state = freshet_producer(f->view);
	if (guard_end())
		error = -EIO;
	if (state == FRESHET_ALIVE && error == 0)
		return;
	drop(p, d, f);
	f->settled = true;
	if (error == -EIO || error == -E2BIG)
		refuse(p, f, error, segments_error(error));
}

static struct file *file_of(struct programs *p, unsigned directory, const char *name)
{
	struct file **at = &p->files, *f;

	for (; (f = *at); at = &f->next)
		if (f->directory == directory && strcmp(f->name, name) == 0)
			return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->directory = directory;
	strcpy(f->name, name);
	*at = f;
	return f;
}

static void look_at(struct programs *p, const struct daemon *d, struct file *f,
		    const struct segments_list *list, size_t i)
{
	const struct stat *st = &list->entry[i].st;
	bool same = f->dev == st->st_dev && f->ino == st->st_ino;
	uint64_t now;

	f->seen = true;
	if (f->view && same) {
		check(p, d, f);
		return;
	}
	drop(p, d, f);
	if (!same)
		f->again_ns = 0;
	if (!same || f->changed.tv_sec != st->st_ctim.tv_sec ||
	    f->changed.tv_nsec != st->st_ctim.tv_nsec)
		f->settled = false;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->changed = st->st_ctim;
	now = clock_ns();
	if (!f->settled && now >= f->again_ns && now < p->until_ns)
		try_file(p, d, f, list, i);
}

static void look_into(struct programs *p, const struct daemon *d, unsigned directory)
{
	struct directory *dir = &p->directory[directory];
	struct segments_list list;
	int r = segments_list(dir->path, &list);

	if (r < 0 && r != dir->said)
		say("freshet serve: segments in %s are not shown: %s", dir->path, strerror(-r));
	dir->said = r;
	if (r < 0)
		return;
	if (list.more && !dir->said_more)
		say("freshet serve: %s holds too many files: not all are looked at", dir->path);
	dir->said_more = list.more;
	for (size_t i = 0; i < list.count; i++) {
		struct file *f = file_of(p, directory, list.entry[i].name);

		if (f)
			look_at(p, d, f, &list, i);
	}
	segments_list_free(&list);
}

static void forget_unseen(struct programs *p, const struct daemon *d)
{
	for (struct file **at = &p->files, *f; (f = *at);) {
		if (f->seen) {
			at = &f->next;
			continue;
		}
		drop(p, d, f);
		*at = f->next;
		free(f);
	}
}

void programs_look(struct programs *p, const struct daemon *d)
{
	for (struct file *f = p->files; f; f = f->next) {
		f->seen = false;
		if (p->room && (f->said == HTTP_PREFIX_TAKEN || f->said == HTTP_FULL))
			f->settled = false;
	}
	p->room = false;
	p->lines = 0;
	p->until_ns = clock_ns() + LOOK_NS;
	for (unsigned i = 0; i < p->ndirectories; i++)
		look_into(p, d, i);
	forget_unseen(p, d);
	if (p->lines > LINES_MAX)
		say("freshet serve: and %u more lines of that kind", p->lines - LINES_MAX);
	p->said_full = false;
	for (const struct file *f = p->files; f; f = f->next)
		p->said_full |= f->said == HTTP_FULL;
}
