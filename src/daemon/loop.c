/* SPDX-License-Identifier: MIT */
/*
 * Implements loop.h. Nothing that fails while running ends the daemon: a pass that fails leaves the
 * last numbers in place, with their age, and the next tick tries again.
 */
#include "daemon/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/notify.h"
#include "daemon/prompt.h"
#include "daemon/say.h"

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

/* Every interval from now on. */
static int start_timer(int fd, uint64_t interval_ns)
{
	struct itimerspec t = { timespec_of(interval_ns), timespec_of(interval_ns) };

	return timerfd_settime(fd, 0, &t, NULL) < 0 ? -errno : 0;
}

/* Descriptors are told apart by the address of the field they are in. */
static int watch(struct daemon *d, int *fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = fd };

	if (*fd < 0)
		return -errno;
	return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, *fd, &e) < 0 ? -errno : 0;
}

int loop_init(struct daemon *d)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_mutex_init(&d->lock, NULL);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->signal_fd = d->wake_fd = d->pass_fd = d->demand_fd = d->tick_fd = -1;
	if (d->epoll_fd < 0)
		return -errno;
	r = -pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (r < 0)
		return r;

	d->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	r = watch(d, &d->signal_fd);
	if (r < 0)
		return r;
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = watch(d, &d->wake_fd);
	if (r < 0)
		return r;
	d->pass_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = watch(d, &d->pass_fd);
	if (r < 0)
		return r;
	d->demand_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = watch(d, &d->demand_fd);
	if (r < 0)
		return r;
	d->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return watch(d, &d->tick_fd);
}

void loop_destroy(struct daemon *d)
{
	int fds[] = { d->epoll_fd, d->signal_fd, d->wake_fd, d->pass_fd, d->demand_fd, d->tick_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_mutex_destroy(&d->lock);
}

void loop_want(void *daemon, uint64_t since_ns)
{
	struct daemon *d = daemon;
	uint64_t one = 1;

	pthread_mutex_lock(&d->lock);
	demand_ask(&d->demand, since_ns);
	pthread_mutex_unlock(&d->lock);
	/* Fails only when the counter is full, and then it wakes already. */
	if (write(d->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* One line, and one word to the service manager, when passes begin to fail and when they work again.
 * The first must work. */
static void report(struct daemon *d, int error)
{
	if (error == d->failing)
		return;
	if (error < 0)
		say("freshet serve: %spass failed: %s%s%s", d->view ? "" : "the first ",
		    strerror(-error), error == -ENODEV ? " (is the root cgroup gone?)" : "",
		    d->view ? "; serving the last numbers with their age, and trying again" : "");
	else
		say("freshet serve: passes work again");
	notify("STATUS=%s%s", error < 0 ? "Passes fail: " : "Passes work again",
	       error < 0 ? strerror(-error) : "");
	d->failing = error;
}

/* One line when groups begin to be left out, and when all are there again; the first pass's is in
 * the line that says how the daemon has started. */
static void report_room(struct daemon *d, uint32_t left_out)
{
	if (d->http && left_out && !d->left_out)
		say("freshet serve: " LEFT_OUT, left_out, d->place.options.max_groups);
	else if (d->http && !left_out && d->left_out)
		say("freshet serve: no groups are left out any more");
	d->left_out = left_out;
}

/* The view of the present segment. */
static int attach(struct daemon *d)
{
	struct freshet_view *view, *old = d->view;
	int r;

	if (old && !d->moved)
		return 0;
	r = freshet_attach_fd(collector_fd(d->collector), &view);
	if (r < 0)
		return r;
	d->view = view;
	d->moved = false;
	if (d->http)
		http_view(d->http, view);
	freshet_detach(old);
	return 0;
}

int loop_pass(struct daemon *d, int on_demand)
{
	struct collector_stats stats;
	struct freshet_moment moment;
	int error = collector_pass(d->collector);
	uint64_t cpu, now;

	if (error == 0)
		error = attach(d);
	if (error == 0)
		error = freshet_last_pass(d->view, &moment);
	collector_stats(d->collector, &stats);
	own_pass(&d->own, &stats, error == 0 ? stats.last_ns : 0, on_demand);

	/* With all that this thread did since the pass before: waking up, taking requests in, and
	 * letting those go who waited. */
	now = thread_cpu_ns();
	cpu = now - d->cpu_ns;
	d->cpu_ns = now;

	pthread_mutex_lock(&d->lock);
	if (error == 0)
		demand_done(&d->demand, moment.begin_ns, cpu, on_demand);
	else
		demand_failed(&d->demand, clock_ns(), cpu, on_demand);
	pthread_mutex_unlock(&d->lock);

	report(d, error);
	if (error < 0)
		return error;
	if (d->http)
		http_published(d->http);
	report_room(d, stats.left_out);
	if (d->refresh)
		refresh_published(d->refresh, moment.begin_ns, moment.pass);
	return 0;
}

/* Makes a pass on demand if one is due, else sets the timer for when it will be. */
static void serve_demand(struct daemon *d)
{
	struct itimerspec t = { 0 };
	uint64_t now = clock_ns(), due;

	pthread_mutex_lock(&d->lock);
	due = demand_due(&d->demand, now);
	pthread_mutex_unlock(&d->lock);
	if (due <= now) {
		loop_pass(d, 1);
		now = clock_ns();
		pthread_mutex_lock(&d->lock);
		due = demand_due(&d->demand, now);
		pthread_mutex_unlock(&d->lock);
	}
	if (due != DEMAND_NEVER)
		t.it_value = timespec_of(due);
	timerfd_settime(d->demand_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void tick(struct daemon *d, bool watchdog)
{
	place_check(d);
	programs_look(d->programs, d);
	http_tick(d->http);
	if (d->refresh)
		refresh_tick(d->refresh, clock_ns());
	if (watchdog)
		notify("WATCHDOG=1");
}

/* Somebody speaks to the refresh socket. */
static void take_requests(struct daemon *d)
{
	struct freshet_moment moment = { 0 };
	uint64_t since;

	if (freshet_last_pass(d->view, &moment) < 0)
		moment.begin_ns = 0;
	since = refresh_ready(d->refresh, clock_ns(), moment.begin_ns, moment.pass);
	if (!since)
		return;
	pthread_mutex_lock(&d->lock);
	demand_ask(&d->demand, since);
	pthread_mutex_unlock(&d->lock);
}

/* Empties a timer or an event counter. */
static bool fired(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count);
}

int loop_run(struct daemon *d)
{
	uint64_t watchdog = notify_watchdog_ns();
	bool stop = false;
	int r;

	prompt_thread();
	r = start_timer(d->pass_fd, d->interval_ns);
	if (r == 0)
		r = start_timer(d->tick_fd,
				watchdog && watchdog < NSEC_PER_SEC ? watchdog : NSEC_PER_SEC);
	while (r == 0 && !stop) {
		struct epoll_event events[16];
		bool scheduled = false;
		int n = epoll_wait(d->epoll_fd, events, 16, -1);

		if (n < 0 && errno != EINTR)
			r = -errno;
		for (int i = 0; i < n; i++) {
			const void *what = events[i].data.ptr;

			if (what == &d->signal_fd)
				stop = true;
			else if (what == &d->pass_fd)
				scheduled = fired(d->pass_fd);
			else if (what == &d->tick_fd && fired(d->tick_fd))
				tick(d, watchdog != 0);
			else if (what == &d->wake_fd)
				fired(d->wake_fd);
			else if (what == &d->demand_fd)
				fired(d->demand_fd);
			else if (d->refresh && what == d->refresh)
				take_requests(d);
		}
		if (stop)
			break;
		if (scheduled)
			loop_pass(d, 0);
		serve_demand(d);
	}
	return r;
}
