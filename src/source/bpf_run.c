/* SPDX-License-Identifier: MIT */
/* Implements bpf_run.h. Which program: by what the kernel's BTF has, never by its version. */
#include "source/bpf_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <linux/types.h>

#include "base/clock.h"
#include "bpf/pass.skel.h"
#include "source/parse.h"

#define FIRST_CAPACITY 1024u
#define MAX_CAPACITY   (1u << 22)
#define WAIT_NS        4000000

enum walk { WALK_CSS, WALK_ITER };

struct array {
	void *at;
	size_t size;
};

struct bpf_run {
	struct pass_bpf *skel;
	enum walk walk;
	int root_fd;
	uint64_t root_id;
	int iter_link; /* of WALK_ITER, else -1 */
	uint32_t capacity;
	uint32_t cpus;
	uint32_t *cpu_id; /* the possible CPUs */
	struct array record, throttle, ledger, name;
};

/* ---- what libbpf and the verifier say ---- */

/* The first warning of an open is the telling one; a verifier log can run to megabytes. One thread
 * opens sources at a time. */
static char first_warning[200];

__attribute__((format(printf, 2, 0))) static int keep_first_warning(enum libbpf_print_level level,
								    const char *fmt, va_list ap)
{
	if (level != LIBBPF_WARN || first_warning[0])
		return 0;
	vsnprintf(first_warning, sizeof(first_warning), fmt, ap);
	first_warning[strcspn(first_warning, "\n")] = 0;
	return 0;
}

/* ---- loading ---- */

static void array_unmap(struct array *a)
{
	if (a->at)
		munmap(a->at, a->size);
	a->at = NULL;
}

static int array_map(const struct bpf_map *map, struct array *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = ((size_t)bpf_map__value_size(map) + 7) / 8 * 8 * bpf_map__max_entries(map);
	void *at;

	size = (size + page - 1) / page * page;
	at = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
	if (at == MAP_FAILED)
		return -errno;
	ret->at = at;
	ret->size = size;
	return 0;
}

static void unload(struct bpf_run *b)
{
	array_unmap(&b->record);
	array_unmap(&b->throttle);
	array_unmap(&b->ledger);
	array_unmap(&b->name);
	if (b->iter_link >= 0)
		close(b->iter_link);
	b->iter_link = -1;
	pass_bpf__destroy(b->skel);
	b->skel = NULL;
}

static int run_program(struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	return bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);
}

static int link_iter(struct bpf_run *b)
{
	union bpf_iter_link_info info = { 0 };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));

	info.cgroup.cgroup_fd = (__u32)b->root_fd;
	info.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
	b->iter_link = bpf_link_create(bpf_program__fd(b->skel->progs.pass_iter), 0, BPF_TRACE_ITER,
				       &opts);
	return b->iter_link < 0 ? -errno : 0;
}

static int load(struct bpf_run *b, enum walk walk, uint32_t capacity)
{
	int err;

	b->skel = pass_bpf__open();
	if (!b->skel)
		return -errno;
	b->walk = walk;
	b->capacity = capacity;
	bpf_program__set_autoload(b->skel->progs.pass_walk, walk == WALK_CSS);
	bpf_program__set_autoload(b->skel->progs.pass_iter, walk == WALK_ITER);
	bpf_map__set_max_entries(b->skel->maps.records, capacity);
	bpf_map__set_max_entries(b->skel->maps.throttle, capacity);
	bpf_map__set_max_entries(b->skel->maps.ledger, capacity);
	bpf_map__set_max_entries(b->skel->maps.names, PASS_MAX_NAMES);
	err = pass_bpf__load(b->skel);
	if (err)
		goto fail;

	err = array_map(b->skel->maps.records, &b->record);
	if (!err)
		err = array_map(b->skel->maps.throttle, &b->throttle);
	if (!err)
		err = array_map(b->skel->maps.ledger, &b->ledger);
	if (!err)
		err = array_map(b->skel->maps.names, &b->name);
	if (err)
		goto fail;

	b->skel->bss->ctl.root_id = b->root_id;
	b->skel->bss->ctl.cpus = b->cpus;
	memcpy(b->skel->bss->cpu_id, b->cpu_id, b->cpus * sizeof(*b->cpu_id));
	err = run_program(b->skel->progs.pass_setup);
	if (!err)
		err = b->skel->bss->ctl.error;
	if (!err && walk == WALK_ITER)
		err = link_iter(b);
	if (err)
		goto fail;
	return 0;
fail:
	unload(b);
	return err;
}

static int possible_cpus(struct bpf_run *b)
{
	char text[4096];
	ssize_t len;
	int fd, n;

	fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text));
	close(fd);
	if (len < 0)
		return -errno;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	b->cpu_id = calloc(PASS_MAX_CPUS, sizeof(*b->cpu_id));
	if (!b->cpu_id)
		return -ENOMEM;
	n = parse_cpu_list(text, (size_t)len, b->cpu_id, PASS_MAX_CPUS);
	if (n <= 0)
		return n ? n : -EINVAL;
	b->cpus = (uint32_t)n;
	return 0;
}

/* Room for twice the cgroups that are there now: growing later means loading again. */
static uint32_t first_capacity(int root_fd)
{
	static const char *const keys[] = { "nr_descendants ", "nr_dying_descendants " };
	uint64_t want = FIRST_CAPACITY;
	char text[1024];
	ssize_t len;
	int fd;

	fd = openat(root_fd, "cgroup.stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return FIRST_CAPACITY;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len < 0 ? 0 : len] = 0;
	for (int i = 0; i < 2; i++) {
		const char *at = strstr(text, keys[i]);

		want += at ? 2 * strtoull(at + strlen(keys[i]), NULL, 10) : 0;
	}
	return want < MAX_CAPACITY ? (uint32_t)want : MAX_CAPACITY;
}

static bool has_type(const struct btf *btf, const char *name, unsigned kind)
{
	return btf__find_by_name_kind(btf, name, kind) > 0;
}

static int open_best(struct bpf_run *b, char *why, size_t why_size)
{
	struct btf *btf = btf__load_vmlinux_btf();
	uint32_t capacity = first_capacity(b->root_fd);
	bool css, iter;
	int err;

	if (!btf) {
		snprintf(why, why_size, "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)");
		return -EOPNOTSUPP;
	}
	css = has_type(btf, "bpf_iter_css_new", BTF_KIND_FUNC) &&
	      has_type(btf, "bpf_rdonly_cast", BTF_KIND_FUNC);
	iter = has_type(btf, "bpf_iter__cgroup", BTF_KIND_STRUCT);
	btf__free(btf);

	err = -EOPNOTSUPP;
	if (css)
		err = load(b, WALK_CSS, capacity);
	if (err && err != -EPERM && iter)
		err = load(b, WALK_ITER, capacity);
	if (err == -EPERM)
		snprintf(why, why_size,
			 "BPF is not allowed here: run as root, or with CAP_BPF, CAP_PERFMON and "
			 "(for libbpf, which asks for modules' BTF) CAP_SYS_ADMIN");
	else if (!css && !iter)
		snprintf(why, why_size,
			 "this kernel's BPF cannot walk cgroups (that came with 6.1)");
	else if (err)
		snprintf(why, why_size, "the BPF programs do not load (%s)%s%s", strerror(-err),
			 first_warning[0] ? ": " : "", first_warning);
	return err;
}

int bpf_run_open(int root_fd, struct bpf_run **ret, char *why, size_t why_size)
{
	struct bpf_run *b = calloc(1, sizeof(*b));
	libbpf_print_fn_t printer;
	struct stat st;
	int err;

	if (!b)
		return -ENOMEM;
	b->iter_link = -1;
	b->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
	if (b->root_fd < 0 || fstat(b->root_fd, &st) < 0) {
		err = -errno;
		snprintf(why, why_size, "the root cgroup: %s", strerror(-err));
		goto fail;
	}
	b->root_id = st.st_ino;
	err = possible_cpus(b);
	if (err) {
		snprintf(why, why_size, "/sys/devices/system/cpu/possible: %s", strerror(-err));
		goto fail;
	}
	first_warning[0] = 0;
	printer = libbpf_set_print(keep_first_warning);
	err = open_best(b, why, why_size);
	libbpf_set_print(printer);
	if (err)
		goto fail;
	*ret = b;
	return 0;
fail:
	bpf_run_close(b);
	return err;
}

void bpf_run_close(struct bpf_run *b)
{
	if (!b)
		return;
	if (b->skel)
		unload(b);
	if (b->root_fd >= 0)
		close(b->root_fd);
	free(b->cpu_id);
	free(b);
}

/* ---- running ---- */

static int run_iter(struct bpf_run *b)
{
	struct pass_ctl *ctl = &b->skel->bss->ctl;
	char nothing[64];
	ssize_t n;
	int fd, err = 0;

	ctl->count = ctl->names = 0;
	ctl->error = 0;
	fd = bpf_iter_create(b->iter_link);
	if (fd < 0)
		return -errno;
	do { /* the program prints nothing, so that one read is the whole walk (bpf_seq_read) */
		n = read(fd, nothing, sizeof(nothing));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	if (n < 0)
		err = -errno;
	close(fd);
	if (!err && !ctl->count) /* the kernel skips a dead root */
		err = -ENODEV;
	return err;
}

static int run_once(struct bpf_run *b)
{
	int err;

	if (b->walk == WALK_ITER)
		return run_iter(b);
	err = run_program(b->skel->progs.pass_walk);
	if (err)
		return err;
	err = b->skel->bss->ctl.error;
	return err == -ENOENT ? -ENODEV : err;
}

/* The old arrays stay in use when larger ones cannot be had. */
static int grow(struct bpf_run *b, uint32_t count)
{
	struct bpf_run larger = *b;
	uint32_t capacity;
	libbpf_print_fn_t printer;
	int err;

	if (count > MAX_CAPACITY / 2)
		return -E2BIG;
	capacity = 2 * count;
	larger.skel = NULL;
	larger.iter_link = -1;
	larger.record = larger.throttle = larger.ledger = larger.name = (struct array){ 0 };
	printer = libbpf_set_print(keep_first_warning);
	err = load(&larger, b->walk, capacity);
	libbpf_set_print(printer);
	if (err)
		return err;
	unload(b);
	*b = larger;
	return 0;
}

int bpf_run(struct bpf_run *b, bool ledger, uint64_t known, uint32_t name_from,
	    struct host_reading *ret)
{
	struct pass_ctl *ctl;
	int err;

	for (int tries = 0; tries < 8; tries++) {
		ctl = &b->skel->bss->ctl;
		ctl->ledger = ledger;
		ctl->known = known;
		ctl->name_from = name_from;
		err = run_once(b);
		if (err)
			return err;
		if (ctl->count <= b->capacity) {
			ret->record = b->record.at;
			ret->throttle = b->throttle.at;
			ret->ledger = ledger ? b->ledger.at : NULL;
			ret->name = b->name.at;
			ret->count = ctl->count;
			ret->names = ctl->names;
			ret->born = ctl->born;
			ret->at_ns = clock_ns();
			return 0;
		}
		err = grow(b, ctl->count);
		if (err)
			return err;
	}
	return -EAGAIN; /* cgroups are made faster than arrays grow */
}

void bpf_run_wait(struct bpf_run *b)
{
	struct timespec ts = { 0, WAIT_NS };

	nanosleep(&ts, NULL);
}

unsigned bpf_run_has(const struct bpf_run *b)
{
	return b->skel->bss->ctl.has;
}

bool bpf_run_holds_mutex(const struct bpf_run *b)
{
	return b->walk == WALK_ITER;
}
