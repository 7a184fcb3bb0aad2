/* SPDX-License-Identifier: MIT */
/* freshet_refresh() against servers that answer, lie, are slow, or go away. */
#include "tap.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "core/refresh.h"
#include "unit/segment_help.h"

enum manner {
	ANSWER,   /* a pass, then its reply */
	STALE,    /* the reply without the pass */
	REFUSE,   /* -ETIMEDOUT in the reply */
	SHORT,    /* half a reply */
	POSITIVE, /* a result that is no errno */
	SILENT,   /* no reply until the client has gone */
	HANG_UP,
};

static struct {
	char *dir, *path;
	struct writer *w;
	struct freshet_view *v;
	int listener;
	enum manner manner;
	struct refresh_request request; /* the last one */
} s;

/* Serves one client in its manner. */
static void *serve(void *arg)
{
	struct refresh_reply reply = { 0 };
	size_t len = sizeof(reply);
	int fd = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0 || recv(fd, &s.request, sizeof(s.request), 0) != sizeof(s.request))
		abort();
	switch (s.manner) {
	case ANSWER:
		writer_begin(s.w, clock_ns());
		reply.pass = writer_publish(s.w, clock_ns());
		break;
	case REFUSE:
		reply.result = -ETIMEDOUT;
		break;
	case SHORT:
		len = 8;
		break;
	case POSITIVE:
		reply.result = 1;
		break;
	case SILENT:
		poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 10000);
		len = 0;
		break;
	case STALE:
		break;
	case HANG_UP:
		len = 0;
		break;
	}
	if (len && send(fd, &reply, len, MSG_NOSIGNAL) != (ssize_t)len)
		abort();
	close(fd);
	return NULL;
}

static int refresh(enum manner manner, uint64_t max_age, uint64_t timeout)
{
	pthread_t thread;
	int r;

	s.manner = manner;
	if (pthread_create(&thread, NULL, serve, NULL))
		abort();
	r = freshet_refresh(s.v, max_age, timeout);
	pthread_join(thread, NULL);
	return r;
}

static int set_up(const char *socket_name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct writer_options o = help_options(10);
	struct writer_node n = { 1, "", 0, WRITER_NEW };

	s.dir = help_dir();
	s.path = help_path(s.dir, "seg");
	o.socket = socket_name;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/test.sock", s.dir);
	s.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s.listener < 0 || bind(s.listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(s.listener, 1) || writer_open(s.path, &o, &s.w))
		return -1;
	help_pass(s.w, &n, 1, 1);
	return freshet_attach(s.path, &s.v);
}

static void tear_down(void)
{
	char *path = help_path(s.dir, "test.sock");

	freshet_detach(s.v);
	writer_close(s.w);
	if (s.listener >= 0)
		close(s.listener);
	unlink(path);
	rmdir(s.dir);
	free(path);
	free(s.path);
	free(s.dir);
}

TEST(answers)
{
	struct freshet_moment m;
	uint64_t before;

	REQUIRE(set_up("test.sock") == 0);
	before = clock_ns();
	EXPECT_EQ(refresh(ANSWER, 5, 7 * NSEC_PER_SEC), 0);
	EXPECT_EQ(s.request.magic, REFRESH_MAGIC);
	EXPECT_EQ(s.request.version, REFRESH_VERSION);
	EXPECT_EQ(s.request.max_age_ns, 5);
	EXPECT(s.request.timeout_ns <= 7 * NSEC_PER_SEC && s.request.timeout_ns > 0);
	EXPECT_EQ(freshet_last_pass(s.v, &m), 0);
	EXPECT_EQ(m.pass, 2);
	EXPECT(m.begin_ns >= before);
	/* Young enough already: nobody is asked (nobody would answer). */
	EXPECT_EQ(freshet_refresh(s.v, 3600 * NSEC_PER_SEC, 0), 0);
	EXPECT_EQ(freshet_refresh(s.v, UINT64_MAX, UINT64_MAX), 0);
	EXPECT_EQ(refresh(ANSWER, 0, UINT64_MAX), 0);
	tear_down();
}

TEST(other_replies)
{
	REQUIRE(set_up("test.sock") == 0);
	EXPECT_EQ(refresh(REFUSE, 0, NSEC_PER_SEC), -ETIMEDOUT);
	EXPECT_EQ(refresh(STALE, 0, NSEC_PER_SEC), -ECONNREFUSED);
	EXPECT_EQ(refresh(SHORT, 0, NSEC_PER_SEC), -EIO);
	EXPECT_EQ(refresh(POSITIVE, 0, NSEC_PER_SEC), -EIO);
	EXPECT_EQ(refresh(HANG_UP, 0, NSEC_PER_SEC), -ECONNREFUSED);
	tear_down();
}

TEST(silence)
{
	uint64_t before, took;

	REQUIRE(set_up("test.sock") == 0);
	before = clock_ns();
	EXPECT_EQ(refresh(SILENT, 0, 30 * NSEC_PER_MSEC), -ETIMEDOUT);
	took = clock_ns() - before;
	EXPECT(took >= 30 * NSEC_PER_MSEC && took < 5 * NSEC_PER_SEC, "%llu",
	       (unsigned long long)took);
	/* Nobody accepts: first the answer does not come, then the queue is full. */
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(freshet_refresh(s.v, 0, 5 * NSEC_PER_MSEC), -ETIMEDOUT);
	/* Nobody listens; nothing is there. */
	close(s.listener);
	s.listener = -1;
	EXPECT_EQ(freshet_refresh(s.v, 0, NSEC_PER_SEC), -ECONNREFUSED);
	tear_down();
}

TEST(no_socket)
{
	REQUIRE(set_up(NULL) == 0);
	EXPECT_EQ(freshet_refresh(s.v, 0, NSEC_PER_SEC), -EOPNOTSUPP);
	tear_down();
	REQUIRE(set_up("other.sock") == 0);
	EXPECT_EQ(freshet_refresh(s.v, 0, NSEC_PER_SEC), -ECONNREFUSED);
	tear_down();
}

TAP_MAIN
