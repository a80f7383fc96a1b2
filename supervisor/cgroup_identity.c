// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Rules from a cgroup's path to container, pod and unit, see docs/CGROUPS.md, which lists them with
 * examples. A path is looked at from the root on: what a deeper component says of a container or a
 * pod takes the place of what was found before.
 */
#include "cgroup_identity.h"

#include <stdbool.h>
#include <string.h>

#define CONTAINER_LEN 64
#define POD_HASH_LEN  32 /* of a pod from a file on the node: an MD5 */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool all_hex(struct mote_text text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!is_hex(text.data[i]))
			return false;
	}
	return true;
}

static bool begins(struct mote_text text, const char *with)
{
	size_t len = strlen(with);

	return text.len >= len && !memcmp(text.data, with, len);
}

static bool ends(struct mote_text text, const char *with)
{
	size_t len = strlen(with);

	return text.len > len && !memcmp(text.data + text.len - len, with, len);
}

static bool is(struct mote_text text, const char *name)
{
	return text.len == strlen(name) && begins(text, name);
}

static struct mote_text skip(struct mote_text text, size_t n)
{
	return (struct mote_text){ text.data + n, text.len - n };
}

static struct mote_text cut(struct mote_text text, size_t n)
{
	return (struct mote_text){ text.data, text.len - n };
}

/* What is before the id in the component, or the component before: whose container it is. */
static const struct {
	const char *before, *runtime;
} prefixes[] = {
	{ "docker", "docker" },         { "cri-containerd", "containerd" },
	{ "nerdctl", "containerd" },    { "crio", "cri-o" },
	{ "libpod", "podman" },         { "libpod_parent", "podman" },
	{ "containerd", "containerd" },
};

static const char *runtime_of(struct mote_text name)
{
	for (unsigned int i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (is(name, prefixes[i].before))
			return prefixes[i].runtime;
	}
	return NULL;
}

/* `PREFIX-ID.scope`, `PREFIX-ID`, `SLICE:PREFIX:ID`, or ID alone. */
static void take_container(struct mote_text component, struct mote_text parent,
			   struct mote_cgroup_identity *out)
{
	struct mote_text name = ends(component, ".scope") ? cut(component, 6) : component;
	struct mote_text id, before;
	const char *runtime;

	if (name.len < CONTAINER_LEN)
		return;
	id = skip(name, name.len - CONTAINER_LEN);
	if (!all_hex(id))
		return;
	before = cut(name, CONTAINER_LEN);
	if (!before.len) {
		runtime = runtime_of(parent);
	} else if (before.data[before.len - 1] == '-' || before.data[before.len - 1] == ':') {
		const char *colon;

		before = cut(before, 1);
		colon = memrchr(before.data, ':', before.len);
		if (colon)
			before = skip(before, (size_t)(colon + 1 - before.data));
		runtime = runtime_of(before);
		if (!runtime) /* conmon's own cgroup, for one, has the id of what it watches */
			return;
	} else {
		return;
	}
	out->container = id;
	out->runtime = runtime;
}

/* 8-4-4-4-12, parted by `-` or, where systemd takes a dash for a level, by `_`. */
static bool is_uuid(struct mote_text text)
{
	if (text.len != MOTE_POD_UID_LEN)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		char c = text.data[i];

		if (dash ? c != '-' && c != '_' : !is_hex(c))
			return false;
	}
	return true;
}

/* `[PREFIX-]kubepods[-QOS]-podUID.slice`: what is after `pod`; empty: it is no such name. */
static struct mote_text pod_of_slice(struct mote_text name)
{
	static const char *const before[] = { "-burstable-pod", "-besteffort-pod", "-pod" };
	const char *at = memmem(name.data, name.len, "kubepods", 8);

	if (!at)
		return (struct mote_text){ "", 0 };
	name = skip(name, (size_t)(at + 8 - name.data));
	for (unsigned int i = 0; i < 3; i++) {
		if (begins(name, before[i]))
			return cut(skip(name, strlen(before[i])), 6);
	}
	return (struct mote_text){ "", 0 };
}

/* `podUID` below kubepods, or a slice; where systemd is told `SLICE:PREFIX:ID`, that too. */
static struct mote_text pod_of(struct mote_text name)
{
	const char *colon = memchr(name.data, ':', name.len);

	if (colon)
		name.len = (size_t)(colon - name.data);
	if (ends(name, ".slice"))
		return pod_of_slice(name);
	return begins(name, "pod") ? skip(name, 3) : (struct mote_text){ "", 0 };
}

static void take_pod(struct mote_text component, struct mote_cgroup_identity *out)
{
	struct mote_text uid = pod_of(component);

	if (!is_uuid(uid) && !(uid.len == POD_HASH_LEN && all_hex(uid)))
		return;
	for (size_t i = 0; i < uid.len; i++)
		out->pod[i] = uid.data[i] == '_' ? '-' : uid.data[i];
	out->pod[uid.len] = '\0';
	/* What was found above is the pod's node, if nodes are containers themselves. */
	out->container.len = 0;
	out->runtime = NULL;
}

static bool is_slice(struct mote_text component)
{
	return ends(component, ".slice");
}

static bool is_unit(struct mote_text component)
{
	static const char *const kinds[] = { ".service", ".scope", ".mount", ".socket", ".swap" };

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (ends(component, kinds[i]))
			return true;
	}
	return false;
}

/* systemd puts `_` before a name that the kernel could take for one of its own files. */
static struct mote_text unescape(struct mote_text component)
{
	return begins(component, "_") ? skip(component, 1) : component;
}

enum level { SLICES, MANAGER, DONE };

/*
 * The first unit that is no slice, as systemd's own cg_path_get_unit() takes it; below
 * user@UID.service the unit of that manager; if there are slices only, the last of these.
 */
static void take_unit(struct mote_text component, enum level *level,
		      struct mote_cgroup_identity *out)
{
	struct mote_text name = unescape(component);

	if (*level == DONE)
		return;
	if (is_slice(name)) {
		if (*level == SLICES)
			out->unit = name;
	} else if (is_unit(name)) {
		bool manager = *level == SLICES && begins(name, "user@");

		out->unit = name;
		*level = manager ? MANAGER : DONE;
	} else {
		*level = DONE;
	}
}

void mote_cgroup_identify(struct mote_text path, struct mote_cgroup_identity *out)
{
	struct mote_text parent = { "", 0 };
	const char *end = path.data + path.len;
	enum level level = SLICES;

	*out = (struct mote_cgroup_identity){ .container = { "", 0 }, .unit = { "", 0 } };
	for (const char *at = path.data; at < end;) {
		const char *slash = memchr(at, '/', (size_t)(end - at)) ?: end;
		struct mote_text component = { at, (size_t)(slash - at) };

		at = slash + 1;
		if (!component.len)
			continue;
		take_pod(component, out);
		take_container(component, parent, out);
		take_unit(component, &level, out);
		parent = component;
	}
}
