/* SPDX-License-Identifier: MIT */
/*
 * The file of a segment as its writer holds it: made under another name, locked, renamed into place
 * when it is complete, removed at the end. One thread.
 */
#ifndef FRESHET_SEGMENT_FILE_H
#define FRESHET_SEGMENT_FILE_H

#include <stdint.h>

struct segment_file {
	int fd;      /* the segment, with a write lock */
	int dir_fd;  /* -1 for an anonymous segment, as is lock_fd */
	int lock_fd; /* NAME.lock, locked */
	char *name;  /* in dir_fd; NULL for an anonymous segment */
	char *temp;  /* its name until segment_file_commit(), then NULL */
};

/* A new file of `size` bytes, all of it a hole. Errors: writer_open(). */
int segment_file_create(const char *path, uint64_t size, struct segment_file *ret);

/* A descriptor of the file for mapping it; the caller closes it. Not `fd`: a mapping keeps what it was
 * made from open, with its lock, in a forked child too, after the death of the writer. Or -errno. */
int segment_file_reopen(const struct segment_file *f);

/* Puts it at its path, in the place of a dead writer's. 0 or -errno. */
int segment_file_commit(struct segment_file *f);

/* Removes what it made and gives up the locks. Errors are nobody's business any more. */
void segment_file_close(struct segment_file *f);

/* Closes the descriptors and removes nothing, now or in segment_file_close(). */
void segment_file_disown(struct segment_file *f);

#endif
