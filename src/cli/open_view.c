/* SPDX-License-Identifier: MIT */
/* Implements open_view.h. */
#include "cli/open_view.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/where.h"
#include "cli/commands.h"
#include "source/collector.h"
#include "source/mount.h"
#include "view/guard.h"
#include "view/safe.h"
#include "view/segments.h"
#include "view/top_screen.h"

#define REFRESH_TIMEOUT_NS (2 * NSEC_PER_SEC)
#define SHORTEST_LIMIT_NS  (2 * NSEC_PER_SEC)
#define UNASKED_LIMIT_NS   (10 * NSEC_PER_SEC) /* a slow producer of older numbers is asked */
#define REASON_SIZE        600

int complain(const char *path, const char *reason)
{
	struct buf b = BUF_INIT;

	safe_name(&b, path, false);
	buf_str(&b, ": ");
	safe_name(&b, reason, false);
	fprintf(stderr, "freshet: %.*s\n", (int)b.len, b.len ? b.data : "");
	buf_free(&b);
	return 1;
}

/* The file that was attached last: the only one that is read without a guard. */
static char attached[FRESHET_PATH_MAX];

int open_view_attach(const char *file, struct freshet_view **ret)
{
	snprintf(attached, sizeof(attached), "%s", file);
	return freshet_attach(file, ret);
}

/* The reader of a segment was interrupted, nothing that holds a lock: the handler may call anything. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	if (guard_fault(info))
		return;
	if (info->si_code != BUS_ADRERR || !*attached) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	top_screen_close();
	complain(attached, "the segment was cut short while it was read");
	_exit(EXIT_FAILED);
}

void open_view_catch(void)
{
	const struct sigaction act = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

	sigaction(SIGBUS, &act, NULL);
}

int open_view_stopped(const struct freshet_view *view, uint64_t timeout_ns)
{
	struct freshet_producer_info info;
	uint64_t age_ns, limit_ns;
	int r = freshet_producer_info(view, &info);

	if (r == 0)
		r = freshet_age(view, &age_ns);
	if (r < 0 || !info.interval_ns)
		return r;
	limit_ns = info.interval_ns < UINT64_MAX / 3 ? 3 * info.interval_ns : UINT64_MAX;
	if (limit_ns < SHORTEST_LIMIT_NS)
		limit_ns = SHORTEST_LIMIT_NS;
	if (age_ns > limit_ns)
		return 1;
	if (age_ns <= UNASKED_LIMIT_NS)
		return 0;
	/* one that takes no requests is believed for its three intervals */
	return freshet_refresh(view, UNASKED_LIMIT_NS, timeout_ns) == -ETIMEDOUT;
}

void open_view_path(const struct open_view *o, const char *in_view, char *buf, size_t size)
{
	bool root = !strcmp(in_view, "/");

	snprintf(buf, size, "%s%s", o->prefix, root && o->prefix[0] ? "" : in_view);
}

/* Why the segment's numbers must not be shown as current, into reason; false: they may. */
static bool outdated(const struct freshet_view *view, char *reason)
{
	struct freshet_producer_info info;
	uint64_t age_ns;
	int r = freshet_producer(view), stopped;

	if (r < 0) {
		snprintf(reason, REASON_SIZE, "its producer cannot be asked for: %s", strerror(-r));
		return true;
	}
	if (r != FRESHET_ALIVE) {
		snprintf(reason, REASON_SIZE, "its producer has ended");
		return true;
	}
	stopped = open_view_stopped(view, REFRESH_TIMEOUT_NS);
	r = stopped < 0 ? stopped : freshet_producer_info(view, &info);
	if (r == 0)
		r = freshet_age(view, &age_ns);
	if (r < 0) {
		snprintf(reason, REASON_SIZE, "%s", strerror(-r));
		return true;
	}
	if (!stopped)
		return false;
	snprintf(reason, REASON_SIZE, "its producer (pid %d) stopped publishing %.1f s ago",
		 info.pid, (double)age_ns / 1e9);
	return true;
}

/* Attaches file, if it is alive and young. 0, or -errno and a reason. */
static int attach(const char *file, const struct open_options *options, struct open_view *ret,
		  char *reason)
{
	struct freshet_producer_info info;
	uint64_t age_ns;
	int r = open_view_attach(file, &ret->view);

	if (r < 0) {
		snprintf(reason, REASON_SIZE, "%s%s", segments_error(r),
			 r == -ENOENT ? "; freshet ls --segments lists those that there are" : "");
		return r;
	}
	r = -ESTALE;
	if (outdated(ret->view, reason))
		goto fail;
	r = freshet_age(ret->view, &age_ns);
	if (r == 0 && age_ns > options->max_age_ns)
		r = freshet_refresh(ret->view, options->max_age_ns, REFRESH_TIMEOUT_NS);
	if (r < 0) {
		snprintf(reason, REASON_SIZE, "it has no numbers that young: %s", strerror(-r));
		goto fail;
	}
	if (freshet_producer_info(ret->view, &info) == 0)
		snprintf(ret->source, sizeof(ret->source), "%s", info.name);
	return 0;
fail:
	freshet_detach(ret->view);
	ret->view = NULL;
	return r;
}

/*
 * Finds the cgroup of directory dir, which is path below the mount, in a segment that may hold the
 * whole hierarchy or a part of it: its root is known by its inode.
 */
static int locate(struct open_view *o, const char *mount, const char *path)
{
	struct freshet_group root;
	struct freshet_info info;
	char dir[2 * FRESHET_PATH_MAX];
	struct stat st;
	size_t len = 0;
	int r = freshet_root(o->view, &root);

	if (r == 0)
		r = freshet_info(o->view, root, &info);
	if (r < 0)
		return r;
	/* the mount point, then each ancestor of path, then path itself */
	for (;;) {
		snprintf(dir, sizeof(dir), "%s%.*s", mount, (int)len, path);
		if (stat(dir, &st) == 0 && st.st_ino == info.id)
			break;
		if (!path[len] || !path[len + 1])
			return -EXDEV;
		len += 1 + strcspn(path + len + 1, "/");
	}
	snprintf(o->prefix, sizeof(o->prefix), "%.*s", (int)len, path);
	snprintf(o->target, sizeof(o->target), "%s", path[len] ? path + len : "/");
	for (int again = 0;; again++) {
		struct freshet_group group;

		r = freshet_find(o->view, o->target, &group);
		if (r != -ENOENT || again)
			return r;
		/* it may be younger than the last pass */
		r = freshet_refresh(o->view, 0, REFRESH_TIMEOUT_NS);
		if (r < 0)
			return r;
	}
}

/* One pass of our own, over the subtree asked for. */
static int collect(const char *path, const char *reason, struct open_view *ret)
{
	struct collector_options c = {
		.size = sizeof(c),
		.root = strcmp(path, "/") ? path : NULL,
		.source = COLLECT_AUTO,
		.producer = "freshet",
	};
	char why[512];
	int r = collector_open(&c, &ret->collector, why, sizeof(why));

	if (r < 0) {
		complain("no numbers", why);
		return r;
	}
	r = collector_pass(ret->collector);
	if (r == 0)
		r = freshet_attach_fd(collector_fd(ret->collector), &ret->view);
	if (r < 0) {
		complain(path, r == -ENODEV || r == -ENOENT ? "no such cgroup" : strerror(-r));
		collector_close(ret->collector);
		return r;
	}
	snprintf(ret->prefix, sizeof(ret->prefix), "%s", strcmp(path, "/") ? path : "");
	snprintf(ret->target, sizeof(ret->target), "/");
	snprintf(ret->source, sizeof(ret->source), "in-process (%s)",
		 collector_source_name(ret->collector));
	/* files cost more: why they were taken belongs there */
	if (strcmp(collector_source_name(ret->collector), "files") != 0)
		snprintf(why, sizeof(why), "%s", collector_source_name(ret->collector));
	fprintf(stderr, "freshet: %s; collecting in-process (%s)\n", reason, why);
	return 0;
}

/* The host's numbers: from serve, or else our own. */
static int open_host(const struct open_options *options, struct open_view *ret)
{
	struct cgroup_mount mount;
	char file[FRESHET_PATH_MAX], dir[FRESHET_PATH_MAX], path[FRESHET_PATH_MAX];
	char why[REASON_SIZE], reason[REASON_SIZE + 64];
	const char *asked = options->path ? options->path : "/";
	int r;

	r = mount_find(&mount);
	if (r < 0) {
		complain("cgroup2", r == -ENOENT ? "not mounted here (mount -t cgroup2 none DIR)"
						 : strerror(-r));
		return r;
	}
	r = mount_resolve(&mount, options->path, dir, sizeof(dir));
	if (r == 0)
		r = mount_relative(&mount, options->path, path, sizeof(path));
	if (r < 0) {
		complain(asked, r == -ENOENT   ? "no such cgroup"
				: r == -EINVAL ? "a path may not have . or .. as a part"
					       : strerror(-r));
		return r;
	}
	r = where_segment(WHERE_DEFAULT, file, sizeof(file));
	if (r == 0)
		r = attach(file, options, ret, why);
	if (r == -ENOENT && where_system_segment(WHERE_DEFAULT, file, sizeof(file)) == 0)
		r = attach(file, options, ret, why);
	if (r == 0) {
		r = locate(ret, mount.path, path);
		if (r == 0)
			return 0;
		freshet_detach(ret->view);
		ret->view = NULL;
		snprintf(why, sizeof(why), "%s",
			 r == -EXDEV    ? "it does not hold this part of the hierarchy"
			 : r == -ENOENT ? "it does not hold this cgroup"
					: strerror(-r));
		snprintf(reason, sizeof(reason), "segment %.64s: %s", WHERE_DEFAULT, why);
	} else if (r == -ENOENT) {
		snprintf(reason, sizeof(reason), "serve is not running");
	} else {
		snprintf(reason, sizeof(reason), "segment %.64s: %s", WHERE_DEFAULT, why);
	}
	return collect(path, reason, ret);
}

int open_view(const struct open_options *options, struct open_view *ret)
{
	char file[FRESHET_PATH_MAX], reason[REASON_SIZE];
	struct freshet_group group;
	int r, len;

	*ret = (struct open_view){ 0 };
	if (!options->segment || !strcmp(options->segment, WHERE_DEFAULT))
		return open_host(options, ret);

	r = where_segment(options->segment, file, sizeof(file));
	if (r < 0) {
		complain(options->segment, r == -EINVAL ? "not a name of a segment" : strerror(-r));
		return r;
	}
	r = attach(file, options, ret, reason);
	if (r == -ENOENT && where_system_segment(options->segment, file, sizeof(file)) == 0)
		r = attach(file, options, ret, reason);
	if (r < 0) {
		complain(file, reason);
		return r;
	}
	len = snprintf(ret->target, sizeof(ret->target), "%s%s",
		       options->path && options->path[0] == '/' ? "" : "/",
		       options->path ? options->path : "");
	if (len < 0 || (size_t)len >= sizeof(ret->target))
		r = -ENAMETOOLONG;
	else
		r = freshet_find(ret->view, ret->target, &group);
	if (r == 0) /* without a second slash */
		r = freshet_path(ret->view, group, ret->target, sizeof(ret->target));
	if (r < 0) {
		complain(ret->target, r == -ENOENT   ? "no such group in the segment"
				      : r == -EINVAL ? "a path may not have . or .. as a part"
						     : strerror(-r));
		open_view_close(ret);
		return r;
	}
	return 0;
}

void open_view_close(struct open_view *o)
{
	freshet_detach(o->view);
	collector_close(o->collector);
	*o = (struct open_view){ 0 };
}
