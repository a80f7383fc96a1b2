// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The rule of leaf.h. It opens nothing, as it runs after the start, so that `lower_NAME` cannot be
 * listed: it is tried for every other name. What sysfs does not tell is said by the note.
 */
#include "leaf_rule.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether sysfs has NAME/FILE, or NAME/PREFIXother; links are followed. */
static bool has(int sysfs, const char *name, const char *file, const char *other)
{
	char path[2 * IFNAMSIZ + 16];
	char *at = stpcpy(path, name);

	*at++ = '/';
	stpcpy(stpcpy(at, file), other);
	return faccessat(sysfs, path, F_OK, 0) == 0;
}

static bool is_over_another(int sysfs, const struct mote_devices *all,
			    const struct mote_device *device)
{
	if (has(sysfs, device->name, "bridge", "") || has(sysfs, device->name, "bonding", ""))
		return true;
	for (unsigned int i = 0; i < all->used; i++) {
		if (has(sysfs, device->name, "lower_", all->at[i].name))
			return true;
	}
	return false;
}

/*
 * Kinds that sysfs tells apart only in files which would have to be opened, by the names that the
 * kernel or everybody gives them.
 */
static bool is_never_leaf(const char *name)
{
	static const char *const kinds[] = { "ifb", "dummy", "kube-ipvs", "nlmon", "teql", "vcan" };

	if (!strcmp(name, "lo"))
		return true;
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (starts_with(name, kinds[i]))
			return true;
	}
	return false;
}

/* What such a device carries goes through another device once more, within its packets. */
static bool is_tunnel(const char *name)
{
	static const char *const kinds[] = { "sit",     "tunl",    "ip6tnl", "ip6_vti", "ip_vti",
					     "gre",     "erspan",  "ip6gre", "vxlan",   "geneve",
					     "flannel", "cilium_", "wg",     "ipip" };

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (starts_with(name, kinds[i]))
			return true;
	}
	return false;
}

static void look_at(int sysfs, struct mote_device *device)
{
	device->leaf = false;
	device->known = has(sysfs, device->name, "", "");
	device->virtual = !has(sysfs, device->name, "device", "");
	device->port = has(sysfs, device->name, "brport", "");
	device->tun = has(sysfs, device->name, "tun_flags", "");
}

static bool is_hardware(const struct mote_device *device)
{
	return !device->virtual;
}

static bool is_software(const struct mote_device *device)
{
	return !device->port && !device->tun && !is_tunnel(device->name);
}

static bool is_software_port(const struct mote_device *device)
{
	return !device->tun && !is_tunnel(device->name);
}

static bool is_any(const struct mote_device *device)
{
	return true;
}

/* The first that has a leaf gives all leaves. */
typedef bool (*tier_fn)(const struct mote_device *device);
static const tier_fn tiers[] = { is_hardware, is_software, is_software_port, is_any };
#define TIERS (sizeof(tiers) / sizeof(tiers[0]))

/* Makes leaves of the devices of a tier with none below them; false if it has no leaf. */
static bool take_tier(int sysfs, struct mote_devices *all, tier_fn in_tier)
{
	bool any = false;

	for (unsigned int i = 0; i < all->used; i++) {
		struct mote_device *device = &all->at[i];

		device->leaf = device->known && !is_never_leaf(device->name) && in_tier(device) &&
			       !is_over_another(sysfs, all, device);
		any |= device->leaf;
	}
	return any;
}

static void take_all(struct mote_devices *all)
{
	for (unsigned int i = 0; i < all->used; i++)
		all->at[i].leaf = strcmp(all->at[i].name, "lo") != 0;
}

/* Devices other than lo: whether there are any, and whether sysfs knows one of them. */
static bool is_other_sysfs(const struct mote_devices *all)
{
	bool any = false;

	for (unsigned int i = 0; i < all->used; i++) {
		if (!strcmp(all->at[i].name, "lo"))
			continue;
		if (all->at[i].known)
			return false;
		any = true;
	}
	return any;
}

/*
 * A device that sysfs does not show came or went this moment: it is left out, so that the loop asks
 * again. If it shows none of them, it was mounted in another network namespace.
 */
enum mote_leaf_note mote_leaf_judge(int sysfs, struct mote_devices *all)
{
	unsigned int kept = 0;

	if (sysfs < 0) {
		take_all(all);
		return MOTE_LEAF_NO_SYSFS;
	}
	for (unsigned int i = 0; i < all->used; i++)
		look_at(sysfs, &all->at[i]);
	if (is_other_sysfs(all)) {
		take_all(all);
		return MOTE_LEAF_OTHER_SYSFS;
	}
	for (unsigned int i = 0; i < TIERS; i++) {
		if (take_tier(sysfs, all, tiers[i]))
			break;
	}
	for (unsigned int i = 0; i < all->used; i++) {
		if (all->at[i].known)
			all->at[kept++] = all->at[i];
	}
	all->used = kept;
	return MOTE_LEAF_RULE;
}
