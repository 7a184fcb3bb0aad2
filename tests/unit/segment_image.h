/* SPDX-License-Identifier: MIT */
/*
 * A small whole segment to damage: "/", "/a", "/a/b", "/c", two banks, passes 1 to 3 published; its
 * slots 0 to 3 in this order, all of generation 1; slot 4 is free again.
 */
#ifndef SEGMENT_IMAGE_H
#define SEGMENT_IMAGE_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/segment_help.h"

#define IMAGE_GROUPS 8u

/* malloc'ed. */
__attribute__((unused)) static uint8_t *image_make(size_t *size)
{
	struct writer_node nodes[5] = {
		{ 1, "", 0, WRITER_NEW },  { 2, "a", 0, WRITER_NEW },    { 3, "b", 1, WRITER_NEW },
		{ 4, "c", 0, WRITER_NEW }, { 5, "gone", 0, WRITER_NEW },
	};
	struct writer_options o = help_options(IMAGE_GROUPS);
	struct writer *w;
	struct stat st;
	uint8_t *image;

	o.nbanks = 2;
	if (writer_open(NULL, &o, &w))
		abort();
	help_pass(w, nodes, 5, 1);
	help_pass(w, nodes, 4, 1);
	help_pass(w, nodes, 4, 0);
	if (fstat(writer_fd(w), &st) || !(image = malloc((size_t)st.st_size)) ||
	    pread(writer_fd(w), image, (size_t)st.st_size, 0) != st.st_size)
		abort();
	*size = (size_t)st.st_size;
	writer_close(w);
	return image;
}

/* A memfd with these contents. */
static int image_fd(const void *data, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	return fd;
}

#endif
