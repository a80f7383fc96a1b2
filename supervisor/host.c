// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The table of host collectors, see host.h. A file that this kernel does not have leaves its
 * fields absent; a read that fails is counted, and the rows stay as they were.
 */
#include "host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "filesystem.h"
#include "leaf.h"
#include "log.h"
#include "parse.h"

#define FILES_MAX   16
#define NAME_TEXT   64  /* device names */
#define PATH_TEXT   256 /* mount points */
#define LINE_TEXT   140 /* a line of /proc/net/dev or /proc/diskstats */
#define VM_TEXT     6144
#define BIT(stream) (1u << MOTE_STREAM_##stream)

struct mote_host {
	const struct mote_options *options;
	struct mote_table *tables[MOTE_STREAMS];
	struct mote_file files[FILES_MAX];
	unsigned int nfiles;
	struct mote_filesystems *filesystems;
	struct mote_leaves *leaves;
	char why[MOTE_STREAMS][64];
	uint64_t read_errors, parse_errors;
	struct mote_limit limit;
};

typedef int (*parse_fn)(struct mote_host *host, const struct mote_text *texts, uint64_t now);

static uint64_t uptime_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int parse_stat(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	int err = mote_parse_stat_cpu(texts[0], host->tables[MOTE_STREAM_CPU], now);
	int kernel = mote_parse_kernel(texts[0], texts[1], uptime_ms(),
				       host->tables[MOTE_STREAM_KERNEL], now);

	return err ? err : kernel;
}

static int parse_meminfo(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	return mote_parse_meminfo(texts[0], host->tables[MOTE_STREAM_MEMORY], now);
}

static int parse_vmstat(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	return mote_parse_vmstat(texts[0], host->tables[MOTE_STREAM_VM], now);
}

static int parse_load(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	return mote_parse_loadavg(texts[0], host->tables[MOTE_STREAM_LOAD], now);
}

static int parse_pressure(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	return mote_parse_pressure(texts, host->tables[MOTE_STREAM_PRESSURE], now);
}

/* Asked once a device, when it is first seen: the one system call of the host collectors. */
static bool is_partition(void *ctx, unsigned int major, unsigned int minor, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major, minor);
	return !access(path, F_OK);
}

static int parse_disk(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	return mote_parse_diskstats(texts[0], host->tables[MOTE_STREAM_DISK], now, is_partition,
				    NULL);
}

static int parse_netdev(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	return host->leaves ? mote_parse_netdev(texts[0], host->tables[MOTE_STREAM_NETDEV], now,
						mote_leaves_get, host->leaves)
			    : 0;
}

static int parse_filesystem(struct mote_host *host, const struct mote_text *texts, uint64_t now)
{
	if (host->filesystems)
		mote_filesystems_collect(host->filesystems, host->tables[MOTE_STREAM_FILESYSTEM],
					 now);
	return 0;
}

static const struct collector {
	const char *name;
	uint32_t streams;
	const char *files[MOTE_PRESSURES + 1]; /* the first must be there, NULL ends */
	parse_fn parse;
} collectors[] = {
	{ "stat", BIT(CPU) | BIT(KERNEL), { "/proc/stat", "/proc/sys/fs/file-nr" }, parse_stat },
	{ "meminfo", BIT(MEMORY), { "/proc/meminfo" }, parse_meminfo },
	{ "vmstat", BIT(VM), { "/proc/vmstat" }, parse_vmstat },
	{ "loadavg", BIT(LOAD), { "/proc/loadavg" }, parse_load },
	{ "pressure",
	  BIT(PRESSURE),
	  { "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
	    "/proc/pressure/irq" },
	  parse_pressure },
	{ "diskstats", BIT(DISK), { "/proc/diskstats" }, parse_disk },
	{ "netdev", BIT(NETDEV), { "/proc/net/dev" }, parse_netdev },
	{ "filesystem", BIT(FILESYSTEM), { NULL }, parse_filesystem },
};
#define COLLECTORS (sizeof(collectors) / sizeof(collectors[0]))

static unsigned int file_count(const struct collector *collector)
{
	unsigned int n = 0;

	while (collector->files[n])
		n++;
	return n;
}

static unsigned int rows_of(const struct mote_options *options, enum mote_stream_id stream)
{
	switch (stream) {
	case MOTE_STREAM_CPU:
		return 1 + (options->tables_cpus ? options->tables_cpus
						 : (unsigned int)sysconf(_SC_NPROCESSORS_CONF));
	case MOTE_STREAM_PRESSURE:
		return MOTE_PRESSURES;
	case MOTE_STREAM_DISK:
		return options->tables_disks;
	case MOTE_STREAM_NETDEV:
		return options->tables_netdevs;
	case MOTE_STREAM_FILESYSTEM:
		return options->tables_filesystems;
	default:
		return 1;
	}
}

static int open_tables(struct mote_host *host)
{
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		enum mote_stream_id stream = (enum mote_stream_id)i;

		if (!(mote_host_streams(host) & 1u << i))
			continue;
		host->tables[i] =
			mote_table_new(stream, rows_of(host->options, stream),
				       stream == MOTE_STREAM_FILESYSTEM ? PATH_TEXT : NAME_TEXT);
		if (!host->tables[i])
			return -ENOMEM;
	}
	return 0;
}

static enum mote_stream_id first_stream(unsigned int collector)
{
	return (enum mote_stream_id)__builtin_ctz(collectors[collector].streams);
}

/* Its first file cannot be opened: every stream that comes from it is absent. */
static void without(struct mote_host *host, const struct collector *collector, int err)
{
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		if (collector->streams & 1u << i)
			snprintf(host->why[i], sizeof(host->why[i]), "%s: %s", collector->files[0],
				 strerrordesc_np(-err));
	}
}

static int open_files(struct mote_host *host, bool direct)
{
	int slot = 8; /* below: the iterators' */

	for (unsigned int c = 0; c < COLLECTORS; c++) {
		for (unsigned int i = 0; i < file_count(&collectors[c]); i++) {
			struct mote_file *file = &host->files[host->nfiles++];
			int err = mote_file_open(file, collectors[c].files[i], slot++, direct);

			if (!err && collectors[c].streams & (BIT(DISK) | BIT(NETDEV)))
				err = mote_file_reserve(file, LINE_TEXT * rows_of(host->options,
										  first_stream(c)));
			else if (!err && collectors[c].streams & BIT(VM))
				err = mote_file_reserve(file, VM_TEXT);
			if (err == -ENOMEM)
				return err;
			if (err && i == 0)
				without(host, &collectors[c], err);
		}
	}
	return 0;
}

/* A thread that cannot start for what this /proc lacks leaves its stream out. */
static int thread_missing(struct mote_host *host, enum mote_stream_id stream, const char *file,
			  int err)
{
	if (!err || err == -ENOMEM || err == -EAGAIN)
		return err;
	snprintf(host->why[stream], sizeof(host->why[stream]), "%s: %s", file,
		 strerrordesc_np(-err));
	return 0;
}

static int open_threads(struct mote_host *host)
{
	const struct mote_options *options = host->options;
	int err = mote_filesystems_start(options->tables_filesystems, options->interval_filesystem,
					 &host->filesystems);

	err = thread_missing(host, MOTE_STREAM_FILESYSTEM, "/proc/self/mountinfo", err);
	if (err)
		return err;
	err = mote_leaves_start(options->tables_netdevs, &host->leaves);
	return thread_missing(host, MOTE_STREAM_NETDEV, "/proc/net/dev", err);
}

int mote_host_open(const struct mote_options *options, bool direct, struct mote_host **out)
{
	struct mote_host *host = calloc(1, sizeof(*host));
	int err;

	if (!host)
		return -ENOMEM;
	host->options = options;
	err = open_tables(host);
	if (!err)
		err = open_files(host, direct);
	if (!err)
		err = open_threads(host);
	if (err) {
		mote_host_close(host);
		return err;
	}
	*out = host;
	return 0;
}

void mote_host_close(struct mote_host *host)
{
	if (!host)
		return;
	for (unsigned int i = 0; i < host->nfiles; i++)
		mote_file_close(&host->files[i]);
	for (unsigned int i = 0; i < MOTE_STREAMS; i++)
		mote_table_free(host->tables[i]);
	if (host->filesystems)
		mote_filesystems_stop(host->filesystems);
	if (host->leaves)
		mote_leaves_stop(host->leaves);
	free(host);
}

uint32_t mote_host_streams(const struct mote_host *host)
{
	uint32_t streams = 0;

	for (unsigned int c = 0; c < COLLECTORS; c++)
		streams |= collectors[c].streams;
	return streams;
}

struct mote_table *mote_host_table(struct mote_host *host, enum mote_stream_id stream)
{
	return host->tables[stream];
}

const char *mote_host_why(const struct mote_host *host, enum mote_stream_id stream)
{
	return host->why[stream][0] ? host->why[stream] : NULL;
}

const char *mote_host_note(const struct mote_host *host)
{
	return host->leaves ? mote_leaves_note(host->leaves) : NULL;
}

uint32_t mote_host_files(const struct mote_host *host)
{
	return host->nfiles;
}

void mote_host_hold(struct mote_host *host, struct mote_engine *engine)
{
	for (unsigned int i = 0; i < host->nfiles; i++)
		mote_file_hold(&host->files[i], engine);
}

unsigned int mote_host_push(struct mote_host *host, struct mote_engine *engine, uint32_t streams)
{
	unsigned int n = 0, file = 0;

	for (unsigned int c = 0; c < COLLECTORS; c++) {
		for (unsigned int i = 0; i < file_count(&collectors[c]); i++, file++) {
			if (streams & collectors[c].streams)
				n += mote_file_push(&host->files[file], engine, file);
		}
	}
	return n;
}

void mote_host_complete(struct mote_host *host, uint32_t index, uint32_t step, int res)
{
	mote_file_complete(&host->files[index], step, res);
}

/* Whether the collector's texts are there; a file that never was is no error. */
static bool take_texts(struct mote_host *host, const struct collector *collector, unsigned int file,
		       struct mote_text *texts)
{
	bool ok = true;

	for (unsigned int i = 0; i < file_count(collector); i++) {
		struct mote_file *from = &host->files[file + i];

		texts[i] = mote_file_text(from);
		if (from->error || from->cut)
			host->read_errors++;
		if (i == 0 && (from->error || !from->buf))
			ok = false;
	}
	return ok;
}

uint32_t mote_host_parse(struct mote_host *host, uint32_t streams, uint64_t now)
{
	uint32_t sampled = 0;

	for (unsigned int c = 0, file = 0; c < COLLECTORS; c++) {
		const struct collector *collector = &collectors[c];
		struct mote_text texts[MOTE_PRESSURES] = { 0 };

		if (streams & collector->streams) {
			sampled |= collector->streams;
			if (take_texts(host, collector, file, texts) &&
			    collector->parse(host, texts, now) && !host->files[file].cut) {
				host->parse_errors++;
				mote_log_limited(&host->limit, now,
						 "%s: text that is not understood",
						 collector->files[0]);
			}
		}
		file += file_count(collector);
	}
	return sampled;
}

void mote_host_stats(const struct mote_host *host, struct mote_host_stats *stats)
{
	*stats = (struct mote_host_stats){
		.read_errors = host->read_errors,
		.parse_errors = host->parse_errors,
		.filesystems_dropped =
			host->filesystems ? mote_filesystems_dropped(host->filesystems) : 0,
	};
}
