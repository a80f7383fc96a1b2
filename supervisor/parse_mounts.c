// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/self/mountinfo: see parse_mounts.h. A line is
 *   36 35 98:0 /root /mnt rw,noatime shared:1 master:2 - ext3 /dev/sda rw,errors=continue
 * with blanks, tabs, newlines and backslashes of names as octal (\040), and single blanks between
 * fields, of which some can be empty. A list owns one block of memory; nothing fails after that.
 */
#include "parse_mounts.h"
#include "scan.h"

#include <stdlib.h>

/* A path has at most 4095 bytes; most have 20, those of containers 100. */
#define TEXT_MIN       4096
#define TEXT_PER_MOUNT 256

/*
 * Filesystems without space of their own, which node_exporter leaves out by such a list, too
 * (--collector.filesystem.fs-types-exclude). tmpfs, devtmpfs and overlay do fill up and stay in.
 */
static const char *const pseudo_types[] = {
	"autofs",     "binfmt_misc", "bpf",       "cgroup",       "cgroup2",    "configfs",
	"cpuset",     "debugfs",     "devpts",    "efivarfs",     "fusectl",    "fuse.gvfsd-fuse",
	"fuse.lxcfs", "fuse.portal", "hugetlbfs", "mqueue",       "nfsd",       "nsfs",
	"pipefs",     "proc",        "pstore",    "resctrl",      "rpc_pipefs", "securityfs",
	"selinuxfs",  "smackfs",     "sockfs",    "sysfs",        "tracefs",    "usbfs",
	"xenfs",      "guest_memfd", "secretmem", "anon_inodefs", "functionfs",
};

/* Their statfs() answers from memory of this machine; of a type not listed we cannot say that. */
static const char *const local_types[] = {
	"bcachefs", "btrfs", "devtmpfs", "erofs",   "exfat",    "ext2",   "ext3",
	"ext4",     "f2fs",  "hfsplus",  "iso9660", "jfs",      "nilfs2", "ntfs3",
	"overlay",  "ramfs", "reiserfs", "rootfs",  "squashfs", "tmpfs",  "ubifs",
	"udf",      "vfat",  "xfs",      "zfs",
};

#define LISTED(list, type) listed(list, sizeof(list) / sizeof((list)[0]), type)

static bool listed(const char *const list[], size_t n, struct mote_text type)
{
	for (size_t i = 0; i < n; i++) {
		if (mote_text_is(type, list[i]))
			return true;
	}
	return false;
}

struct mote_mounts *mote_mounts_new(unsigned int max)
{
	size_t text_max = TEXT_MIN + (size_t)max * TEXT_PER_MOUNT;
	size_t size = sizeof(struct mote_mounts) + max * sizeof(struct mote_mount) + text_max;
	struct mote_mounts *list = aligned_alloc(64, (size + 63) & ~(size_t)63);

	if (!list)
		return NULL;
	memset(list, 0, size);
	list->max = max;
	list->text_max = text_max;
	list->mounts = (struct mote_mount *)(list + 1);
	list->text = (char *)(list->mounts + max);
	return list;
}

void mote_mounts_free(struct mote_mounts *list)
{
	free(list);
}

void mote_mounts_clear(struct mote_mounts *list)
{
	list->used = list->turned_away = 0;
	list->text_used = 0;
}

void mote_mounts_copy(struct mote_mounts *to, const struct mote_mounts *from)
{
	memcpy(to->mounts, from->mounts, from->used * sizeof(from->mounts[0]));
	memcpy(to->text, from->text, from->text_used);
	to->used = from->used;
	to->text_used = from->text_used;
	to->turned_away = from->turned_away;
}

/* What stands before the next blank, which may be nothing; false behind the last field. */
static bool take_field(struct mote_scan *line, struct mote_text *field)
{
	const char *blank;

	if (line->at > line->end)
		return false;
	blank = memchr(line->at, ' ', line->end - line->at);
	if (!blank)
		blank = line->end;
	*field = (struct mote_text){ line->at, blank - line->at };
	line->at = blank + 1;
	return true;
}

static bool take_u32(struct mote_scan *line, uint32_t *v)
{
	struct mote_text field;
	uint64_t wide;

	if (!take_field(line, &field) || !mote_text_u64(field, &wide) || wide > UINT32_MAX)
		return false;
	*v = wide;
	return true;
}

/* `8:1` */
static bool take_device_id(struct mote_scan *line, uint64_t *id)
{
	struct mote_text field, major;
	uint64_t high, low;

	if (!take_field(line, &field))
		return false;
	struct mote_scan numbers = mote_scan_text(field);
	major = mote_scan_until(&numbers, ':');
	if (!mote_text_u64(major, &high) || !mote_scan_u64(&numbers, &low) || high > UINT32_MAX ||
	    low > UINT32_MAX)
		return false;
	*id = high << 32 | low;
	return true;
}

/* Passes over the optional fields (`shared:1`), of which there are any number, up to the `-`. */
static bool skip_optional(struct mote_scan *line)
{
	struct mote_text field;

	while (take_field(line, &field)) {
		if (mote_text_is(field, "-"))
			return true;
	}
	return false;
}

struct line {
	struct mote_mount mount;
	struct mote_text point, device, type; /* octal not resolved yet */
};

static bool read_line(struct mote_scan *text, struct line *line)
{
	struct mote_text root, options;

	*line = (struct line){ 0 };
	return take_u32(text, &line->mount.id) && take_u32(text, &line->mount.parent) &&
	       take_device_id(text, &line->mount.device_id) && take_field(text, &root) &&
	       take_field(text, &line->point) && line->point.len && take_field(text, &options) &&
	       skip_optional(text) && take_field(text, &line->type) && line->type.len &&
	       take_field(text, &line->device);
}

static bool is_octal(const char *at, size_t len)
{
	return len >= 4 && at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' &&
	       at[2] <= '7' && at[3] >= '0' && at[3] <= '7';
}

/* Appends a name, its octal resolved and a NUL behind it; false if there is no room. */
static bool keep_text(struct mote_mounts *list, struct mote_text name, uint32_t *offset)
{
	uint32_t at = list->text_used;

	if (name.len >= list->text_max - at)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		const char *from = name.data + i;

		if (is_octal(from, name.len - i)) {
			list->text[at++] =
				(from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0');
			i += 3;
		} else {
			list->text[at++] = *from;
		}
	}
	list->text[at++] = '\0';
	*offset = list->text_used;
	list->text_used = at;
	return true;
}

/* Whether path `below` is inside directory `above`; a path is not inside itself. */
static bool is_inside(const char *below, const char *above)
{
	size_t len = strlen(above);

	if (len == 1) /* "/" */
		return below[1] != '\0';
	return strncmp(below, above, len) == 0 && below[len] == '/';
}

/*
 * Marks what `mount` hides: a path goes through its point into it, so that what is mounted further
 * down on the same parent is out of reach. The order of lines does not tell that: a root that came
 * by pivot_root() stands behind its children.
 */
static bool mark_covered(struct mote_mounts *list, const struct mote_mount *mount,
			 const char *point)
{
	bool any = false;

	for (unsigned int i = 0; i < list->used; i++) {
		struct mote_mount *old = &list->mounts[i];
		const char *old_point = list->text + old->point;

		old->hidden = !strcmp(old_point, point) ||
			      (old->parent == mount->parent && is_inside(old_point, point));
		any |= old->hidden;
	}
	return any;
}

static bool parent_hidden(const struct mote_mounts *list, const struct mote_mount *mount,
			  const char *point)
{
	for (unsigned int i = 0; i < list->used; i++) {
		const struct mote_mount *parent = &list->mounts[i];

		/* what was mounted on `point` itself may stand below the new mount as well */
		if (parent->hidden && parent->id == mount->parent &&
		    is_inside(list->text + parent->point, point))
			return true;
	}
	return false;
}

/* Marks what stands on a mount that is marked. */
static void mark_children(struct mote_mounts *list, const char *point)
{
	bool more;

	do {
		more = false;
		for (unsigned int i = 0; i < list->used; i++) {
			struct mote_mount *mount = &list->mounts[i];

			if (!mount->hidden && parent_hidden(list, mount, point))
				mount->hidden = more = true;
		}
	} while (more);
}

static void remove_hidden(struct mote_mounts *list)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < list->used; i++) {
		if (!list->mounts[i].hidden)
			list->mounts[kept++] = list->mounts[i];
	}
	list->used = kept;
}

/* Whether a mount on the same point stands on this one: then this is the one that is hidden. */
static bool is_covered(const struct mote_mounts *list, const struct mote_mount *mount,
		       const char *point)
{
	for (unsigned int i = 0; i < list->used; i++) {
		if (list->mounts[i].parent == mount->id && mount->parent != mount->id &&
		    !strcmp(list->text + list->mounts[i].point, point))
			return true;
	}
	return false;
}

static void keep_mount(struct mote_mounts *list, const struct line *line)
{
	struct mote_mount *mount = &list->mounts[list->used];

	*mount = line->mount;
	if (!keep_text(list, line->device, &mount->device) ||
	    !keep_text(list, line->type, &mount->type)) {
		list->turned_away++;
		return;
	}
	mount->local = LISTED(local_types, line->type);
	list->used++;
}

int mote_mounts_add(struct mote_mounts *list, struct mote_text text)
{
	struct mote_scan scan = mote_scan_text(text);
	struct line line;
	const char *point;
	uint32_t before = list->text_used;

	if (!read_line(&scan, &line))
		return -EBADMSG;
	if (!keep_text(list, line.point, &line.mount.point)) {
		list->turned_away += !LISTED(pseudo_types, line.type);
		return 0;
	}
	point = list->text + line.mount.point;
	if (!is_covered(list, &line.mount, point)) {
		if (mark_covered(list, &line.mount, point)) {
			mark_children(list, point);
			remove_hidden(list);
		}
		if (LISTED(pseudo_types, line.type))
			; /* it has covered what was below; that is all */
		else if (list->used == list->max)
			list->turned_away++;
		else
			keep_mount(list, &line);
	}
	if (list->used == 0 || list->mounts[list->used - 1].point != line.mount.point)
		list->text_used = before;
	return 0;
}

size_t mote_mounts_parse(struct mote_mounts *list, struct mote_text text)
{
	struct mote_scan scan = mote_scan_text(text), line;
	const char *start = scan.at;

	while (mote_scan_line(&scan, &line))
		mote_mounts_add(list, (struct mote_text){ line.at, line.end - line.at });
	return scan.at - start;
}
