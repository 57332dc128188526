/* SPDX-License-Identifier: BSD-3-Clause */
/* setup.c -- the initial state of a set: its hosts, their clocks and copies, and the register. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

void world_format(struct world *w, struct host *h, const struct mirror_config *config,
		  uint32_t flags)
{
	struct meta_super super = {.member_id = config->members[h->id].id,
				   .slot = (uint8_t)h->id,
				   .size = config->size,
				   .flags = flags,
				   .hot_slots = (uint32_t)sim_between(w, 2, 4)};
	struct meta_members members = {.config_number = config->number};
	struct meta_store store;

	disk_format(&h->disk, config->size);
	store = (struct meta_store){.base = h->disk.meta,
				    .len = h->disk.meta_len,
				    .persist = disk_persist_meta,
				    .arg = h};
	strcpy(super.set, "sim");
	for (unsigned i = 0; i < w->hosts; i++) {
		members.members[i].id = config->members[i].id;
		snprintf(members.members[i].name, sizeof(members.members[i].name), "%c",
			 'a' + (int)i);
	}
	if (meta_create(&store, &super, &members))
		oracle_fail(w, "metadata of %u cannot be created", h->id);
}

static void world_make_host(struct world *w, unsigned id)
{
	struct host *h = &w->host[id];
	struct disk disk = h->disk;

	memset(h, 0, sizeof(*h));
	h->world = w;
	h->id = id;
	h->disk = disk;
	h->powered = true;
	h->persists_left = -1;
	h->boot.bytes[1] = (uint8_t)(id + 1);
	h->clock_offset = (int64_t)sim_between(w, MS, 1000000 * MS);
	/* The clock is at most 4 % too fast or too slow. */
	h->clock_rate = 0.96 + (double)sim_between(w, 0, 80) / 1000;
	world_format(w, h, &w->reg.rec.config, META_CLEAN);
	growth_make_disk(w, h);
}

void world_make_set(struct world *w)
{
	struct mirror_config config = {.format = 1,
				       .lease_ms = 1000,
				       .replica_timeout_ms = 300,
				       .slow_ms = 20,
				       .holdoff_ms = 300,
				       .blocked_ms = UINT32_MAX};

	strcpy(config.set, "sim");
	w->hosts = sim_chance(w, 450) ? 2 : 3;
	if (sim_chance(w, 150))
		w->hosts = 4;
	else if (sim_chance(w, 150))
		w->hosts = (unsigned)sim_between(w, 1, HOSTS);
	plan_choose(w);
	config.size = growth_choose(w);
	w->may_force = sim_chance(w, 100);
	config.min_copies = w->hosts > 1 && sim_chance(w, 300) ? 2 : 1;
	for (unsigned i = 0; i < w->hosts; i++) {
		config.members[i].id = 100 + i;
		snprintf(config.members[i].name, sizeof(config.members[i].name), "%c",
			 'a' + (int)i);
	}
	if (view_create(&w->reg.rec, &config, (mirror_mask)((1u << w->hosts) - 1), sim_random(w),
			NULL))
		oracle_fail(w, "no set");
	w->reg.revision = w->reg.alive_revision = 1;
	register_changed(w);
	for (unsigned i = 0; i < w->hosts; i++)
		world_make_host(w, i);
	for (unsigned i = 0; i < w->hosts; i++)
		daemon_start(w, &w->host[i]);
}
