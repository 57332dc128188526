/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_ends.h"

#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/die.h"
#include "lib/ends.h"

#define FI_ENDS_VERSION  FI_VERSION(1, 17)
#define FI_ENDS_WAIT_MS  10000
#define FI_ENDS_NAME_MAX 256

/* A message from one end to the other, with the sender's address. */
struct fi_name {
	size_t len;
	char bytes[FI_ENDS_NAME_MAX];
};
struct fi_memory {
	uint64_t addr, key;
};

void fi_must(long ret, const char *what)
{
	if (ret < 0)
		die("%s: %s", what, fi_strerror((int)-ret));
}

static bool fi_is_connected(const struct fi_end *e)
{
	return e->info->ep_attr->type == FI_EP_MSG;
}

static struct fi_info *fi_hints(const char *provider, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		die("no memory");
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = strcmp(provider, "shm") ? FI_EP_MSG : FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->tx_attr->op_flags = flags;
	if (flags & FI_COMMIT_COMPLETE)
		hints->caps |= FI_RMA_PMEM;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

static void fi_choose(struct fi_end *e, const struct bench_case *c, const char *provider,
		      uint64_t flags, bool is_target)
{
	struct fi_info *hints = fi_hints(provider, flags);
	bool shm = hints->ep_attr->type == FI_EP_RDM;
	int ret = fi_getinfo(FI_ENDS_VERSION, shm ? NULL : c->addr, NULL,
			     is_target && !shm ? FI_SOURCE : 0, hints, &e->info);

	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		skip("libfabric's provider %s does not offer this", provider);
	fi_must(ret, "fi_getinfo");
}

static void fi_open_domain(struct fi_end *e)
{
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	fi_must(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fi_fabric");
	fi_must(fi_domain(e->fabric, e->info, &e->domain, NULL), "fi_domain");
	if (fi_is_connected(e))
		fi_must(fi_eq_open(e->fabric, &eq, &e->eq, NULL), "fi_eq_open");
	else
		fi_must(fi_av_open(e->domain, &av, &e->av, NULL), "fi_av_open");
}

static void fi_open_endpoint(struct fi_end *e, struct fi_info *info, const struct bench_case *c)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT,
				.size = (size_t)c->depth * c->every + 64};

	fi_must(fi_cq_open(e->domain, &cq, &e->cq, NULL), "fi_cq_open");
	fi_must(fi_endpoint(e->domain, info, &e->ep, NULL), "fi_endpoint");
	fi_must(fi_ep_bind(e->ep, fi_is_connected(e) ? &e->eq->fid : &e->av->fid, 0), "fi_ep_bind");
	/* Only an operation that requests a completion gets one. */
	fi_must(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION),
		"fi_ep_bind");
	fi_must(fi_enable(e->ep), "fi_enable");
}

static struct fi_info *fi_wait_event(struct fi_end *e, uint32_t want, const char *what)
{
	struct fi_eq_cm_entry entry = {0};
	uint32_t event = 0;

	fi_must(fi_eq_sread(e->eq, &event, &entry, sizeof(entry), FI_ENDS_WAIT_MS, 0), what);
	if (event != want)
		die("%s: event %u instead", what, event);
	return entry.info;
}

static void fi_put_name(struct fid *fid, int fd)
{
	struct fi_name name = {.len = sizeof(name.bytes)};

	fi_must(fi_getname(fid, name.bytes, &name.len), "fi_getname");
	ends_put(fd, &name, sizeof(name));
}

static void fi_listen_and_accept(struct fi_end *e, const struct bench_case *c, int fd)
{
	struct fi_info *info;

	fi_must(fi_passive_ep(e->fabric, e->info, &e->pep, NULL), "fi_passive_ep");
	fi_must(fi_pep_bind(e->pep, &e->eq->fid, 0), "fi_pep_bind");
	fi_must(fi_listen(e->pep), "fi_listen");
	fi_put_name(&e->pep->fid, fd);
	info = fi_wait_event(e, FI_CONNREQ, "wait for a connection");
	fi_open_endpoint(e, info, c);
	fi_must(fi_accept(e->ep, NULL, 0), "fi_accept");
	fi_freeinfo(info);
	fi_wait_event(e, FI_CONNECTED, "wait until it stands");
}

static void fi_connect_to(struct fi_end *e, const struct bench_case *c, int fd)
{
	struct fi_name name;

	ends_get(fd, &name, sizeof(name));
	fi_open_endpoint(e, e->info, c);
	fi_must(fi_connect(e->ep, name.bytes, NULL, 0), "fi_connect");
	fi_wait_event(e, FI_CONNECTED, "wait until it stands");
}

/* Exchange the addresses of the two ends. */
static void fi_introduce(struct fi_end *e, const struct bench_case *c, int fd)
{
	struct fi_name name;

	fi_open_endpoint(e, e->info, c);
	fi_put_name(&e->ep->fid, fd);
	ends_get(fd, &name, sizeof(name));
	if (fi_av_insert(e->av, name.bytes, 1, &e->peer, 0, NULL) != 1)
		die("fi_av_insert");
}

static void fi_register(struct fi_end *e, size_t size)
{
	e->size = size;
	e->mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (e->mem == MAP_FAILED)
		die_errno("memory");
	fi_must(fi_mr_reg(e->domain, e->mem, size,
			  FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &e->mr,
			  NULL),
		"fi_mr_reg");
}

static void fi_exchange_memory(struct fi_end *e, int fd)
{
	bool by_address = e->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct fi_memory mine = {by_address ? (uint64_t)(uintptr_t)e->mem : 0, fi_mr_key(e->mr)};
	struct fi_memory theirs;

	ends_put(fd, &mine, sizeof(mine));
	ends_get(fd, &theirs, sizeof(theirs));
	e->addr = theirs.addr;
	e->key = theirs.key;
}

void fi_end_open(struct fi_end *e, const struct bench_case *c, const char *provider, uint64_t flags,
		 size_t size, int fd, bool is_target)
{
	*e = (struct fi_end){.size = 0};
	fi_choose(e, c, provider, flags, is_target);
	fi_open_domain(e);
	fi_register(e, size);
	if (!fi_is_connected(e))
		fi_introduce(e, c, fd);
	else if (is_target)
		fi_listen_and_accept(e, c, fd);
	else
		fi_connect_to(e, c, fd);
	fi_exchange_memory(e, fd);
}

static void fi_close_one(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

#define FI_CLOSE(object) fi_close_one((object) ? &(object)->fid : NULL)

void fi_end_close(struct fi_end *e)
{
	FI_CLOSE(e->ep);
	FI_CLOSE(e->pep);
	FI_CLOSE(e->mr);
	FI_CLOSE(e->cq);
	FI_CLOSE(e->av);
	FI_CLOSE(e->eq);
	FI_CLOSE(e->domain);
	FI_CLOSE(e->fabric);
	fi_freeinfo(e->info);
	munmap(e->mem, e->size);
}
