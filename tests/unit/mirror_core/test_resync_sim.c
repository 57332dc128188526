/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flushes and a resync run in any order, members lose connections, and a primary restarts. A block
 * has a few cells; each cell holds the number of the store that wrote it.
 */
#include <string.h>

#include "lib/unit.h"
#include "mirror/core/resync.h"

#define BLOCKS   150 /* not a multiple of 64, so the last word of a bitmap is incomplete */
#define CELLS    4   /* cells in a block */
#define SIZE     ((uint64_t)BLOCKS * MIRROR_BLOCK)
#define WORDS    3
#define CELL     (MIRROR_BLOCK / CELLS)
#define FLUSHES  8 /* flushes under way to a member */
#define RANGES   3
#define MEMBERS  2
#define WORK     24 /* pieces under way to a member */
#define PER_WORD 64

struct flush {
	struct mirror_range ranges[RANGES];
	unsigned count;
	uint32_t data[BLOCKS * CELLS];
};

/*
 * A piece under way. Its bytes are read, then placed block by block, and then made durable; or its
 * blocks are compared.
 */
struct work {
	struct resync_piece piece;
	bool was_read, has_remote, has_local;
	uint64_t placed, local_equal; /* one bit for each block */
	uint32_t data[64 * CELLS], remote[64 * CELLS];
};

struct member {
	struct resync rs;
	uint64_t bits[WORDS], unsure[WORDS];
	uint32_t cells[BLOCKS * CELLS];
	struct flush lane[FLUSHES]; /* flushes that were sent and not acknowledged, oldest first */
	unsigned lane_count, lane_placed;
	struct work work[WORK];
	unsigned work_count;
	bool is_in_sync;
	uint64_t join_remaining;
};

static struct sim {
	uint64_t random, now;
	uint32_t stores;
	uint32_t cells[BLOCKS * CELLS];
	struct member members[MEMBERS];
	struct flush waiting;
	struct resync_hold holds[MEMBERS];
	bool is_waiting;
	unsigned joins, breaks, shared, waits;
} sim;

static unsigned sim_pick(unsigned n)
{
	return (unsigned)(test_random(&sim.random) >> 33) % n;
}

static uint64_t sim_word(const uint64_t *bits, unsigned block)
{
	return bits[block / PER_WORD] >> block % PER_WORD & 1;
}

static bool sim_range_has(const struct flush *f, unsigned cell)
{
	uint64_t at = (uint64_t)cell * CELL;

	for (unsigned i = 0; i < f->count; i++) {
		if (at >= f->ranges[i].offset && at < f->ranges[i].offset + f->ranges[i].len)
			return true;
	}
	return false;
}

/* The rule: each block that differs has its bit set, or belongs to a flush under way. */
static void sim_check(void)
{
	for (unsigned m = 0; m < MEMBERS; m++) {
		struct member *mb = &sim.members[m];
		unsigned set = 0;

		for (unsigned c = 0; c < BLOCKS * CELLS; c++) {
			bool covered = sim_word(mb->bits, c / CELLS) && !mb->is_in_sync;

			for (unsigned i = 0; i < mb->lane_count; i++)
				covered |= sim_range_has(&mb->lane[i], c);
			if (sim.cells[c] != mb->cells[c])
				assert_true(covered);
		}
		for (unsigned b = 0; b < WORDS * PER_WORD; b++)
			set += sim_word(mb->bits, b) ? 1 : 0;
		assert_int_equal(mb->rs.remaining, set);
		if (!mb->is_in_sync && mb->rs.mode == RESYNC_JOINING) {
			assert_true(mb->rs.remaining <= mb->join_remaining);
			mb->join_remaining = mb->rs.remaining;
		}
	}
}

static void sim_init_resync(struct member *mb, enum resync_mode mode)
{
	struct resync_config config = {.size = SIZE,
				       .bits = mb->bits,
				       .unsure = mb->unsure,
				       .piece = RESYNC_PIECE_MIN << sim_pick(3)};

	resync_init(&mb->rs, mode, &config, sim.now);
	mb->is_in_sync = false;
}

static void sim_random_ranges(struct flush *f)
{
	f->count = 1 + sim_pick(RANGES);
	for (unsigned i = 0; i < f->count; i++) {
		unsigned first = sim_pick(BLOCKS * CELLS), n = 1 + sim_pick(sim_pick(4) ? 6 : 90);

		if (first + n > BLOCKS * CELLS)
			n = BLOCKS * CELLS - first;
		f->ranges[i] = (struct mirror_range){(uint64_t)first * CELL, (uint64_t)n * CELL};
	}
}

static bool sim_gets_flushes(const struct member *mb)
{
	return mb->is_in_sync || mb->rs.mode == RESYNC_JOINING;
}

static bool sim_may_flush(void)
{
	bool may = true;

	for (unsigned m = 0; m < MEMBERS; m++) {
		struct member *mb = &sim.members[m];

		if (sim_gets_flushes(mb) && mb->lane_count == FLUSHES)
			may = false;
		if (!mb->is_in_sync && !resync_flush_enter(&mb->rs, &sim.holds[m]))
			may = false;
	}
	return may;
}

/* If the flush has to wait for no piece, change the copy and post the flush in one step. */
static void sim_flush(void)
{
	if (!sim.is_waiting) {
		sim_random_ranges(&sim.waiting);
		sim.is_waiting = true;
		for (unsigned m = 0; m < MEMBERS; m++) {
			sim.holds[m] = (struct resync_hold){.ranges = sim.waiting.ranges,
							    .count = sim.waiting.count};
		}
	}
	if (!sim_may_flush()) {
		sim.waits++;
		return;
	}
	sim.is_waiting = false;
	for (unsigned c = 0; c < BLOCKS * CELLS; c++) {
		if (sim_range_has(&sim.waiting, c))
			sim.cells[c] = ++sim.stores;
	}
	memcpy(sim.waiting.data, sim.cells, sizeof(sim.cells));
	for (unsigned m = 0; m < MEMBERS; m++) {
		struct member *mb = &sim.members[m];

		resync_flush_leave(&mb->rs, &sim.holds[m]);
		if (!mb->is_in_sync)
			resync_on_flush(&mb->rs, sim.waiting.ranges, sim.waiting.count);
		if (sim_gets_flushes(mb))
			mb->lane[mb->lane_count++] = sim.waiting;
	}
}

static void sim_lane(struct member *mb)
{
	if (mb->lane_placed < mb->lane_count && sim_pick(2)) {
		const struct flush *f = &mb->lane[mb->lane_placed++];

		for (unsigned c = 0; c < BLOCKS * CELLS; c++) {
			if (sim_range_has(f, c))
				mb->cells[c] = f->data[c];
		}
	} else if (mb->lane_placed) {
		mb->lane_count--;
		mb->lane_placed--;
		memmove(mb->lane, mb->lane + 1, mb->lane_count * sizeof(mb->lane[0]));
	}
}

static unsigned sim_cell_of(const struct resync_piece *piece, unsigned i)
{
	return (unsigned)(piece->offset / CELL) + i;
}

static void sim_add_work(struct member *mb, const struct resync_piece *piece)
{
	assert_true(mb->work_count < WORK);
	assert_true(piece->len <= RESYNC_PIECE_MAX && piece->offset + piece->len <= SIZE);
	assert_true(piece->blocks);
	for (unsigned i = 0; i < mb->work_count; i++) {
		const struct resync_piece *other = &mb->work[i].piece;

		if (piece->offset / RESYNC_PIECE_MAX == other->offset / RESYNC_PIECE_MAX)
			assert_false(
				piece->blocks << piece->offset % RESYNC_PIECE_MAX / MIRROR_BLOCK &
				other->blocks << other->offset % RESYNC_PIECE_MAX / MIRROR_BLOCK);
	}
	/* A flush waits only for pieces that began before it. */
	for (unsigned i = 0; sim.is_waiting && i < piece->len / CELL; i++) {
		if (piece->blocks >> i / CELLS & 1)
			assert_false(sim_range_has(&sim.waiting, sim_cell_of(piece, i)));
	}
	mb->work[mb->work_count++] = (struct work){.piece = *piece};
}

static void sim_begin_pieces(void)
{
	struct resync *list[MEMBERS] = {0};
	struct member *of[MEMBERS];
	struct resync_piece pieces[MEMBERS];
	enum resync_step steps[MEMBERS];
	uint64_t wake;
	unsigned n = 0, began = 0;

	for (unsigned m = 0; m < MEMBERS; m++) {
		of[n] = &sim.members[m];
		if (!of[n]->is_in_sync && of[n]->work_count < WORK)
			list[n] = &of[n]->rs, n++;
	}
	resync_next_of(list, n, sim.now, pieces, steps, &wake);
	for (unsigned i = 0; i < n; i++) {
		if (steps[i] == RESYNC_HAS_PIECE) {
			sim_add_work(of[i], &pieces[i]);
			began++;
		} else if (steps[i] == RESYNC_MAY_JOIN) {
			assert_int_equal(of[i]->work_count, 0);
			resync_join(&of[i]->rs, sim.now);
			of[i]->join_remaining = of[i]->rs.remaining;
			sim.joins++;
		} else if (steps[i] == RESYNC_ENDED) {
			assert_int_equal(of[i]->rs.remaining, 0);
			of[i]->is_in_sync = true;
		}
	}
	sim.shared += began > 1;
}

static void sim_end_work(struct member *mb, struct work *w)
{
	*w = mb->work[--mb->work_count];
}

static void sim_copy(struct member *mb, struct work *w)
{
	uint64_t left = w->piece.blocks & ~w->placed;

	if (!w->was_read) {
		for (unsigned i = 0; i < w->piece.len / CELL; i++)
			w->data[i] = sim.cells[sim_cell_of(&w->piece, i)];
		w->was_read = true;
	} else if (left) {
		unsigned b = (unsigned)__builtin_ctzll(left);

		for (unsigned i = b * CELLS; i < (b + 1) * CELLS; i++)
			mb->cells[sim_cell_of(&w->piece, i)] = w->data[i];
		w->placed |= 1ull << b;
	} else {
		resync_done(&mb->rs, &w->piece, true, sim.now);
		sim_end_work(mb, w);
	}
}

/* Compute the two digests at different times, in either order. */
static void sim_compare(struct member *mb, struct work *w)
{
	uint64_t differing = 0;

	if (w->has_local && w->has_remote) {
		for (unsigned i = 0; i < w->piece.len / CELL; i++) {
			if (w->data[i] != w->remote[i])
				differing |= 1ull << i / CELLS;
		}
		if (w->piece.op == RESYNC_OP_COMPARE_BLOCKS)
			differing &= w->piece.blocks;
		w->has_local = w->has_remote = false;
		if (!resync_compared(&mb->rs, &w->piece, differing, sim.now))
			sim_end_work(mb, w);
	} else if (!w->has_local && (w->has_remote || sim_pick(2))) {
		w->has_local = true;
		for (unsigned i = 0; i < w->piece.len / CELL; i++)
			w->data[i] = sim.cells[sim_cell_of(&w->piece, i)];
	} else {
		w->has_remote = true;
		for (unsigned i = 0; i < w->piece.len / CELL; i++)
			w->remote[i] = mb->cells[sim_cell_of(&w->piece, i)];
	}
}

static void sim_work(struct member *mb)
{
	struct work *w;

	if (!mb->work_count)
		return;
	w = &mb->work[sim_pick(mb->work_count)];
	if (w->piece.op == RESYNC_OP_COPY)
		sim_copy(mb, w);
	else
		sim_compare(mb, w);
}

/* Mark the blocks of unacknowledged flushes as different. Blocks that were placed keep their
 * content. */
static void sim_break(struct member *mb, bool restart)
{
	if (mb->is_in_sync)
		sim_init_resync(mb, RESYNC_CATCH_UP);
	else
		resync_break(&mb->rs, sim.now);
	if (restart) {
		/* After a restart only the bitmap is left. */
		memset(mb->unsure, 0, sizeof(mb->unsure));
		sim_init_resync(mb, RESYNC_CATCH_UP);
	}
	for (unsigned i = 0; i < mb->lane_count; i++)
		resync_mark(&mb->rs, mb->lane[i].ranges, mb->lane[i].count, sim_pick(2));
	mb->lane_count = mb->lane_placed = mb->work_count = 0;
	if (sim.is_waiting)
		resync_flush_enter(&mb->rs, &sim.holds[mb - sim.members]);
	sim.breaks++;
}

static void sim_begin(uint64_t seed)
{
	memset(&sim, 0, sizeof(sim));
	sim.random = seed * 0x9e3779b97f4a7c15ull | 1;
	for (unsigned m = 0; m < MEMBERS; m++) {
		struct member *mb = &sim.members[m];
		struct mirror_range all = {0, SIZE};

		for (unsigned c = 0; c < BLOCKS * CELLS; c++) {
			if (!sim_pick(30))
				mb->cells[c] = UINT32_MAX;
		}
		sim_init_resync(mb, RESYNC_CATCH_UP);
		resync_mark(&mb->rs, &all, 1, sim_pick(2));
	}
}

static void sim_step(unsigned flush_share)
{
	unsigned what = sim_pick(100);
	struct member *mb = &sim.members[sim_pick(MEMBERS)];

	sim.now += 50;
	if (what < flush_share || sim.is_waiting)
		sim_flush();
	if (what % 3 == 0)
		sim_lane(mb);
	else if (what % 3 == 1)
		sim_begin_pieces();
	else
		sim_work(mb);
	sim_check();
}

static bool sim_is_equal(void)
{
	for (unsigned m = 0; m < MEMBERS; m++) {
		if (!sim.members[m].is_in_sync)
			return false;
	}
	return true;
}

/* Flushes go on without end, but the members still become equal. */
static void test_members_become_equal_while_flushes_go_on(void **state)
{
	unsigned joins = 0, shared = 0, breaks = 0, waits = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		sim_begin(seed);
		for (unsigned i = 0; i < 1500; i++) {
			sim_step(10);
			if (!sim_pick(400))
				sim_break(&sim.members[sim_pick(MEMBERS)], sim_pick(2));
		}
		for (unsigned i = 0; !sim_is_equal(); i++) {
			assert_true(i < 60000);
			sim_step(10);
		}
		joins += sim.joins, shared += sim.shared, breaks += sim.breaks, waits += sim.waits;
	}
	assert_true(joins >= 80 && shared > 80 && breaks > 80 && waits > 80);
}

/* Copies differ only in ranges that the records of either side name, so a promotion only has to
 * make these ranges equal. */
static void test_equalisation_ends_with_equal_copies(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		sim_begin(seed);
		for (unsigned m = 0; m < MEMBERS; m++) {
			struct member *mb = &sim.members[m];
			struct flush records;

			memset(mb->bits, 0, sizeof(mb->bits));
			memcpy(mb->cells, sim.cells, sizeof(sim.cells));
			sim_random_ranges(&records);
			for (unsigned c = 0; c < BLOCKS * CELLS; c++) {
				if (sim_range_has(&records, c) && sim_pick(2))
					mb->cells[c] = ++sim.stores;
			}
			sim_init_resync(mb, RESYNC_EQUALISE);
			resync_mark(&mb->rs, records.ranges, records.count, true);
		}
		for (unsigned i = 0; !sim_is_equal(); i++) {
			assert_true(i < 60000);
			sim_step(0);
		}
		for (unsigned m = 0; m < MEMBERS; m++)
			assert_memory_equal(sim.members[m].cells, sim.cells, sizeof(sim.cells));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_become_equal_while_flushes_go_on),
		cmocka_unit_test(test_equalisation_ends_with_equal_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
