/* SPDX-License-Identifier: MIT */
/* Writes the segment of unit/tree_image.h to standard output. */
#include <stdio.h>

#include "unit/tree_image.h"

int main(void)
{
	size_t size;
	uint8_t *image = tree_image(&size);
	int bad = fwrite(image, 1, size, stdout) != size;

	free(image);
	return bad;
}
