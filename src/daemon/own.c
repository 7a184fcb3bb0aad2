/* SPDX-License-Identifier: MIT */
/* Implements own.h. */
#include "daemon/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static const struct {
	uint64_t ns;
	const char *text;
} bounds[OWN_BUCKETS] = {
	{ 100000, "0.0001" },  { 200000, "0.0002" },     { 500000, "0.0005" }, { 1000000, "0.001" },
	{ 2000000, "0.002" },  { 5000000, "0.005" },     { 10000000, "0.01" }, { 20000000, "0.02" },
	{ 50000000, "0.05" },  { 100000000, "0.1" },     { 200000000, "0.2" }, { 500000000, "0.5" },
	{ 1000000000, "1.0" }, { 10000000000u, "10.0" },
};

void own_init(struct own *o, const char *source)
{
	*o = (struct own){ .source = source };
	pthread_mutex_init(&o->lock, NULL);
}

void own_destroy(struct own *o)
{
	pthread_mutex_destroy(&o->lock);
}

void own_pass(struct own *o, const struct collector_stats *stats, uint64_t took_ns, int on_demand)
{
	unsigned i = 0;

	pthread_mutex_lock(&o->lock);
	o->stats = *stats;
	if (took_ns) {
		o->on_demand += on_demand != 0;
		while (i < OWN_BUCKETS && took_ns > bounds[i].ns)
			i++;
		o->bucket[i]++;
		o->sum_ns += took_ns;
	}
	pthread_mutex_unlock(&o->lock);
}

static void render_histogram(const struct own *o, struct buf *out, enum metrics_format format)
{
	uint64_t count = 0;

	metrics_family(out, format, "freshet_pass_seconds", METRICS_HISTOGRAM, "seconds",
		       "Duration of passes over all cgroups, publication included.");
	for (unsigned i = 0; i < OWN_BUCKETS; i++) {
		count += o->bucket[i];
		buf_printf(out, "freshet_pass_seconds_bucket{le=\"%s\"} %llu\n", bounds[i].text,
			   (unsigned long long)count);
	}
	count += o->bucket[OWN_BUCKETS];
	buf_printf(out,
		   "freshet_pass_seconds_bucket{le=\"+Inf\"} %llu\n"
		   "freshet_pass_seconds_count %llu\n"
		   "freshet_pass_seconds_sum ",
		   (unsigned long long)count, (unsigned long long)count);
	buf_seconds(out, o->sum_ns);
	buf_char(out, '\n');
}

static void render_number(struct buf *out, enum metrics_format format, const char *name,
			  enum metrics_type type, uint64_t value, const char *help)
{
	metrics_family(out, format, name, type, NULL, help);
	buf_printf(out, "%s%s %llu\n", name, type == METRICS_COUNTER ? "_total" : "",
		   (unsigned long long)value);
}

/* Second number of /proc/self/statm; 0 when it cannot be read. */
static uint64_t resident_bytes(void)
{
	int fd _close_ = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128], *at;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	strtoull(text, &at, 10);
	return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void render_process(struct buf *out, enum metrics_format format)
{
	uint64_t resident = resident_bytes();
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) == 0) {
		metrics_family(out, format, "process_cpu_seconds", METRICS_COUNTER, "seconds",
			       "CPU time of this process, user and system.");
		buf_str(out, "process_cpu_seconds_total ");
		buf_seconds(out, (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
					 (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) *
						 NSEC_PER_USEC);
		buf_char(out, '\n');
	}
	if (resident) {
		metrics_family(out, format, "process_resident_memory_bytes", METRICS_GAUGE, "bytes",
			       "Resident memory of this process.");
		buf_printf(out, "process_resident_memory_bytes %llu\n",
			   (unsigned long long)resident);
	}
}

static void render_passes(const struct own *o, struct buf *out, enum metrics_format format)
{
	metrics_family(out, format, "freshet_source", METRICS_INFO, NULL,
		       "Where the numbers come from.");
	buf_printf(out, "freshet_source_info{source=\"%s\"} 1\n", o->source);
	render_histogram(o, out, format);
	render_number(out, format, "freshet_passes", METRICS_COUNTER, o->stats.passes,
		      "Passes published.");
	render_number(out, format, "freshet_on_demand_passes", METRICS_COUNTER, o->on_demand,
		      "Passes made because a client wanted younger numbers.");
	render_number(out, format, "freshet_pass_failures", METRICS_COUNTER, o->stats.failed,
		      "Passes that failed: the numbers stayed those of the pass before.");
	render_number(out, format, "freshet_groups", METRICS_GAUGE, o->stats.groups,
		      "Groups in the last pass.");
	render_number(out, format, "freshet_left_out", METRICS_GAUGE, o->stats.left_out,
		      "Groups that found no room in the last pass; see --max-groups.");
	render_number(out, format, "freshet_gone", METRICS_COUNTER, o->stats.gone,
		      "Groups that vanished while a pass looked at them.");
}

void own_render(struct own *o, struct buf *out, enum metrics_format format)
{
	metrics_family(out, format, "freshet_build", METRICS_INFO, NULL, "Version of Freshet.");
	buf_printf(out, "freshet_build_info{version=\"%s\"} 1\n", FRESHET_VERSION);
	pthread_mutex_lock(&o->lock);
	render_passes(o, out, format);
	pthread_mutex_unlock(&o->lock);
	render_process(out, format);
}
