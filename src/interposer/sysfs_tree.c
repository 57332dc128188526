/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs_tree.c -- makes the files in which a kernel would show the software RNIC.
 *
 * The kernel defines their names and the form of their content
 * (Documentation/ABI/stable/sysfs-class-infiniband). Counters of traffic are left out, because the
 * port has none.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interposer/ops.h"
#include "interposer/paths.h"
#include "softrnic/softrnic.h"

#define DEVICES "sys/devices/virtual/"
#define DEVICE  DEVICES "infiniband/softrnic0/"
#define UVERBS  DEVICES "infiniband_verbs/" PATHS_UVERBS "/"
#define PORT    DEVICE "ports/1/"

/* The folders of the tree. Each folder comes after the one that contains it. */
static const char *const tree_folders[] = {
	"sys",
	"sys/class",
	"sys/class/infiniband",
	"sys/class/infiniband_verbs",
	"sys/devices",
	"sys/devices/virtual",
	DEVICES "infiniband",
	DEVICES "infiniband/softrnic0",
	DEVICE "ports",
	DEVICE "ports/1",
	PORT "gids",
	PORT "gid_attrs",
	PORT "gid_attrs/types",
	PORT "gid_attrs/ndevs",
	PORT "pkeys",
	PORT "counters",
	DEVICES "infiniband_verbs",
	DEVICES "infiniband_verbs/" PATHS_UVERBS,
	"dev",
	"dev/infiniband",
};

static const struct tree_text {
	const char *name, *text;
} tree_texts[] = {
	{DEVICE "node_desc", "softrnic"},
	{PORT "state", "4: ACTIVE"},
	{PORT "phys_state", "5: LinkUp"},
	{PORT "link_layer", "Ethernet"},
	{PORT "lid", "0x0"},
	{PORT "lid_mask_count", "0"},
	{PORT "sm_lid", "0x0"},
	{PORT "sm_sl", "0"},
	{PORT "pkeys/0", "0xffff"},
	{PORT "counters/link_downed", "0"},
	{PORT "counters/link_error_recovery", "0"},
	{PORT "counters/port_rcv_errors", "0"},
	{PORT "counters/port_xmit_discards", "0"},
	{PORT "counters/symbol_error", "0"},
	{UVERBS "ibdev", "softrnic0"},
	{UVERBS "abi_version", "1"},
};

static const struct tree_link {
	const char *name, *target;
} tree_links[] = {
	{"sys/class/infiniband/softrnic0", "../../devices/virtual/infiniband/softrnic0"},
	{"sys/class/infiniband_verbs/" PATHS_UVERBS,
	 "../../devices/virtual/infiniband_verbs/" PATHS_UVERBS},
	{"dev/infiniband/" PATHS_UVERBS, "/dev/null"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct tree {
	int fd;
	int err; /* error of the first failed step; later steps do nothing */
};

/* --- steps of making the tree ------------------------------------------------------------- */

static void tree_record(struct tree *t, int ret)
{
	if (ret < 0 && !t->err)
		t->err = errno;
}

__attribute__((format(printf, 3, 4))) static void tree_write(struct tree *t, const char *name,
							     const char *fmt, ...)
{
	char text[PATHS_NAME_MAX];
	va_list ap;
	int fd;

	if (t->err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	fd = openat(t->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	tree_record(t, fd);
	if (fd < 0)
		return;
	strcat(text, "\n");
	tree_record(t, (int)write(fd, text, strlen(text)));
	close(fd);
}

static void tree_write_fixed(struct tree *t)
{
	for (size_t i = 0; !t->err && i < COUNT(tree_folders); i++)
		tree_record(t, mkdirat(t->fd, tree_folders[i], 0755));
	for (size_t i = 0; i < COUNT(tree_texts); i++)
		tree_write(t, tree_texts[i].name, "%s", tree_texts[i].text);
	for (size_t i = 0; !t->err && i < COUNT(tree_links); i++)
		tree_record(t, symlinkat(tree_links[i].target, t->fd, tree_links[i].name));
}

/* --- facts about the device ---------------------------------------------------------------- */

static int tree_lanes(uint8_t width)
{
	return width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 1;
}

static void tree_write_port(struct tree *t, const struct ibv_port_attr *port)
{
	static const struct {
		double lane_gbps;
		const char *name;
	} speeds[] = {{2.5, "SDR"}, {5, "DDR"},  {10, "QDR"}, {10, "FDR10"},
		      {14, "FDR"},  {25, "EDR"}, {50, "HDR"}, {100, "NDR"}};
	unsigned bit = port->active_speed ? (unsigned)__builtin_ctz(port->active_speed) : 0;
	int lanes = tree_lanes(port->active_width), at = (int)(bit % COUNT(speeds));

	tree_write(t, PORT "rate", "%g Gb/sec (%dX %s)", lanes * speeds[at].lane_gbps, lanes,
		   speeds[at].name);
	tree_write(t, PORT "cap_mask", "0x%08x", port->port_cap_flags);
}

static void tree_write_guid(struct tree *t, const char *name, __be64 guid)
{
	unsigned long long n = be64toh(guid);

	tree_write(t, name, "%04llx:%04llx:%04llx:%04llx", n >> 48, n >> 32 & 0xffff,
		   n >> 16 & 0xffff, n & 0xffff);
}

static void tree_write_device(struct tree *t, struct ibv_context *ctx)
{
	bool iwarp = ctx->device->node_type == IBV_NODE_RNIC;
	struct ibv_device_attr attr;

	softrnic_query_device(ctx, &attr);
	tree_write(t, DEVICE "node_type", "%d: %s", iwarp ? 4 : 1, iwarp ? "RNIC" : "CA");
	tree_write(t, DEVICE "fw_ver", "%s", attr.fw_ver);
	tree_write_guid(t, DEVICE "node_guid", attr.node_guid);
	tree_write_guid(t, DEVICE "sys_image_guid", attr.sys_image_guid);
}

static void tree_write_gid(struct tree *t, int index, const union ibv_gid *gid)
{
	char name[sizeof(PORT) + 32], text[48];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(gid->raw); i += 2)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%02x%02x", i ? ":" : "",
					gid->raw[i], gid->raw[i + 1]);
	snprintf(name, sizeof(name), PORT "gids/%d", index);
	tree_write(t, name, "%s", text);
}

/* Write the files of one index. An empty index has a GID of zeros, and no attributes. */
static void tree_write_gid_attrs(struct tree *t, int index, const struct ibv_gid_entry *entry)
{
	char name[sizeof(PORT) + 32], netdev[IF_NAMESIZE];

	snprintf(name, sizeof(name), PORT "gid_attrs/types/%d", index);
	tree_write(t, name, entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
	if (!if_indextoname(entry->ndev_ifindex, netdev))
		return;
	snprintf(name, sizeof(name), PORT "gid_attrs/ndevs/%d", index);
	tree_write(t, name, "%s", netdev);
}

static void tree_write_gids(struct tree *t, struct ibv_context *ctx, int count)
{
	for (int i = 0; i < count; i++) {
		struct ibv_gid_entry entry = {0};

		if (!ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0))
			tree_write_gid_attrs(t, i, &entry);
		tree_write_gid(t, i, &entry.gid);
	}
}

/* Make a link to the network device of the first GID, at the place where the kernel shows the
 * network device of an RDMA device. */
static void tree_link_netdev(struct tree *t, struct ibv_context *ctx)
{
	char name[sizeof(DEVICE) + 16 + IF_NAMESIZE], target[32 + IF_NAMESIZE];
	struct ibv_gid_entry entry = {0};
	char netdev[IF_NAMESIZE];

	if (t->err || ibv_query_gid_ex(ctx, 1, 0, &entry, 0) ||
	    !if_indextoname(entry.ndev_ifindex, netdev))
		return;
	tree_record(t, mkdirat(t->fd, DEVICE "device", 0755));
	tree_record(t, mkdirat(t->fd, DEVICE "device/net", 0755));
	snprintf(name, sizeof(name), DEVICE "device/net/%s", netdev);
	snprintf(target, sizeof(target), "/sys/class/net/%s", netdev);
	tree_record(t, symlinkat(target, t->fd, name));
}

/* --- other entries -------------------------------------------------------------------------- */

/* Add links to the kernel's entries of the folder, if it has any, so that a list of the folder
 * shows them, too. */
static void tree_link_others(struct tree *t, const char *folder, const char *true_folder)
{
	DIR *dir = opendir(true_folder);
	const struct dirent *entry;
	char name[PATHS_NAME_MAX + 64], target[PATHS_NAME_MAX + 64];

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		snprintf(target, sizeof(target), "%s/%s", true_folder, entry->d_name);
		tree_record(t, symlinkat(target, t->fd, name));
	}
	if (dir)
		closedir(dir);
}

static void tree_fill(struct tree *t, struct ibv_context *ctx, bool with_device)
{
	struct ibv_port_attr port;

	softrnic_query_port(ctx, 1, &port);
	tree_write_fixed(t);
	tree_write_device(t, ctx);
	tree_write_port(t, &port);
	tree_write_gids(t, ctx, port.gid_tbl_len);
	if (with_device)
		tree_link_netdev(t, ctx);
	tree_link_others(t, "sys/class/infiniband", PATHS_TRUE "infiniband");
	tree_link_others(t, "sys/class/infiniband_verbs", PATHS_TRUE "infiniband_verbs");
	tree_link_others(t, "dev/infiniband", "/dev/./infiniband");
}

bool sysfs_tree_make(char root[PATHS_ROOT_MAX], bool with_device)
{
	struct ibv_context *ctx = softrnic_context();
	struct tree t = {.fd = -1};

	if (!ctx || !private_folder_make(root))
		return false;
	t.fd = open(root, O_DIRECTORY | O_CLOEXEC);
	tree_record(&t, t.fd);
	tree_fill(&t, ctx, with_device);
	if (t.fd >= 0)
		close(t.fd);
	if (t.err) {
		private_folder_remove(root);
		errno = t.err;
	}
	return !t.err;
}
