/* SPDX-License-Identifier: MIT */
/*
 * Segments that lie in a directory, made by whoever may write there: looked at without following a
 * link, without waiting, and without believing anything. System calls on files only.
 */
#ifndef FRESHET_VIEW_SEGMENTS_H
#define FRESHET_VIEW_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <freshet/freshet.h>

#define SEGMENTS_LOOK_MAX 1024u /* files of one directory that are looked at */

/* The directories where segments live for this user: its own, then the superuser's if that is
 * another. Gives how many, each at most FRESHET_PATH_MAX bytes. */
unsigned segments_directories(char (*ret)[FRESHET_PATH_MAX]);
#define SEGMENTS_DIRECTORIES_MAX 2u

struct segments_entry {
	char name[FRESHET_NAME_MAX + 1];
	struct stat st; /* of what lies there; of a link, of itself */
};

struct segments_list {
	int dir_fd; /* -1: there is no such directory */
	struct segments_entry *entry;
	size_t count;
	bool more; /* than are looked at */
};

/* What may be segments in a directory, by name: not the locks, sockets and half-made files that lie
 * beside them. 0 (none too, when there is no such directory), or -errno. */
int segments_list(const char *directory, struct segments_list *ret);
void segments_list_free(struct segments_list *list);

/*
 * Attaches one of them. any_owner: whoever owns it; else it must be this user's or the superuser's.
 * -ELOOP a link; -EPERM somebody else's; -EACCES; -EAGAIN nothing published yet; -EPROTO, -EIO no
 * good segment; -ESTALE it has been replaced just now; else -errno. The view knows no path.
 */
int segments_attach(const struct segments_list *list, size_t i, bool any_owner,
		    struct freshet_view **ret);

/* Why a segment cannot be read, for people. */
const char *segments_error(int error);

#endif
