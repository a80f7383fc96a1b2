// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Cgroups that are made and removed. Both tracepoints are called under cgroup_mutex: neither
 * program can interrupt itself and be left out for it.
 */
#include "maps.h"
#include "abi.h"

char _license[] SEC("license") = "Dual BSD/GPL";

const volatile int hierarchy; /* its number, of /proc/self/cgroup; 0: that of version 2 */

u64 cgroup_dropped; /* records that did not fit */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} cgroup_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mote_cgroup_event);
} cgroup_event_scratch SEC(".maps");

static __always_inline int tell(const struct cgroup *c, enum mote_cgroup_event_kind kind)
{
	u32 zero = 0, len;
	struct mote_cgroup_event *e = bpf_map_lookup_elem(&cgroup_event_scratch, &zero);
	long got;

	if (!e || c->root->hierarchy_id != hierarchy)
		return 0;
	e->kind = kind;
	e->level = c->level;
	e->time = bpf_ktime_get_ns();
	e->id = c->kn->id;
	e->parent = c->level ? c->self.parent->cgroup->kn->id : 0;
	got = bpf_probe_read_kernel_str(e->name, sizeof(e->name), c->kn->name);
	len = got > 0 ? got - 1 : 0;
	e->name_len = len;
	len &= MOTE_CGROUP_NAME - 1;
	if (bpf_ringbuf_output(&cgroup_ring, e,
			       __builtin_offsetof(struct mote_cgroup_event, name) + len,
			       BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&cgroup_dropped, 1);
	return 0;
}

SEC("?tp_btf/cgroup_mkdir")
int cgroup_made(u64 *ctx)
{
	return tell((const struct cgroup *)ctx[0], MOTE_CGROUP_MKDIR);
}

SEC("?tp_btf/cgroup_rmdir")
int cgroup_removed(u64 *ctx)
{
	return tell((const struct cgroup *)ctx[0], MOTE_CGROUP_RMDIR);
}
