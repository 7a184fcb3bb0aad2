/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over its corpus, one TAP test a file: replay DIRECTORY. The input lies at the
 * very end of a malloc'ed block, so that ASan sees a read past it. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	uint8_t *data;
	size_t size;
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return 0;
	fseek(f, 0, SEEK_END);
	size = (size_t)ftell(f);
	rewind(f);
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, f) != size) {
		free(data);
		fclose(f);
		return 0;
	}
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	struct dirent **entry;
	char path[4096];
	int n, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	n = argc == 2 ? scandir(argv[1], &entry, visible, alphasort) : -1;
	if (n <= 0) {
		printf("Bail out! no corpus\n");
		return 1;
	}
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		int good;

		snprintf(path, sizeof(path), "%s/%s", argv[1], entry[i]->d_name);
		good = replay(path);
		failed |= !good;
		printf("%s %d %s\n", good ? "ok" : "not ok", i + 1, entry[i]->d_name);
		free(entry[i]);
	}
	free(entry);
	return failed;
}
