/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writes.pml -- a model for spin(1): when a waiting Write is sent, and which thread receives the
 * bytes of one connection (doc/policy.md; src/softrnic/io/conn_own.c, conn_watch.c). When no thread
 * can continue, all arrived bytes must be received, no Write may wait, no lease may exist, and the
 * link must report bytes.
 *
 * Threads: one polls and can have a lease; one waits for the link; one posts Writes; one registers
 * a region that can stall, so that threads of the application must not touch memory; one closes the
 * connection; the engine's leader handles events of the link, the alarm, and work that other
 * threads leave to the engine, and can spin. The steps of a thread under a lock are atomic; each
 * other statement is one access to shared state.
 *
 * writes.sh searches the model in two configurations, with unchanged rules and with each BROKEN=n,
 * which changes one rule. In the list below, the word before the colon is the configuration in
 * which the search must find an error.
 */
#ifndef BROKEN
#define BROKEN 0
#endif
#define REPORT_WITHOUT_LOOK 1 /* threads: the link reports again, and no thread looks for bytes that arrived before */
#define WAIT_END_WANTS_NOTHING 2 /* threads: a wait that ends while the lock is taken sets no bit for its holder */
#define LEAVE_WITHOUT_LOOK 3 /* threads: the thread that releases the lock does not check the work left to it */
#define TAKEN_OFF_NOT_ASKED 4 /* writes: a connection that the alarm takes off the list is not checked for a Write */
#define LEASE_WITHOUT_ALARM 5 /* threads: a lease begins, and no alarm is set */
#define ALARM_NOT_SET_AGAIN 6 /* threads: a connection stays listed, and no alarm is set */
#define SPIN_END_KEEPS 7 /* threads: a leader ends its spin, and the link does not report again */
#define POST_BEFORE_LISTED 8 /* writes: a Write waits although its connection is not listed */
#define LIST_WITHOUT_REF 9 /* writes: the list holds no reference to its connections */

#ifndef SENDS
#define SENDS 1 /* number of arrivals */
#endif
#ifndef POSTS
#define POSTS 1 /* number of Writes */
#endif
#ifndef POLLS
#define POLLS 1 /* number of polls */
#endif
#ifndef WAITS
#define WAITS 1
#endif

/* The state of the link. */
byte bytes;          /* arrivals that were not received */
bool reports = true; /* the link reports arrivals */
bool event;          /* the poller has a READY_READ event */
bool closed;

/* The state of the connection. */
bool lock, want_read, want_own, want_disown, want_bell;
bool leased, used, spun, touch = true;
byte waiting;
byte refs = 1;       /* the link's reference */
bool freed;

/* The Writes that wait, and the watch. */
bool since, listed, due, for_write;
bool expiring;       /* the engine is between the expiry and setting the alarm again */

inline put() {
	assert(refs > 0);
	refs--;
	if :: refs == 0 -> freed = true :: else fi
}

/* --- with the connection's lock --- */

inline receive() {
	bytes = 0
}

inline settle() {
	if
	:: !closed && reports && (leased || spun || waiting > 0) -> reports = false; event = false
	:: !closed && !reports && !leased && !spun && waiting == 0 ->
		reports = true;
		if
		:: bytes > 0 && BROKEN != REPORT_WITHOUT_LOOK -> want_read = true
		:: else
		fi
	:: else
	fi
}

inline begin_lease() {
	if
	:: !leased && !closed && touch ->
		leased = true; used = true;
		if
		:: BROKEN != LEASE_WITHOUT_ALARM -> due = true
		:: else
		fi;
		if
		:: !listed -> listed = true; if :: BROKEN != LIST_WITHOUT_REF -> refs++ :: else fi
		:: else
		fi;
		settle()
	:: else
	fi
}

/* Do the work that other threads left to the lock's holder. may: this thread is allowed to touch
 * the memory of regions. */
inline serve(may) {
	if
	:: may ->
		if :: want_disown -> leased = false; want_disown = false :: else fi;
		if :: want_own -> want_own = false :: else fi;
		settle();
		if :: want_read && !closed -> receive() :: else fi;
		want_read = false;
		if :: want_bell -> want_bell = false; since = false :: else fi
	:: else
	fi
}

#define WANTED (want_read || want_own || want_disown || want_bell)

/* Serve, release the lock, and leave to the engine the bits that other threads set between these
 * two steps. */
inline leave(may) {
	atomic { serve(may) };
	lock = false;
	if
	:: BROKEN != LEAVE_WITHOUT_LOOK && WANTED -> task = true
	:: else
	fi
}
bool task; /* work that is left to the engine */

/* A thread calls this after it has set a want: take the lock and serve the want, or leave it to the
 * holder of the lock. */
inline ask(may) {
	if
	:: atomic { !lock && may -> lock = true }; leave(may)
	:: atomic { !lock && !may -> task = true }
	:: lock -> skip
	fi
}

/* --- threads --- */

#if SENDS
active proctype peer() {
	byte n = 0;
	do
	:: atomic {
		n < SENDS && !closed -> n++; bytes++;
		if :: reports -> event = true :: else fi
	   }
	:: n == SENDS || closed -> break
	od
}

#endif

active proctype poller() {
	byte n = 0;
	do
	:: n < POLLS ->
		n++;
		used = true;
		if
		:: !touch -> if :: leased -> want_disown = true; ask(false) :: else fi
		:: touch ->
			if
			:: atomic { !lock -> lock = true };
				if :: atomic { true -> begin_lease() } :: true fi;
				atomic { if :: !closed -> receive() :: else fi; since = false };
				leave(true)
			:: lock -> skip
			fi
		fi
	:: true -> break
	od
}

#if WAITS
active proctype waiter() {
	byte n = 0;
	bool look;
	do
	:: atomic { n < WAITS && !lock && !closed && touch -> lock = true; waiting++; n++; settle() };
		leave(true);
		/* poll(2): bytes have arrived, or the wait has ended for another reason */
		if :: bytes > 0 -> look = true :: true -> look = false fi;
		waiting--;
		if
		:: atomic { !lock && touch -> lock = true };
			atomic { if :: look && !closed -> receive() :: else fi; settle() };
			leave(true)
		:: lock || !touch ->
			if
			:: BROKEN != WAIT_END_WANTS_NOTHING ->
				want_own = true;
				if :: look -> want_read = true :: else fi;
				ask(touch)
			:: else
			fi
		fi
	:: true -> break
	od
}

#endif

#if POSTS
active proctype poster() {
	byte n = 0;
	bool quick;
	do
	:: n < POSTS ->
		atomic { !lock -> lock = true };
		n++;
		if
		:: closed -> skip
		:: !closed && since -> since = false /* a second Write sends both */
		:: !closed && !since ->
			/* watch_write() needs no lock if the connection is listed and the alarm is
			 * set */
			quick = listed && for_write && due;
			if
			:: quick || BROKEN == POST_BEFORE_LISTED -> skip
			:: else -> atomic {
				due = true; for_write = true;
				if
				:: !listed -> listed = true; refs++
				:: else
				fi
			   }
			fi;
			since = true
		fi;
		leave(true)
	:: true -> break
	od
}

#endif

#ifdef CLOSES
active proctype closer() {
	if
	:: true ->
		atomic { !lock -> lock = true };
		atomic { closed = true; leased = false; since = false; bytes = 0; event = false; put() };
		leave(true)
	:: true
	fi
}

#endif

#ifdef STALLS
/* A region that can stall is registered. */
active proctype staller() {
	if :: true -> touch = false :: true fi
}

#endif

active proctype engine() {
	bool look, bell, disown, awake;
end:	do
	/* the link */
	:: atomic { event -> event = false; want_read = true; awake = true }; ask(true)
	/* work that was left to the engine */
	:: atomic { task -> task = false }; ask(true)
	/* after an event the leader may spin for a short time */
	:: atomic { awake && !lock && !closed -> awake = false; lock = true; spun = true; settle(); receive() };
		leave(true);
		if
		:: BROKEN != SPIN_END_KEEPS -> spun = false; want_own = true; ask(true)
		:: else -> spun = false
		fi
	/* the alarm */
	:: atomic { due && !expiring -> due = false; for_write = false; expiring = true;
		    if :: true -> look = true :: true -> look = false fi };
		bell = false; disown = false;
		atomic {
			if
			:: listed ->
				assert(!freed);
				bell = since || !leased;
				disown = leased && look && !used;
				if :: look -> used = false :: else fi;
				if
				:: leased -> skip /* the connection stays listed */
				:: else -> listed = false; if :: BROKEN == TAKEN_OFF_NOT_ASKED -> bell = false :: else fi
				fi
			:: else
			fi
		};
		if :: bell -> want_bell = true :: else fi;
		if :: disown -> want_disown = true :: else fi;
		if :: bell || disown -> ask(true) :: else fi;
		atomic {
			if
			:: listed && BROKEN != ALARM_NOT_SET_AGAIN -> due = true
			:: else
			fi;
			expiring = false
		}
	od
}

/* `timeout` is true when no other process can continue. */
active proctype judge() {
	timeout -> assert(closed || (bytes == 0 && !since && !leased && reports))
}
