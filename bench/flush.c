/* SPDX-License-Identifier: MIT */
/* Implements flush.h. */
#include "flush.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/types.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "flush.skel.h"

struct flush {
	struct flush_bpf *skel;
	struct bpf_program *program; /* the one for this kernel */
	int link;
};

/* A kernel without the kfunc is no error of ours, and libbpf would tell at length. */
static int say_nothing(enum libbpf_print_level level, const char *format, va_list ap)
{
	(void)level, (void)format, (void)ap;
	return 0;
}

static bool kernel_has(const char *kfunc)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf && btf__find_by_name_kind(btf, kfunc, BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return has;
}

static int load(struct flush *f)
{
	libbpf_print_fn_t printer = libbpf_set_print(say_nothing);
	int err = 0;

	f->skel = flush_bpf__open();
	if (f->skel) {
		const bool css = kernel_has("css_rstat_flush");

		f->program = css ? f->skel->progs.flush_css : f->skel->progs.flush_cgroup;
		bpf_program__set_autoload(f->skel->progs.flush_css, css);
		bpf_program__set_autoload(f->skel->progs.flush_cgroup, !css);
		err = flush_bpf__load(f->skel);
	} else {
		err = -errno;
	}
	libbpf_set_print(printer);
	return err;
}

int flush_open(int cgroup_fd, struct flush **ret)
{
	union bpf_iter_link_info info = { 0 };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	struct flush *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->link = -1;
	err = load(f);
	if (!err) {
		info.cgroup.cgroup_fd = (__u32)cgroup_fd;
		info.cgroup.order = BPF_CGROUP_ITER_SELF_ONLY;
		f->link = bpf_link_create(bpf_program__fd(f->program), 0, BPF_TRACE_ITER, &opts);
		err = f->link < 0 ? -errno : 0;
	}
	if (!err)
		err = flush_run(f);
	if (err) {
		flush_close(f);
		return err;
	}
	*ret = f;
	return 0;
}

void flush_close(struct flush *f)
{
	if (!f)
		return;
	if (f->link >= 0)
		close(f->link);
	flush_bpf__destroy(f->skel);
	free(f);
}

int flush_run(struct flush *f)
{
	int before = f->skel->bss->flushes, fd = bpf_iter_create(f->link);
	char nothing[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	do { /* the program prints nothing: one read is all */
		n = read(fd, nothing, sizeof(nothing));
	} while (n > 0 || (n < 0 && errno == EINTR));
	close(fd);
	return n < 0 ? -errno : f->skel->bss->flushes == before + 1 ? 0 : -EIO;
}

int flush_read(struct flush *f, uint64_t *usage_ns)
{
	int err = flush_run(f);

	if (!err)
		*usage_ns = f->skel->bss->usage_ns;
	return err;
}
