// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * footprint PID: KiB of the process's resident memory without mapped BPF pages, and of all BPF maps
 * of the machine, as bench/facts.py has them; what they are made of in lines that begin with #.
 */
#include <bpf/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* As in bench/facts.py. */
enum kind { BPF, LIBRARIES, PROGRAM, HEAP, OTHER, KINDS };
static const char *const kinds[KINDS] = { "mapped BPF pages", "libraries", "program", "heap",
					  "other" };

static enum kind kind_of(const char *line)
{
	if (strstr(line, "anon_inode:bpf") || strstr(line, "anon_inode:[bpf"))
		return BPF;
	if (strstr(line, ".so"))
		return LIBRARIES;
	if (strstr(line, "/moted"))
		return PROGRAM;
	return strstr(line, "[heap]") ? HEAP : OTHER;
}

/* KiB without BPF's; 0: it could not be read. */
static unsigned long pss_without_bpf(const char *pid)
{
	unsigned long sum[KINDS] = { 0 }, all = 0, kib, low, high;
	char line[512], path[64];
	enum kind kind = OTHER;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/smaps", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
			kind = kind_of(line);
		else if (sscanf(line, "Pss: %lu", &kib) == 1)
			sum[kind] += kib;
	}
	if (file)
		fclose(file);
	for (int i = 0; i < KINDS; i++) {
		printf("# PSS of %s: %lu KiB\n", kinds[i], sum[i]);
		all += i == BPF ? 0 : sum[i];
	}
	return all;
}

static unsigned long long charged(int fd)
{
	unsigned long long bytes = 0;
	char line[128], path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "memlock: %llu", &bytes);
	if (file)
		fclose(file);
	return bytes;
}

static unsigned long long entries_of(int fd, uint32_t key_size)
{
	char key[64], next[64];
	unsigned long long n = 0;

	if (key_size > sizeof(key))
		return 0;
	for (void *from = NULL; !bpf_map_get_next_key(fd, from, next); n++) {
		memcpy(key, next, key_size);
		from = key;
	}
	return n;
}

/*
 * What the kernel says, but before 6.4 (90a5527d7686) not of ring buffers, whose data it leaves
 * out, and of hash tables whose entries take memory when they come: it says what all of them would.
 */
static unsigned long long bytes_of(int fd, const struct bpf_map_info *info)
{
	unsigned long long bytes = charged(fd);
	unsigned int major = 0, minor = 0;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2 || major > 6 ||
	    (major == 6 && minor >= 4))
		return bytes;
	if (info->type == BPF_MAP_TYPE_RINGBUF)
		return bytes ?: info->max_entries;
	if (info->type == BPF_MAP_TYPE_HASH && info->map_flags & BPF_F_NO_PREALLOC)
		return bytes / info->max_entries * entries_of(fd, info->key_size);
	return bytes;
}

/* Bytes of all. */
static unsigned long long maps(void)
{
	unsigned long long sum = 0;
	uint32_t id = 0;

	while (!bpf_map_get_next_id(id, &id)) {
		struct bpf_map_info info = { 0 };
		uint32_t size = sizeof(info);
		int fd = bpf_map_get_fd_by_id(id);
		unsigned long long bytes;

		if (fd < 0)
			continue;
		bytes = bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : bytes_of(fd, &info);
		printf("# map %s: %u entries, %llu KiB\n", info.name, info.max_entries,
		       bytes / 1024);
		sum += bytes;
		close(fd);
	}
	return sum;
}

int main(int argc, char **argv)
{
	unsigned long pss;

	if (argc != 2) {
		fprintf(stderr, "usage: footprint PID\n");
		return 2;
	}
	pss = pss_without_bpf(argv[1]);
	printf("%lu %llu\n", pss, maps() / 1024);
	return !pss;
}
