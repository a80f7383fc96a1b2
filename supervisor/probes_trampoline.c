// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The cheapest trial that there is: two instructions. */
#include "probes_trampoline.h"

#include <errno.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes_log.h"

int mote_probes_try_trampoline(const char *function)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	int id, program, link, err;

	mote_probes_log_begin();
	id = libbpf_find_vmlinux_btf_id(function, BPF_TRACE_FENTRY);
	if (id <= 0)
		return id ? id : -ESRCH;
	opts.attach_btf_id = (__u32)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "mote_trial", "Dual BSD/GPL", nothing, 2,
				&opts);
	if (program < 0)
		return program;
	link = bpf_raw_tracepoint_open(NULL, program);
	err = link < 0 ? link : 0;
	if (link >= 0)
		close(link);
	close(program);
	return err;
}
