/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookers.pml -- a model for spin(1): which thread looks for the bytes of a connection.
 *
 * The rules are those of src/softrnic/io: conn.c (lock and `want`), conn_own.c, conn_watch.c,
 * policy.c, engine_spin.c, engine_stall.c, link_shm_io.c; and of verbs/cq_wait.c. A peer sends
 * MESSAGES messages. Each message takes two turns of the connection: the first turn takes the
 * message off the link, the second turn sends the answer and completes the request. Threads of the
 * application poll, or arm the completion queue and wait, until all messages are complete. If no
 * thread looks for bytes that have arrived, or no thread finishes a turn that was begun, the
 * application waits for ever; spin reports this state as an invalid end state. README.md describes
 * the steps.
 *
 * One `atomic` block is one step of one thread. In a trace, thread 2 is a thread of the
 * application, with WAITER thread 3, too; the higher numbers are the engine's threads. `mutation`
 * is a number of the list in lookers_mutations.h; 0 stands for the unchanged rules.
 */
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef QUIET /* number of first messages that complete nothing for the application */
#define QUIET 0
#endif
#ifndef WAITER /* 1: a second thread of the application waits; the first one may stop after any poll */
#define WAITER 0
#endif
#ifndef RINGS /* 0: TCP, whose descriptor is readable while it has bytes. 1: rings in shared memory */
#define RINGS 0
#endif
#ifndef SPINS /* a leader may spin */
#define SPINS 0
#endif
#ifndef STALLS /* the leader may be held up for ever, in the callback of another connection */
#define STALLS 0
#endif
#ifndef EARLY /* the alarm may expire early, for a Write of another connection */
#define EARLY 0
#endif
#ifndef DESTROY /* 1: the connection is destroyed after all messages are complete */
#define DESTROY 0
#endif

#include "lookers_mutations.h"
#define MUTATED(m) (mutation == (m))

c_decl {
	\#include <stdlib.h>
}
byte mutation;

/* --- the link --------------------------------------------------------------------------------- */
byte bytes;            /* messages that have arrived and are not taken off the link */
/* an edge-triggered event of the poller that the leader has not taken yet */
bool event;
/* rings: the reader has asked for a wake-up; the socket has a wake-up */
bool sleeps = RINGS, wakeup;
bool undrained;        /* rings: the wake-up was handled, and is still in the socket */

/* --- the connection. Its lock guards all except `want`, `waiters` and `used` ------------------- */
#define WANT_READ  1
#define WANT_OWN   2 /* other threads look for bytes now */
#define WANT_END   4 /* the lease is over */
#define WANT_AGAIN 8
#define WANT_BELL  16 /* check whether a deferred Write has to be sent */
bool lock;
byte want;
byte refs = 2;         /* references of the link and of the application */
bool registered = true;
bool readable, unsent, unfinished, to_sleep;
bool leased, waits, armed_before, spun, silent, awaited;
byte waiters;
bool used;             /* a poll or a wait has used the connection since the last check of leases */

/* --- the completion queue and its channel ------------------------------------------------------ */
byte completions, taken, quiet = QUIET;
bool armed, notice;

/* --- the engine -------------------------------------------------------------------------------- */
byte leader = 1;
bool in_hand;          /* the leader has taken the event, and has not begun the event's callback */
bool held_up;          /* the leader waits in the callback of another connection */
bool task;             /* the connection's task is queued */
bool due, look_at;     /* the alarm is set; the alarm or a polling thread has to check the leases */
bool watched;          /* the connection is in the alarm's list, which has a reference to it */
bool listed;           /* the leader spins on this connection */

#define FINISHED     (taken == MESSAGES - QUIET)
#define LINK_REPORTS (!leased && !spun && waiters == 0)
#define POLLED       (spun || (leased && !waits))
#define FREED        (refs == 0)

/* --- with the lock ------------------------------------------------------------------------------ */

inline queue_task() {
	if
	:: !task -> task = true; refs = refs + !MUTATED(TASK_WITHOUT_REFERENCE)
	:: else
	fi
}

/* The link reports bytes again, and looks for bytes that arrived meanwhile. */
inline report_reads() {
	if
	:: RINGS ->
		event = event || wakeup;
		sleeps = true;
		if
		:: bytes > 0 && !MUTATED(REPORT_UNSEEN) -> sleeps = false; want = want | WANT_READ
		:: else
		fi
	:: else -> event = event || bytes > 0
	fi
}

inline settle() {
	if
	:: registered && silent == LINK_REPORTS ->
		silent = !silent;
		if
		:: silent -> printf("  the link reports no bytes any more\n"); event = false; sleeps = false
		:: else -> printf("  the link reports bytes again\n"); report_reads()
		fi
	:: else
	fi
}

inline end_link_wait() {
	if
	:: registered && awaited && waiters == 0 ->
		awaited = false;
		if
		:: RINGS && silent -> sleeps = false; wakeup = false; undrained = false
		:: else
		fi
	:: else
	fi
}

/* If a polling thread stops with an unfinished turn, the rest of the turn becomes a task. */
inline finish() {
	if
	:: unfinished && !POLLED && !MUTATED(FORGET_UNFINISHED) -> queue_task()
	:: else
	fi
}

inline own_changed() {
	if
	:: registered ->
		end_link_wait();
		settle();
		finish()
	:: else
	fi
}

inline complete() {
	printf("  the answer of a message is sent\n");
	unsent = false;
	if
	:: quiet > 0 -> quiet--
	:: quiet == 0 && armed -> completions++; armed = false; notice = true
	:: quiet == 0 && !armed -> completions++
	fi
}

/* One turn sends an answer that is still due, and takes one message. */
inline turn() {
	unfinished = false;
	if
	:: unsent && registered -> complete()
	:: else
	fi;
	if
	:: readable && registered ->
		if
		:: bytes > 0 -> printf("  a message is taken\n"); bytes--; unsent = true
		:: else
		fi;
		readable = bytes > 0;
		to_sleep = RINGS && !readable
	:: else
	fi;
	if
	:: unsent && POLLED -> unfinished = true
	:: unsent && !POLLED -> queue_task()
	:: else
	fi
}

/* A ring's reader that finds no more bytes asks for a wake-up, and then checks the ring once
 * more. */
inline go_to_sleep() {
	to_sleep = false;
	if
	:: registered && (!silent || awaited) ->
		sleeps = true;
		if
		:: bytes > 0 && !MUTATED(SLEEP_UNSEEN) -> sleeps = false; readable = true; turn()
		:: else
		fi
	:: else
	fi
}

/* Set the alarm for the next check of the lease, if a lease exists. */
inline set_look() {
	look_at = leased;
	due = due || leased
}

inline lease_begin() {
	if
	:: !leased && registered ->
		printf("  a lease begins\n");
		leased = true;
		used = true;
		if
		:: !look_at && !MUTATED(LEASE_WITHOUT_ALARM) -> set_look()
		:: else
		fi;
		if
		:: !watched -> watched = true; refs = refs + !MUTATED(LIST_WITHOUT_REFERENCE)
		:: else
		fi
	:: else
	fi
}

inline lease_end() {
	printf("  the lease ends\n");
	leased = false; waits = false; armed_before = false; used = false
}

inline serve() {
	printf("thread %d has the lock, and serves %d\n", _pid, want);
	wanted = want;
	want = 0;
	if
	:: wanted & WANT_READ ->
		readable = registered;
		if
		:: RINGS && bytes == 0 -> wakeup = false; undrained = false
		:: RINGS && bytes > 0 -> undrained = wakeup
		:: else
		fi
	:: else
	fi;
	if
	:: wanted & WANT_OWN -> own_changed()
	:: else
	fi;
	if
	:: (wanted & WANT_END) && leased ->
		lease_end();
		if
		:: MUTATED(LEASE_ENDS_UNSEEN)
		:: else -> own_changed()
		fi
	:: else
	fi;
	turn();
	wanted = 0
}

/* --- the lock ------------------------------------------------------------------------------------ */

/*
 * A thread that sets a bit of `want` does so before it tries to take the lock, by a jump to
 * `enter`. A thread that has the lock and has finished its work jumps to `leave`: it releases the
 * lock, and then checks `want` once more.
 */
inline try_lock() {
	atomic {
		assert(!FREED);
		if
		:: want != 0 && !lock -> d_step { lock = true; serve() }
		:: else -> goto out
		fi
	}
}

inline release() {
	do
	:: atomic { to_sleep -> d_step { go_to_sleep() } }
	:: atomic { !to_sleep ->
		lock = false;
		if
		:: MUTATED(LEAVE_WITHOUT_LOOK) -> goto out
		:: else -> goto enter
		fi }
	od
}

/* A polling thread checks the leases, and postpones the alarm. With WAITER only the alarm checks
 * them, which keeps the search short. */
inline thread_looks() {
	printf("thread %d looks at the leases\n", _pid);
	unused = leased && !used;
	used = false;
	refs = refs + unused;
	set_look()
}

/* --- the peer ------------------------------------------------------------------------------------ */

proctype peer() {
	byte left = MESSAGES;

	do
	:: atomic { left > 0 ->
		printf("the peer sends\n");
		left--;
		bytes++;
		if
		:: !RINGS && !silent -> event = true
		:: else
		fi };
#if RINGS
		atomic {
			if
			:: sleeps ->
				printf("the peer sends a wake-up\n");
				sleeps = false;
				wakeup = true;
				event = event || !silent
			:: else
			fi
		}
#endif
	:: left == 0 -> break
	od
}

/* --- the application ------------------------------------------------------------------------------ */

#define AT_POLL 1
#define AT_ARM  2
#define AT_LAST 3 /* the poll between arming and waiting */
#define AT_WAIT 4
#define AT_LOOK 5
#define AT_RENEWED 6
#define AT_END 7

inline look_for_bytes() {
	if
	:: readable || unfinished || !RINGS || bytes > 0 ->
		readable = registered && (readable || !RINGS || bytes > 0);
		turn()
	:: else
	fi
}

/*
 * A poll of an empty queue does the work of the connection, unless another thread has the
 * connection's lock. A thread whose polls follow each other quickly begins a lease. If the thread
 * waits repeatedly, its first poll after the arming leaves the connection to the wait.
 */
inline drive(place) {
	printf("thread %d polls\n", _pid);
	used = leased;
	back = place;
	if
	:: registered && !lock && !(place == AT_LAST && waits) ->
		lock = true;
		if
		:: place == AT_POLL && !only_waits -> d_step { lease_begin(); settle() }
		:: true
		fi;
		d_step { look_for_bytes() };
		back = place;
		goto leave
	:: else -> goto out
	fi
}

/* Arming ends the lease, unless the thread waits repeatedly and arms once before each wait. */
inline arm() {
	printf("thread %d arms the queue\n", _pid);
	armed = true;
	if
	:: leased && waits && !armed_before -> armed_before = true
	:: leased && (!waits || armed_before) -> want = want | WANT_END
	:: else
	fi
}

/* The caller has the lock. The thread also waits for the link, unless bytes are in the ring. */
inline wait_begin() {
	printf("thread %d waits for the link\n", _pid);
	waiters++;
	settle();
	waiting = true;
	awaited = RINGS;
	if
	:: RINGS ->
		if
		:: undrained -> undrained = false; wakeup = false
		:: else
		fi;
		sleeps = true;
		if
		:: bytes > 0 && !MUTATED(WAIT_UNSEEN) ->
			sleeps = false;
			waiting = false;
			waiters--;
			own_changed();
			want = want | WANT_READ
		:: else
		fi
	:: else
	fi
}

/* The caller has the lock. The thread waited a short time ago, so it keeps a lease between its
 * waits. */
inline wait_again() {
	lease_begin();
	armed_before = false;
	waits = leased;
	finish()
}

inline forget() {
	printf("thread %d destroys the connection\n", _pid);
	registered = false;
	refs--;
	silent = false; spun = false; awaited = false; unfinished = false; readable = false; unsent = false;
	event = false; sleeps = false; wakeup = false; undrained = false; to_sleep = false;
	lease_end()
}

proctype application(bool only_waits) {
	byte back, wanted;
	bool look, waiting, unused;

next:
	do
	:: atomic { completions > 0 -> taken = taken + completions; completions = 0 }
	:: atomic { completions == 0 && FINISHED -> goto stops }
	:: atomic { completions == 0 && !FINISHED -> drive(AT_POLL) }
	:: atomic { completions == 0 && !FINISHED && look_at && !WAITER -> d_step { thread_looks() } };
		if
		:: atomic { unused -> unused = false; back = AT_RENEWED; want = want | WANT_END; goto enter }
		:: else
		fi
	:: atomic { completions == 0 && !FINISHED && (only_waits || !WAITER) -> arm(); back = AT_ARM; goto enter }
	:: atomic { WAITER && !only_waits -> goto stops }
	od;
wait:
	atomic {
		if
		:: notice -> notice = false; goto next
		:: else
		fi
	};
	atomic {
		back = AT_WAIT;
		if
		:: registered && !lock && !readable ->
			lock = true;
			used = leased;
			if
			:: d_step { wait_again() }
			:: true
			fi;
			d_step { wait_begin() };
			back = AT_WAIT;
			goto leave
		:: registered && !lock && readable -> lock = true; goto leave
		:: else -> goto out
		fi
	};
sleep:
	if
	:: notice || FINISHED
	:: atomic { waiting && (RINGS -> wakeup : bytes > 0) -> look = true }
	fi;
	back = AT_LOOK;
	if
	:: atomic { waiting -> printf("thread %d ends its wait\n", _pid); waiters--; waiting = false }
	:: else -> goto out
	fi;
	atomic {
		if
		:: !lock ->
			d_step {
				lock = true;
				end_link_wait();
				if
				:: look -> look_for_bytes()
				:: else
				fi;
				own_changed()
			};
			look = false;
			goto leave
		:: else
		fi
	};
	atomic {
		want = want | (MUTATED(WAIT_ENDS_UNSEEN) -> 0 : WANT_OWN) | (look -> WANT_READ : 0);
		look = false;
		goto enter
	};

enter:
	try_lock();
leave:
	release();
out:
	if
	:: back == AT_POLL -> back = 0; goto next
	:: back == AT_RENEWED -> back = 0; atomic { refs--; goto next }
	:: back == AT_ARM -> atomic {
		if
		:: completions > 0 -> back = 0; goto next
		:: else -> drive(AT_LAST)
		fi }
	:: back == AT_LAST -> back = 0;
		if
		:: completions > 0 -> goto next
		:: else -> goto wait
		fi
	:: back == AT_WAIT -> back = 0; goto sleep
	:: back == AT_LOOK -> back = 0; atomic {
		if
		:: notice -> notice = false; goto next
		:: FINISHED && !notice -> goto next
		:: else -> goto wait
		fi }
	:: back == AT_END -> back = 0; goto ends
	fi;

stops:
#if DESTROY
	atomic { !lock -> lock = true; d_step { forget() }; back = AT_END; goto leave };
ends:
	atomic { refs-- };
	FREED
#else
ends:
	skip
#endif
}

/* --- the engine ------------------------------------------------------------------------------------ */

#define LEADS (leader == me && !held_up)

/* One check by a spinning leader, which spins as long as no thread of the application looks for
 * bytes. */
inline spin_look() {
	printf("thread %d spins\n", _pid);
	lock = true;
	refs++;
	spun = registered && !leased && waiters == 0;
	listed = spun;
	own_changed();
	if
	:: spun -> look_for_bytes()
	:: else
	fi
}

/* The alarm takes the connection and the list's reference off the list. If the connection is
 * leased, the alarm lists it again. */
inline alarm_takes() {
	assert(!FREED);
	if
	:: leased && looks && !used -> bits = WANT_END
	:: leased && !(looks && !used) -> bits = 0
	:: !leased -> bits = WANT_BELL
	fi;
	used = used && !looks;
	watched = leased;
	refs = refs + (leased && !MUTATED(LIST_WITHOUT_REFERENCE) && !MUTATED(ALARM_WITHOUT_REFERENCE))
}

inline alarm_ends() {
	if
	:: looks && !MUTATED(ALARM_ONCE) -> set_look()
	:: !looks && look_at && !MUTATED(EARLY_ALARM_ONCE) -> due = true
	:: else
	fi;
	due = due || (watched && !MUTATED(ALARM_ONCE) && !MUTATED(EARLY_ALARM_ONCE));
	looks = false
}

/* Each callback has a reference to the connection until it has released the lock. */
proctype engine(byte me) {
	byte wanted, bits;
	bool looks, asked, without;

end:
	do
	:: atomic { LEADS && event && !in_hand ->
		printf("thread %d is reported bytes\n", _pid);
		event = false;
		in_hand = true }
	:: atomic { LEADS && in_hand && !registered -> in_hand = false }
	:: atomic { LEADS && in_hand && registered ->
		in_hand = false;
		if
		:: SPINS -> listed = true
		:: true
		fi;
		refs++;
		if
		:: MUTATED(WANT_LATE) && lock -> goto late
		:: else -> want = want | WANT_READ; goto enter
		fi }
	:: atomic { LEADS && due ->
		printf("the alarm expires\n");
		due = false;
		looks = look_at;
		if
		:: EARLY -> looks = false
		:: true
		fi;
		if
		:: watched -> d_step { alarm_takes() }; asked = true; goto asks
		:: else -> d_step { alarm_ends() }; asked = false
		fi }
	:: atomic { LEADS && task ->
		task = false;
		without = MUTATED(TASK_WITHOUT_REFERENCE);
		want = want | WANT_AGAIN;
		goto enter }
#if SPINS
	:: atomic { LEADS && listed && FREED -> listed = false }
	:: atomic { LEADS && listed && !FREED && !lock -> d_step { spin_look() }; without = false; goto leave }
	:: atomic { LEADS && listed && !FREED ->
		printf("thread %d stops spinning\n", _pid);
		listed = false;
		spun = false;
		if
		:: MUTATED(SPIN_ENDS_UNSEEN)
		:: else -> refs++; want = want | WANT_OWN; goto enter
		fi }
#endif
#if STALLS
	:: atomic { LEADS && me == 1 -> printf("the leader is held up\n"); held_up = true; goto end_held }
#endif
	od;

late:
	atomic { want = want | WANT_READ; goto out };
asks:
	atomic {
		without = MUTATED(LIST_WITHOUT_REFERENCE);
		want = want | bits;
		if
		:: bits -> bits = 0; goto enter
		:: else -> goto out
		fi
	};
enter:
	try_lock();
leave:
	release();
out:
	atomic {
		if
		:: !without -> refs--
		:: else -> without = false
		fi;
		if
		:: !asked -> goto end
		:: else -> asked = false
		fi
	};
	atomic { d_step { alarm_ends() }; goto end };
end_held:
	false
}

/* The guard replaces a leader that is held up. The successor takes over the leader's events, and
 * the connections on which the leader spins. */
proctype guard() {
end:
	do
	:: atomic { held_up && !MUTATED(NO_GUARD) ->
		printf("the guard replaces the leader\n");
		held_up = false;
		leader = 2;
		in_hand = in_hand && !MUTATED(GUARD_DROPS_EVENTS);
		listed = listed && !MUTATED(GUARD_FORGETS_SPIN) }
	od
}

init {
	atomic {
		c_code { const char *m = getenv("MUTATION"); now.mutation = m ? atoi(m) : 0; };
		run peer();
		run application(false);
		if
		:: WAITER -> run application(true)
		:: else
		fi;
		run engine(1);
		if
		:: STALLS -> run engine(2); run guard()
		:: else
		fi
	}
}
