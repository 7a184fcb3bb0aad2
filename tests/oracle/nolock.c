/* SPDX-License-Identifier: MIT */
/*
 * The daemon's passes take no rstat lock and flush nothing: counted by BPF in the kernel over 10,000
 * passes of a real `freshet serve` while cgroups burn, appear and vanish. FRESHET: the program.
 */
#include <errno.h>
#include <stdbool.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <freshet/freshet.h>

#include "base/clock.h"
#include "meter.skel.h"
#include "oracle/cg.h"

#define PASSES 10000 /* FRESHET_TEST_SCALE times that, for slow guests */

static struct meter_bpf *meter;
static bool counts_flushes; /* some kernels refuse fentry; a flush takes the lock all the same */

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

static void nap_ms(unsigned ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

static int meter_load(bool flushes)
{
	meter = meter_bpf__open();
	if (!meter)
		return -errno;
	bpf_program__set_autoload(meter->progs.count_flush, flushes);
	if (meter_bpf__load(meter) || meter_bpf__attach(meter)) {
		meter_bpf__destroy(meter);
		return -EPERM;
	}
	return 0;
}

/* NULL, or why nothing can be counted here. */
static const char *meter_start(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int tracepoint;

	if (!btf)
		return "no BTF";
	tracepoint = btf__find_by_name_kind(btf, "btf_trace_cgroup_rstat_locked", BTF_KIND_TYPEDEF);
	counts_flushes = btf__find_by_name_kind(btf, "css_rstat_flush", BTF_KIND_FUNC) > 0;
	btf__free(btf);
	if (tracepoint <= 0)
		return "the kernel has no tracepoint cgroup_rstat_locked (6.10)";
	libbpf_set_print(quiet);
	counts_flushes = counts_flushes && !meter_load(true);
	if (!counts_flushes && meter_load(false))
		return "BPF tracing is not allowed here";
	printf("# counting locks%s\n",
	       counts_flushes ? " and flushes" : "; flushes cannot be counted apart");
	return NULL;
}

TEST(daemon_takes_no_rstat_lock)
{
	const char *cannot = NULL, *bin = getenv("FRESHET");
	const char *scale = getenv("FRESHET_TEST_SCALE");
	struct freshet_moment first = { 0 }, now = { 0 };
	struct freshet_view *view = NULL;
	uint64_t deadline, passes = (uint64_t)(scale ? atof(scale) * PASSES : PASSES);
	char segment[64];
	struct cg_stat k;
	pid_t daemon, burner;

	if (!bin)
		SKIP("FRESHET is not set");
	if (!cg_home(&cannot) || (cannot = meter_start()))
		SKIP(cannot);

	/* The meter meters: reading a cgroup's cpu.stat does both. */
	meter->bss->target = getpid();
	EXPECT_EQ(cg_make("n"), 0);
	burner = cg_burn("n", CG_MIXED);
	for (int i = 0; i < 10; i++) {
		nap_ms(10);
		EXPECT_EQ(cg_read("n", &k), 0);
	}
	EXPECT(meter->bss->locked >= 10);
	EXPECT(!counts_flushes || meter->bss->flushed >= 10);

	snprintf(segment, sizeof(segment), "/run/freshet-nolock-%d/host", (int)getpid());
	*strrchr(segment, '/') = 0;
	EXPECT_EQ(mkdir(segment, 0755), 0);
	segment[strlen(segment)] = '/';

	meter->bss->target = 0;
	daemon = fork();
	if (!daemon) {
		meter->bss->target = getpid();
		execl(bin, bin, "serve", "--source", "bpf", "--interval", "1ms", "--listen",
		      "127.0.0.1:0", "--segment", segment, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 500 && freshet_attach(segment, &view) < 0; i++)
		nap_ms(10);
	EXPECT(view, "no segment at %s", segment);
	/* Opening may read what it likes; what is promised is about passes. */
	meter->bss->locked = meter->bss->flushed = 0;
	if (view)
		EXPECT_EQ(freshet_last_pass(view, &first), 0);
	deadline = clock_ns() + 60 * NSEC_PER_SEC;
	for (int i = 0; view && clock_ns() < deadline; i++) {
		char name[32];

		freshet_last_pass(view, &now);
		if (now.pass >= first.pass + passes)
			break;
		snprintf(name, sizeof(name), "n/%d", i);
		cg_make(name);
		nap_ms(20);
		cg_remove(name);
	}
	printf("# %llu passes: %llu locks, %llu flushes\n",
	       (unsigned long long)(now.pass - first.pass), meter->bss->locked,
	       meter->bss->flushed);
	EXPECT(now.pass >= first.pass + passes);
	EXPECT_EQ(meter->bss->locked, 0);
	EXPECT_EQ(meter->bss->flushed, 0);
	EXPECT_EQ(kill(daemon, 0), 0);

	freshet_detach(view);
	kill(daemon, SIGTERM);
	waitpid(daemon, NULL, 0);
	cg_kill(burner);
	*strrchr(segment, '/') = 0;
	{
		char lock[80];

		snprintf(lock, sizeof(lock), "%s/host.lock", segment);
		unlink(lock);
	}
	EXPECT_EQ(rmdir(segment), 0);
}

TAP_MAIN
