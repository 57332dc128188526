/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_port_lease.c -- decides which thread receives a port's packets. A thread of the engine
 * receives, unless a thread of the program polls in a loop, or waits for the port's descriptor.
 */
#include "base/clock.h"
#include "softrnic/io/ud_port_impl.h"

/* Polls form a loop if they follow each other within 20 us on average; each packet that they find
 * may take another 20 us. The clock is read only once in UD_POLLS polls. */
#define UD_POLLS   64u
#define UD_POLL_NS 20000ull
/*
 * After this time without a loop of polls the engine receives again. The time is a few time slices
 * of other threads; a time slice usually lasts 4 ms. If the engine received earlier, while another
 * thread uses the program's CPU, messages would find no receive, because the program that posts
 * receives does not run.
 */
#define UD_LEASE_NS (20 * NSEC_PER_MS)

/* Choose whether the engine receives (`leave` is false) or threads of the program do. The caller
 * holds the receive lock. */
static void ud_leave_to_users(struct ud_port *p, bool leave)
{
	atomic_store(&p->left_to_users, leave);
	ud_port_rewatch(p);
}

/* Let threads of the program receive from now on. The caller holds the receive lock. If each packet
 * woke a thread of the engine, the engine would take CPU time from the thread that polls or waits
 * for the packet. */
static void ud_lease(struct ud_port *p, uint64_t now)
{
	p->leased_at = now;
	if (!atomic_load(&p->left_to_users))
		ud_leave_to_users(p, true);
	if (p->again_is_set)
		return;
	p->again_is_set = true;
	engine_set_timer(&p->again, now + UD_LEASE_NS);
}

/* If no other thread receives any more, the engine receives again. A timer that fires during a wait
 * need not be set again here, because the end of the wait sets it. */
static void ud_again(struct eng_timer *timer)
{
	struct ud_port *p = container_of(timer, struct ud_port, again);

	lock_enter(&p->rx_lock);
	p->again_is_set = false;
	if (atomic_load(&p->left_to_users) && !p->waiters) {
		if (clock_now_ns() - p->leased_at >= UD_LEASE_NS)
			ud_leave_to_users(p, false);
		else
			ud_lease(p, p->leased_at);
	}
	lock_leave(&p->rx_lock);
}

/* End the loop of polls, so that the engine receives again. The caller holds the receive lock. */
static void ud_end_loop(struct ud_port *p)
{
	p->polls = 0;
	p->polled = 0;
	p->polled_at = 0;
	if (atomic_load(&p->left_to_users))
		ud_leave_to_users(p, false);
}

void ud_port_poll(struct ud_port *p)
{
	uint64_t now;
	int n;

	if (!lock_try(&p->rx_lock))
		return;
	n = ud_port_receive(p);
	p->polled += n > 0 ? (unsigned)n : 0;
	if (++p->polls % UD_POLLS == 0) {
		now = clock_now_ns();
		/* do these UD_POLLS polls form a loop? */
		if (now - p->polled_at < (UD_POLLS + p->polled) * UD_POLL_NS)
			ud_lease(p, now);
		p->polled_at = now;
		p->polled = 0;
	}
	lock_leave(&p->rx_lock);
}

int ud_port_wait_begin(struct ud_port *p)
{
	if (!lock_try(&p->rx_lock))
		return -1;
	p->waiters++;
	ud_lease(p, clock_now_ns());
	lock_leave(&p->rx_lock);
	return p->link.fd;
}

void ud_port_wait_end(struct ud_port *p, bool readable)
{
	lock_enter(&p->rx_lock);
	p->waiters--;
	if (readable)
		(void)ud_port_receive_all(p);
	if (readable && atomic_load(&p->left_to_users))
		ud_lease(p, clock_now_ns()); /* the thread will probably wait again soon */
	else if (!p->waiters)
		ud_end_loop(p);
	lock_leave(&p->rx_lock);
}

void ud_port_report(struct ud_port *p)
{
	if (!atomic_load(&p->left_to_users))
		return;
	lock_enter(&p->rx_lock);
	ud_end_loop(p);
	lock_leave(&p->rx_lock);
}

void ud_port_lease_init(struct ud_port *p)
{
	p->again.at = CLOCK_NEVER;
	p->again.fire = ud_again;
	p->again.source = &p->source;
}
