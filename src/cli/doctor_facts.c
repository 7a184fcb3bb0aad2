/* SPDX-License-Identifier: MIT */
/* Facts for doctor.h that are looked up and not tried: files, BTF, system calls that only ask. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "cli/doctor.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define RSEQ_MM_CID_END 28u /* offsetofend(struct rseq, mm_cid) of Linux 6.3 */

/* Text of a small file without its last newline; -errno. */
static int read_text(const char *path, char *buf, size_t size)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	if (n && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return 0;
}

/* ---- the hierarchy ---- */

/* Whether the words of list, between blanks, have this one. */
static bool has_word(const char *list, const char *word)
{
	for (size_t len; *(list += strspn(list, " ")); list += len) {
		len = strcspn(list, " ");
		if (len == strlen(word) && !strncmp(list, word, len))
			return true;
	}
	return false;
}

int facts_cgroup(struct facts *f, struct cgroup_mount *mount)
{
	char file[sizeof(mount->path) + 32], text[512];
	int r = mount_find(mount);

	if (r < 0) {
		fact(f, FACT_NO, "cgroup2",
		     "it is not mounted: there is nothing to read (mount -t cgroup2 none DIR)");
		return r;
	}
	fact(f, FACT_OK, "cgroup2", "mounted at %s%s", mount->path,
	     mount->hybrid ? ", beside v1 controllers (a hybrid host)" : "");
	if (mount->is_top)
		fact(f, FACT_OK, "whole host", "the mount shows the hierarchy's real root");
	else
		fact(f, FACT_NO, "whole host",
		     "only a part is seen here (cgroup namespace, or a part is mounted): the "
		     "numbers "
		     "are this part's");
	snprintf(file, sizeof(file), "%s/cgroup.controllers", mount->path);
	r = read_text(file, text, sizeof(text));
	if (r < 0)
		fact(f, FACT_NO, "controllers", "%s: %s", file, strerror(-r));
	else if (has_word(text, "cpu"))
		fact(f, FACT_OK, "controllers", "%s", text);
	else
		fact(f, FACT_NO, "controllers",
		     "no cpu controller (there: %s): usage is there, throttling is not",
		     text[0] ? text : "none");
	return 0;
}

/* ---- kernel ---- */

static void fact_privilege(struct facts *f)
{
	static const struct {
		int bit;
		const char *name;
	} caps[] = { { CAP_BPF, "CAP_BPF" },
		     { CAP_PERFMON, "CAP_PERFMON" },
		     { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" } };
	char text[4096], has[64] = "", lacks[64] = "";
	unsigned long long effective = 0;
	const char *at;

	if (read_text("/proc/self/status", text, sizeof(text)) == 0) {
		at = strstr(text, "\nCapEff:");
		if (at)
			effective = strtoull(at + 8, NULL, 16);
	}
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		char *to = effective >> caps[i].bit & 1 ? has : lacks;

		snprintf(to + strlen(to), sizeof(has) - strlen(to), " %s", caps[i].name);
	}
	if (!lacks[0])
		fact(f, FACT_OK, "privilege", "%s", has + 1);
	else
		fact(f, FACT_NO, "privilege", "without%s: source bpf will not open (run as root)",
		     lacks);
}

static bool has_kind(const struct btf *btf, const char *name, unsigned kind)
{
	return btf__find_by_name_kind(btf, name, kind) >= 0;
}

static bool has_member(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id >= 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;

	for (unsigned i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), name))
			return true;
	return false;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

static void facts_btf(struct facts *f, const struct btf *btf)
{
	bool css = has_kind(btf, "bpf_iter_css_new", BTF_KIND_FUNC);
	bool iter = has_kind(btf, "bpf_iter__cgroup", BTF_KIND_STRUCT);
	bool nice = has_member(btf, "cgroup_base_stat", "ntime");
	bool idle = has_member(btf, "cgroup_base_stat", "forceidle_sum");

	if (css)
		fact(f, FACT_OK, "walk",
		     "css iterator (bpf_iter_css_new, Linux 6.7): passes run "
		     "under RCU, no mutex is taken");
	else if (iter)
		fact(f, FACT_OK, "walk",
		     "iter/cgroup (Linux 6.1): cgroup_mutex is held while a pass "
		     "runs");
	else
		fact(f, FACT_NO, "walk",
		     "neither css iterator (Linux 6.7) nor iter/cgroup (6.1): "
		     "source files only");
	if (has_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC))
		fact(f, FACT_OK, "plain loads", "bpf_rdonly_cast (Linux 6.2)");
	else
		fact(f, FACT_NO, "plain loads",
		     "no bpf_rdonly_cast (Linux 6.2): a pass takes two to three times as long");
	if (has_kind(btf, "cgroup_rstat_base_cpu", BTF_KIND_STRUCT))
		fact(f, FACT_OK, "rstat", "cgroup_rstat_base_cpu (Linux 6.16)");
	else if (has_kind(btf, "cgroup_rstat_cpu", BTF_KIND_STRUCT))
		fact(f, FACT_OK, "rstat", "cgroup_rstat_cpu (up to Linux 6.15)");
	else
		fact(f, FACT_NO, "rstat",
		     "its per-CPU counters are not where they are known to be: "
		     "source files only");
	fact(f, nice ? FACT_OK : FACT_NA, "nice_usec",
	     nice ? "cgroup_base_stat has ntime" : "this kernel does not count it: absent");
	fact(f, idle ? FACT_OK : FACT_NA, "force_idle",
	     idle ? "cgroup_base_stat has forceidle_sum"
		  : "no CONFIG_SCHED_CORE: core_sched.force_idle_usec is absent");
	if (has_kind(btf, "btf_trace_cgroup_rstat_locked", BTF_KIND_TYPEDEF))
		fact(f, FACT_OK, "tracepoints", "cgroup_rstat_*: lock waits can be measured");
	else
		fact(f, FACT_NA, "tracepoints",
		     "no cgroup_rstat_* (Linux 6.10): lock waits cannot be "
		     "measured");
}

void facts_kernel(struct facts *f)
{
	struct btf *btf;

	fact_privilege(f);
	libbpf_set_print(quiet);
	btf = btf__load_vmlinux_btf();
	if (!btf) {
		fact(f, FACT_NO, "BTF", "/sys/kernel/btf/vmlinux: %s; source files only",
		     strerror(errno));
		return;
	}
	fact(f, FACT_OK, "BTF", "/sys/kernel/btf/vmlinux, %u types", btf__type_cnt(btf));
	facts_btf(f, btf);
	btf__free(btf);
}

/* ---- programs ---- */

/*
 * Whether this kernel has commit 6eb350a22331, "rseq: Protect event mask against membarrier IPI": Linux
 * 6.18, and of the stable ones those whose review lists name it. Debian's release says less than its
 * version.
 */
static bool barrier_is_sure(const char *release, const char *version)
{
	const char *debian = strstr(version, "Debian ");
	unsigned major = 0, minor = 0, patch = 0;

	if (!debian || sscanf(debian, "Debian %u.%u.%u", &major, &minor, &patch) != 3)
		sscanf(release, "%u.%u.%u", &major, &minor, &patch);
	if (major > 6 || (major == 6 && minor >= 18))
		return true;
	return major == 6 && ((minor == 1 && patch >= 157) || (minor == 12 && patch >= 54));
}

static void fact_barrier(struct facts *f)
{
	struct utsname u;

	if (uname(&u) == 0 && barrier_is_sure(u.release, u.version))
		fact(f, FACT_OK, "membarrier", "PRIVATE_EXPEDITED and PRIVATE_EXPEDITED_RSEQ");
	else
		fact(f, FACT_OK, "membarrier",
		     "PRIVATE_EXPEDITED and PRIVATE_EXPEDITED_RSEQ; this kernel may lack 6eb350a22331 "
		     "(Linux 6.18, 6.12.54, 6.1.157): an update beside a flush can show one flush late");
}

void facts_program(struct facts *f)
{
	unsigned long feature = getauxval(AT_RSEQ_FEATURE_SIZE);
	char text[512];
	long commands;
	int r = read_text("/sys/devices/system/cpu/possible", text, sizeof(text));

	if (r < 0)
		fact(f, FACT_NO, "CPUs", "%s", strerror(-r));
	else
		fact(f, FACT_OK, "CPUs", "possible: %s; each costs a pass some 4 ns a group", text);

	if (!__rseq_size)
		fact(f, FACT_NO, "rseq",
		     "not registered by the C library: programs that count take "
		     "the fallback slots");
	else if (feature >= RSEQ_MM_CID_END)
		fact(f, FACT_OK, "rseq", "size %u, features %lu: mm_cid, slots are dense",
		     __rseq_size, feature);
	else
		fact(f, FACT_OK, "rseq", "size %u, no mm_cid (Linux 6.3): a slot per possible CPU",
		     __rseq_size);

	commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	if (commands >= 0 && commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED &&
	    commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)
		fact_barrier(f);
	else
		fact(f, FACT_NO, "membarrier",
		     "PRIVATE_EXPEDITED%s is missing: programs that count take the fallback slots",
		     commands >= 0 && commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED ? "_RSEQ" : "");
}
