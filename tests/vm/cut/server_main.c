/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_main.c -- arguments ADDRESS PORT FILE: serve the whole file as a region to one client. The
 * private data of the reply carry the descriptor. The program itself never writes the file back.
 */
#include <err.h>
#include <fcntl.h>
#include <librpma.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define USAGE                                                                                      \
	(RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |  \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, rpma_err_2str(ret));
}

/* Map with MAP_SYNC if the file system supports it, so that no page cache is between the mapping
 * and the medium. */
static void *map(const char *path, size_t *size)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), flags = MAP_SHARED_VALIDATE | MAP_SYNC;
	struct stat st;
	void *ptr;

	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", path);
	*size = (size_t)st.st_size;
	ptr = mmap(NULL, *size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (ptr == MAP_FAILED)
		ptr = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ptr == MAP_FAILED)
		err(1, "map %s", path);
	close(fd);
	return ptr;
}

static void show_durability(void *ptr, size_t size)
{
	enum rpma_durability class;
	char why[256];

	must(rpma_utils_get_durability(ptr, size, &class, why, sizeof(why)), "durability");
	printf("durability %s (%s)\n", rpma_utils_durability_2str(class), why);
}

static void serve_one(struct rpma_ep *ep, struct rpma_conn_private_data *pdata)
{
	enum rpma_conn_event event;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	must(rpma_ep_next_conn_req(ep, NULL, &req), "next request");
	must(rpma_conn_req_connect(&req, pdata, &conn), "accept");
	do
		must(rpma_conn_next_event(conn, &event), "next event");
	while (event == RPMA_CONN_ESTABLISHED);
	rpma_conn_disconnect(conn);
	must(rpma_conn_delete(&conn), "delete the connection");
}

int main(int argc, char **argv)
{
	struct rpma_conn_private_data pdata = {0};
	struct rpma_mr_local *mr;
	struct ibv_context *ctx;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	char desc[64];
	size_t size;
	void *ptr;

	if (argc != 4)
		errx(2, "ADDRESS PORT FILE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	ptr = map(argv[3], &size);
	show_durability(ptr, size);
	must(rpma_utils_get_ibv_context(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx), "device");
	must(rpma_peer_new(ctx, &peer), "peer");
	must(rpma_mr_reg(peer, ptr, size, USAGE, &mr), "register");
	must(rpma_mr_get_descriptor(mr, desc), "descriptor");
	must(rpma_mr_get_descriptor_size(mr, &size), "descriptor");
	pdata.ptr = desc;
	pdata.len = (uint8_t)size;
	must(rpma_ep_listen(peer, argv[1], argv[2], &ep), "listen");
	printf("listening\n");
	serve_one(ep, &pdata);
	return 0;
}
