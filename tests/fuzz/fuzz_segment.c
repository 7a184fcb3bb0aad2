/* SPDX-License-Identifier: MIT */
/*
 * Fuzzing the segment reader. The first byte of an input says what the rest is:
 *   'R'  the file as it is
 *   else changes to a good segment (unit/segment_image.h), so that an input of a few bytes gets past
 *        the header: records of offset (4 bytes, little endian, modulo the file's size), length
 *        (1 byte) and that many bytes
 *   'T'  the same changes to a good segment of a program's tree (unit/tree_image.h)
 */
#include "unit/segment_image.h"
#include "unit/segment_walk.h"
#include "unit/tree_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void change(uint8_t *image, size_t image_size, const uint8_t *data, size_t size)
{
	while (size >= 5) {
		size_t at = (data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 |
			     (size_t)data[3] << 24) %
			    image_size;
		size_t len = data[4];

		data += 5;
		size -= 5;
		if (len > size)
			len = size;
		if (len > image_size - at)
			len = image_size - at;
		memcpy(image + at, data, len);
		data += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *good[2];
	static size_t good_size[2];
	const unsigned i = size > 0 && data[0] == 'T';
	uint8_t *image = NULL;
	int fd;

	if (!good[0]) {
		good[0] = image_make(&good_size[0]);
		good[1] = tree_image(&good_size[1]);
	}
	if (size > 0 && data[0] == 'R') {
		fd = image_fd(data + 1, size - 1);
	} else {
		image = malloc(good_size[i]);
		if (!image)
			return 0;
		memcpy(image, good[i], good_size[i]);
		if (size > 0)
			change(image, good_size[i], data + 1, size - 1);
		fd = image_fd(image, good_size[i]);
	}
	walk_segment(fd);
	close(fd);
	free(image);
	return 0;
}
