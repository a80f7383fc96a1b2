// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The only place that knows the skeletons; of these just the images are used.
 */
#include "probes_network_object.h"

#include <errno.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "net_fentry.skel.h"
#include "net_kprobe.skel.h"
#include "probes_attach.h"
#ifdef __aarch64__
#	include "net_fentry_fetch.skel.h"
#	include "net_kprobe_fetch.skel.h"
#endif

struct image {
	enum mote_net_set set;
	unsigned int since; /* major << 8 | minor */
	const void *(*bytes)(size_t *size);
};

/* For the newest kernels first. On arm64 plain atomic adds order nothing, and 5.10 has no other. */
static const struct image images[] = {
#ifdef __aarch64__
	{ MOTE_NET_SET_FENTRY, 6 << 8 | 1, net_fentry_fetch_bpf__elf_bytes },
	{ MOTE_NET_SET_KPROBE, 6 << 8 | 1, net_kprobe_fetch_bpf__elf_bytes },
#endif
	{ MOTE_NET_SET_FENTRY, 0, net_fentry_bpf__elf_bytes },
	{ MOTE_NET_SET_KPROBE, 0, net_kprobe_bpf__elf_bytes },
};

#define IMAGES (sizeof(images) / sizeof(images[0]))

int mote_net_object_open(enum mote_net_set set, unsigned int version, const char *btf,
			 struct bpf_object **object)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "mote_net",
		    .btf_custom_path = *btf ? btf : NULL);
	const void *image = NULL;
	size_t size = 0;

	for (unsigned int i = 0; !image && i < IMAGES; i++) {
		if (images[i].set == set && version >= images[i].since)
			image = images[i].bytes(&size);
	}
	*object = bpf_object__open_mem(image, size, &opts);
	return *object ? 0 : -errno;
}

static const struct btf_var_secinfo *find(const struct btf *btf, const char *name)
{
	int section = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *type = section < 0 ? NULL : btf__type_by_id(btf, (__u32)section);
	const struct btf_var_secinfo *var = type ? btf_var_secinfos(type) : NULL;
	const struct btf_type *of;

	for (unsigned int i = 0; type && i < btf_vlen(type); i++) {
		of = btf__type_by_id(btf, var[i].type);
		if (of && !strcmp(btf__name_by_offset(btf, of->name_off), name))
			return &var[i];
	}
	return NULL;
}

int mote_net_object_set(struct bpf_object *object, const char *name, const void *value, size_t size)
{
	const struct btf_var_secinfo *var = find(bpf_object__btf(object), name);
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	size_t len = 0;
	char *data = map ? (char *)bpf_map__initial_value(map, &len) : NULL;

	if (!var || !data)
		return -ENOENT;
	if (var->size != size || var->offset + size > len)
		return -EINVAL;
	memcpy(data + var->offset, value, size);
	return 0;
}

void mote_net_object_forget(void)
{
	const void *image;
	size_t size;

	for (unsigned int i = 0; i < IMAGES; i++) {
		image = images[i].bytes(&size);
		mote_probes_forget_image(image, size);
	}
}
