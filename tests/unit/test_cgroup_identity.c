// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Paths as systemd, Docker, containerd, CRI-O and Podman make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cgroup_identity.h"

#define ID   "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
#define ID2  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define UID  "2f5e1b4c-0d7a-4a86-9f3f-1c2b3a4d5e6f"
#define UID_ "2f5e1b4c_0d7a_4a86_9f3f_1c2b3a4d5e6f"
#define HASH "66c82d1fd8a7f1a3a1e1dba9d1c3b5f7"

static const struct row {
	const char *path, *container, *runtime, *pod, *unit;
} rows[] = {
	{ "/", "", NULL, "", "" },
	{ "/system.slice", "", NULL, "", "system.slice" },
	{ "/init.scope", "", NULL, "", "init.scope" },
	{ "/system.slice/nginx.service", "", NULL, "", "nginx.service" },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "", NULL, "",
	  "getty@tty1.service" },
	{ "/system.slice/nginx.service/worker", "", NULL, "", "nginx.service" },
	{ "/system.slice/_cgroup.service", "", NULL, "", "cgroup.service" },
	{ "/user.slice/user-1000.slice/session-3.scope", "", NULL, "", "session-3.scope" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-x.scope",
	  "", NULL, "", "vte-spawn-x.scope" },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", "", NULL, "", "init.scope" },
	{ "/user.slice/user-1000.slice/user@1000.service", "", NULL, "", "user@1000.service" },
	/* Docker */
	{ "/system.slice/docker-" ID ".scope", ID, "docker", "", "docker-" ID ".scope" },
	{ "/docker/" ID, ID, "docker", "", "" },
	{ "/docker/" ID "/system.slice/sshd.service", ID, "docker", "", "" },
	{ "/system.slice/docker-" ID ".scope/docker/" ID2, ID2, "docker", "",
	  "docker-" ID ".scope" },
	{ "/ecs/0123456789abcdef/" ID, ID, NULL, "", "" },
	/* Kubernetes, systemd driver */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  ID, "containerd", UID, "cri-containerd-" ID ".scope" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope", ID, "cri-o", UID,
	  "crio-" ID ".scope" },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
	  ".slice/docker-" ID ".scope",
	  ID, "docker", UID, "docker-" ID ".scope" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice", "", NULL,
	  UID, "kubepods-burstable-pod" UID_ ".slice" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice/crio-" ID
	  ".scope/container",
	  ID, "cri-o", HASH, "crio-" ID ".scope" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" ID ".scope", "", NULL, UID,
	  "crio-conmon-" ID ".scope" },
	/* Kubernetes, cgroupfs driver */
	{ "/kubepods/burstable/pod" UID "/" ID, ID, NULL, UID, "" },
	{ "/kubepods/pod" UID "/crio-" ID, ID, "cri-o", UID, "" },
	{ "/kubepods/besteffort/pod" HASH "/" ID, ID, NULL, HASH, "" },
	/* containerd that is told systemd's form of a path, and makes it by itself */
	{ "/system.slice/containerd.service/kubepods-besteffort-pod" UID_
	  ".slice:cri-containerd:" ID,
	  ID, "containerd", UID, "containerd.service" },
	/* kind: a node that is a container itself */
	{ "/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubepods/burstable/pod" UID
	  "/cri-containerd-" ID ".scope",
	  ID, "containerd", UID, "" },
	{ "/docker/" ID2
	  "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  ID, "containerd", UID, "" },
	{ "/docker/" ID2 "/kubepods/pod" UID, "", NULL, UID, "" },
	/* Podman */
	{ "/machine.slice/libpod-" ID ".scope", ID, "podman", "", "libpod-" ID ".scope" },
	{ "/machine.slice/libpod-" ID ".scope/container", ID, "podman", "", "libpod-" ID ".scope" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "", NULL, "", "libpod-conmon-" ID ".scope" },
	{ "/libpod_parent/libpod-" ID, ID, "podman", "", "" },
	{ "/libpod_parent/" ID, ID, "podman", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container",
	  ID, "podman", "", "libpod-" ID ".scope" },
	{ "/system.slice/nerdctl-" ID ".scope", ID, "containerd", "", "nerdctl-" ID ".scope" },
	/* what looks like it and is not */
	{ "/docker/0f1e2d3c4b5a", "", NULL, "", "" },
	{ "/docker/x" ID, "", NULL, "", "" },
	{ "/job-" ID, "", NULL, "", "" },
	{ "/docker/0F1E2D3C4B5A69788796A5B4C3D2E1F00F1E2D3C4B5A69788796A5B4C3D2E1F0", "", NULL, "",
	  "" },
	{ "/kubepods/burstable/podium", "", NULL, "", "" },
	{ "/kubepods/pod2f5e1b4c-0d7a-4a86-9f3f-1c2b3a4d5e6", "", NULL, "", "" },
	{ "/kubepods.slice/kubepods-podium.slice", "", NULL, "", "kubepods-podium.slice" },
	{ "/kubepods.slice/kubepods-.slice", "", NULL, "", "kubepods-.slice" },
	{ "/.slice/.service", "", NULL, "", "" },
	{ "//system.slice//a.service/", "", NULL, "", "a.service" },
};

static void check_text(const char *path, struct mote_text got, const char *want)
{
	if (got.len != strlen(want) || memcmp(got.data, want, got.len))
		fail_msg("%s: %.*s, want %s", path, (int)got.len, got.data, want);
}

static void paths_of_runtimes(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct mote_cgroup_identity got;
		size_t len = strlen(row->path);
		char *copy = malloc(len); /* without a NUL, so that ASan sees a read past the end */

		memcpy(copy, row->path, len);
		mote_cgroup_identify((struct mote_text){ copy, len }, &got);
		check_text(row->path, got.container, row->container);
		check_text(row->path, got.unit, row->unit);
		if (strcmp(got.pod, row->pod))
			fail_msg("%s: pod %s, want %s", row->path, got.pod, row->pod);
		if (strcmp(got.runtime ?: "", row->runtime ?: ""))
			fail_msg("%s: runtime %s", row->path, got.runtime ?: "none");
		free(copy);
	}
}

static void empty_path(void **state)
{
	struct mote_cgroup_identity got;

	mote_cgroup_identify((struct mote_text){ "", 0 }, &got);
	assert_int_equal(got.container.len + got.unit.len + strlen(got.pod), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_runtimes),
		cmocka_unit_test(empty_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
