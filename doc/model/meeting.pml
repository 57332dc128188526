/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting.pml -- a model for spin(1): how two queue pairs without rdma_cm agree on one connection.
 *
 * The rules are those of src/softrnic/stream/meeting.c (doc/architecture/meeting.md). Two ends move
 * their queue pairs to RTR and back, in every order. Processes die and start again with the same
 * name or another one. The network delays everything, and a reset overtakes data that were sent
 * before it. README.md states the promises that are checked.
 *
 * One step of the only process is one event at one end. `mutation` is a number of the list in
 * meeting_mutations.h; 0 stands for the unchanged rules.
 */
#ifndef RESETS /* number of transitions to RESET or ERR, of both ends together */
#define RESETS 0
#endif
#ifndef KILLS /* number of deaths of a process; the process is started again */
#define KILLS 0
#endif
#ifndef NAMES /* end 0 may start again with another name, less or greater than the name of end 1 */
#define NAMES 0
#endif
#ifndef CUTS /* number of connections that the network resets */
#define CUTS 0
#endif
/* number of parked dials that are dropped because there are too many, for example from strangers */
#ifndef EVICTIONS
#define EVICTIONS 0
#endif
#ifndef EARLY /* number of timers that expire while data are in transit */
#define EARLY 0
#endif
#ifndef POSTS /* number of messages of the users */
#define POSTS 0
#endif
/* 0: dials of both ends arrive. 1: dials of one end get no answer. 2: they get no answer, or reach
 * another program, which can also close the connection */
#ifndef BLOCKED
#define BLOCKED 0
#endif
#ifndef SELF /* end 0 may choose itself as its peer */
#define SELF 0
#endif

#include "meeting_mutations.h"
#define MUTATED(m) (mutation == (m))

c_decl {
	\#include <stdlib.h>
}
byte mutation;

#define LINKS   4
#define NO_LINK 7

/* --- connections -------------------------------------------------------------------------------- */

#define CONNECTING 0 /* the dialing end has not sent its request */
#define SENT       1 /* the request is in transit */
/* the other end has read the request and has not answered: the dial is parked */
#define READ       2
#define ACCEPTED   3 /* reply and HELLO are in transit */
#define AGREED     4 /* the dialing end has read the reply; its HELLO is in transit or has arrived */

typedef connection {
	bool used;
	bit dialer;
	byte stage;
	bool nowhere;    /* the dial has reached a program other than the peer */
	bool is_open[2]; /* the connection is open at this end */
	bool ends[2];    /* the reset of the other end is in transit to this end */
	bool live[2];    /* this end has read the other end's HELLO */
	bool data[2];    /* a message is in transit to this end */
	bool ack[2];
	byte from, to;   /* names of the ends in the request */
	byte incarnation /* incarnation of the dialing end */
};
connection links[LINKS];

/* --- ends --------------------------------------------------------------------------------------- */

mtype = { NONE, DIALING, AWAITING, GREETING, MET, LOST };
mtype state[2] = NONE;
byte name[2], peer[2];     /* numbers; the end with the greater number dials */
byte attempt[2] = NO_LINK; /* index of the connection of the end's dial or stream */
bool down[2];              /* the end has no process */
bool blocked[2], blind;    /* blind: one end is blocked, for ever */
byte incarnation[2];
/* the stream has carried a message in either direction; this end's message is not acknowledged */
bool was_used[2], owes[2];
bool spent[2];             /* a stream that was used has ended: the end cannot meet before a reset */
bool stopped[2];           /* set by a mutation: no timer of the end runs any more */
/* number of timers of the end that expired while nothing was in transit, since the last
 * disturbance */
byte fired[2];

byte resets = RESETS, kills = KILLS, cuts = CUTS, evictions = EVICTIONS, early = EARLY, posts = POSTS;

/* RIGHT: the two ends must meet, because each looks for the other, and neither has used a stream
 * before. */
#define WAITS(e)  (state[e] == DIALING || state[e] == AWAITING)
#define RIGHT     (!down[0] && !down[1] && peer[0] == name[1] && peer[1] == name[0] && \
		   state[0] != NONE && state[1] != NONE && !spent[0] && !spent[1])
#define JOINED    (state[0] == MET && state[1] == MET && attempt[0] == attempt[1])
#define ROUNDS_MAX 6

/* --- requests, replies and data in transit ----------------------------------------------------- */

#define ACCEPTOR(l)      (1 - links[l].dialer)
#define WILL_CONNECT(l)  (links[l].used && links[l].stage == CONNECTING && !blocked[links[l].dialer])
#define REQUEST(l)       (links[l].stage == SENT && links[l].is_open[ACCEPTOR(l)])
#define REPLY(l)         (links[l].stage == ACCEPTED && links[l].is_open[links[l].dialer])
#define HELLO(l, e)      (links[l].stage == AGREED && links[l].is_open[e] && !links[l].live[e])
#define MOVES(l)         (WILL_CONNECT(l) || REQUEST(l) || REPLY(l) || HELLO(l, 0) || HELLO(l, 1) || \
			  links[l].ends[0] || links[l].ends[1] || links[l].data[0] || links[l].data[1] || \
			  links[l].ack[0] || links[l].ack[1])
#define QUIET            (!MOVES(0) && !MOVES(1) && !MOVES(2) && !MOVES(3))
#define PARKED(l, e)     (links[l].used && links[l].stage == READ && links[l].dialer != e && links[l].is_open[e])
#define IS_PEER(l, e)    (links[l].from == peer[e] && links[l].to == name[e])
#define PARKED_PEER(l, e) (PARKED(l, e) && IS_PEER(l, e))
#define PEER_IS_PARKED(e) (PARKED_PEER(0, e) || PARKED_PEER(1, e) || PARKED_PEER(2, e) || PARKED_PEER(3, e))
#define SENT_OURS(e)     (attempt[e] != NO_LINK && links[attempt[e]].stage != CONNECTING)
#define IS_BOUND(l, e)   (links[l].stage == AGREED || (links[l].stage == ACCEPTED && links[l].dialer != e))

/* Timers. The time limit ends a dial that gets no answer to its TCP connect (HANGS). */
#define MAY_DIAL(e)  (WAITS(e) && attempt[e] == NO_LINK && !stopped[e])
#define HANGS(e)     (WAITS(e) && attempt[e] != NO_LINK && links[attempt[e]].stage == CONNECTING && blocked[e])
#define MAY_YIELD(e) (state[e] == DIALING && SENT_OURS(e) && PEER_IS_PARKED(e) && !MUTATED(NO_YIELD))
/* The retry clock of a message that was not acknowledged before its stream was lost. */
#define RETRIES(e)   (state[e] == LOST && owes[e] && !MUTATED(LOST_UNTIMED))
#define TIMER(e)     (MAY_DIAL(e) || HANGS(e) || MAY_YIELD(e) || RETRIES(e))
/* While both ends look for each other, their timers expire in turns. The fallback does not expire
 * before a dial that is due at the other end. */
#define TURN(e)      (!RIGHT || ((fired[e] <= fired[1 - e] || !TIMER(1 - e)) && \
				 !(state[e] == AWAITING && state[1 - e] == DIALING && MAY_DIAL(1 - e))))

inline free_link(l) {
	if
	:: !links[l].is_open[0] && !links[l].is_open[1] ->
		links[l].used = false; links[l].dialer = 0; links[l].stage = 0; links[l].nowhere = false;
		links[l].live[0] = false; links[l].live[1] = false; links[l].from = 0; links[l].to = 0;
		links[l].incarnation = 0
	:: else
	fi
}

/* End e resets the connection. Data in transit to end e are lost immediately, data in transit to
 * the other end when the reset arrives. */
inline close_side(l, e) {
	links[l].is_open[e] = false;
	links[l].ends[e] = false; links[l].data[e] = false; links[l].ack[e] = false;
	links[l].ends[1 - e] = links[l].is_open[1 - e];
	free_link(l)
}

/* --- the rules ------------------------------------------------------------------------------------ */

inline end_attempt(e) {
	if
	:: attempt[e] < LINKS -> l1 = attempt[e]; close_side(l1, e)
	:: else
	fi;
	attempt[e] = NO_LINK;
	was_used[e] = false; owes[e] = false
}

/* If the table is full of earlier connections, the end dials later, when its timer expires. */
inline dial(e) {
	l1 = 0;
	do
	:: l1 < LINKS && links[l1].used -> l1++
	:: else -> break
	od;
	assert(l1 < LINKS || !QUIET);
	if
	:: l1 < LINKS ->
		printf("end %d dials by %d\n", e, l1);
		links[l1].used = true; links[l1].dialer = e; links[l1].is_open[e] = true;
		links[l1].from = name[e]; links[l1].to = peer[e]; links[l1].incarnation = incarnation[e];
		attempt[e] = l1
	:: else
	fi
}

/* No rule may end a connection that both ends have chosen. */
inline accept_link(l, e) {
	printf("end %d accepts %d\n", e, l);
	if
	:: attempt[e] != NO_LINK ->
		assert(!(IS_BOUND(attempt[e], 0) && IS_BOUND(attempt[e], 1) && links[attempt[e]].is_open[1 - e]));
		if
		:: MUTATED(FALLBACK_STAYS)
		:: else -> end_attempt(e)
		fi
	:: else
	fi;
	assert(IS_PEER(l, e));
	links[l].stage = ACCEPTED;
	attempt[e] = l;
	state[e] = GREETING;
	if
	:: MUTATED(LIVE_EARLY) -> state[e] = MET; assert(IS_BOUND(l, 1 - e))
	:: else
	fi
}

/* An end that begins to look for its peer first checks the parked dials. */
inline look_for_parked(e) {
	l2 = 0;
	do
	:: l2 < LINKS && !(PARKED(l2, e) && (IS_PEER(l2, e) || MUTATED(ANY_NAME))) -> l2++
	:: else -> break
	od;
	if
	:: l2 < LINKS -> accept_link(l2, e)
	:: else -> reject_strangers(e)
	fi
}

inline reject_strangers(e) {
	l2 = 0;
	do
	:: l2 < LINKS ->
		if
		:: PARKED(l2, e) && !IS_PEER(l2, e) -> close_side(l2, e)
		:: else
		fi;
		l2++
	:: else -> break
	od
}

inline begin_to_wait(e) {
	if
	:: name[e] > peer[e] || MUTATED(BOTH_DIAL) -> state[e] = DIALING
	:: else -> state[e] = AWAITING
	fi
}

inline on_rtr(e) {
	printf("end %d moves to RTR\n", e);
	if
	:: peer[e] == name[e] && !MUTATED(SELF_DIALS) -> state[e] = MET
	:: else ->
		begin_to_wait(e);
		if
		:: MUTATED(RTR_WITHOUT_LOOK)
		:: else -> look_for_parked(e)
		fi;
		if
		:: state[e] == DIALING -> dial(e)
		:: else
		fi
	fi
}

/* The end's stream or dial has ended without a message: the end looks for its peer again. */
inline wait_again(e) {
	was_waiting = WAITS(e);
	if
	:: state[e] == GREETING && MUTATED(GREETING_IS_LOST) -> state[e] = LOST
	:: state[e] == MET && MUTATED(UNUSED_IS_LOST) -> state[e] = LOST
	:: state[e] == AWAITING && MUTATED(FALLBACK_ONCE) -> stopped[e] = true
	:: MUTATED(DIALS_END) && blind && blocked[1 - e] -> stopped[e] = true; begin_to_wait(e)
	:: else -> begin_to_wait(e)
	fi;
	if
	:: !WAITS(e)
	:: was_waiting && MUTATED(DIAL_ENDS_WITHOUT_LOOK)
	:: !was_waiting && MUTATED(END_WITHOUT_LOOK)
	:: else -> look_for_parked(e)
	fi
}

inline on_end(e) {
	printf("end %d: its attempt has ended\n", e);
	attempt[e] = NO_LINK;
	if
	:: state[e] == MET && was_used[e] -> state[e] = LOST; spent[e] = true
	:: else -> wait_again(e)
	fi;
	was_used[e] = false
}

inline leave(e) {
	printf("end %d leaves RTR\n", e);
	if
	:: MUTATED(RESET_LEAVES_DIAL) && WAITS(e) -> attempt[e] = NO_LINK
	:: else -> end_attempt(e)
	fi;
	if
	:: MUTATED(RESET_FORGETS_PARKED) -> forget_parked(e)
	:: else
	fi;
	state[e] = NONE;
	peer[e] = 0;
	incarnation[e]++;
	stopped[e] = false; spent[e] = false
}

/* Only with a mutation: parked dials are neither accepted nor closed. */
inline forget_parked(e) {
	l2 = 0;
	do
	:: l2 < LINKS ->
		if
		:: PARKED(l2, e) -> links[l2].nowhere = true; links[l2].stage = SENT; links[l2].is_open[e] = false
		:: else
		fi;
		l2++
	:: else -> break
	od
}

/* A newer dial replaces a parked dial of the same name. */
inline park(l, e) {
	printf("end %d parks %d\n", e, l);
	l2 = 0;
	do
	:: l2 < LINKS ->
		if
		:: l2 != l && PARKED(l2, e) && links[l2].from == links[l].from ->
			if
			:: MUTATED(REPLACED_STAYS) -> links[l2].nowhere = true; links[l2].stage = SENT;
				links[l2].is_open[e] = false
			:: else -> close_side(l2, e)
			fi
		:: else
		fi;
		l2++
	:: else -> break
	od
}

inline on_inbound(l, e) {
	if
	:: WAITS(e) && !IS_PEER(l, e) && !MUTATED(ANY_NAME) -> printf("end %d rejects %d\n", e, l); close_side(l, e)
	:: WAITS(e) && MUTATED(ANY_NAME) && !IS_PEER(l, e) -> accept_link(l, e)
	:: state[e] == DIALING && IS_PEER(l, e) && SENT_OURS(e) && !MUTATED(CROSSWISE) -> park(l, e)
	:: state[e] == AWAITING && IS_PEER(l, e) && SENT_OURS(e) && MUTATED(FALLBACK_WINS) -> park(l, e)
	:: (state[e] == GREETING && MUTATED(GREETING_ACCEPTS) && IS_PEER(l, e)) -> accept_link(l, e)
	:: (state[e] == LOST && MUTATED(LOST_ACCEPTS) && IS_PEER(l, e)) -> accept_link(l, e); was_used[e] = true
	:: WAITS(e) && IS_PEER(l, e) && !(state[e] == DIALING && SENT_OURS(e) && !MUTATED(CROSSWISE)) &&
	   !(state[e] == AWAITING && SENT_OURS(e) && MUTATED(FALLBACK_WINS)) -> accept_link(l, e)
	:: !WAITS(e) && !(state[e] == GREETING && MUTATED(GREETING_ACCEPTS) && IS_PEER(l, e)) &&
	   !(state[e] == LOST && MUTATED(LOST_ACCEPTS) && IS_PEER(l, e)) -> park(l, e)
	fi
}

inline on_live(l, e) {
	printf("end %d has met by %d\n", e, l);
	links[l].live[e] = true;
	if
	:: attempt[e] == l ->
		assert(state[e] == GREETING || MUTATED(LIVE_EARLY));
		state[e] = MET;
		assert(!was_used[e])
	:: else
	fi
}

inline on_timer(e) {
	if
	:: MAY_DIAL(e) -> dial(e)
	:: HANGS(e) -> end_attempt(e); wait_again(e)
	:: MAY_YIELD(e) -> printf("end %d gives its dial up\n", e); end_attempt(e); look_for_parked(e)
	:: RETRIES(e) -> printf("end %d: its message has failed\n", e); leave(e)
	fi
}

/* --- steps of the network ---------------------------------------------------------------------- */

inline connect(l) {
	l3 = links[l].dialer;
	if
	:: down[1 - l3] -> close_side(l, l3); on_end(l3)
	:: else -> links[l].stage = SENT; links[l].is_open[1 - l3] = true
	fi
}

inline read_request(l) {
	l3 = ACCEPTOR(l);
	links[l].stage = READ;
	on_inbound(l, l3)
}

inline read_reply(l) {
	l3 = links[l].dialer;
	links[l].stage = AGREED;
	if
	:: attempt[l3] == l -> state[l3] = GREETING
	:: else
	fi
}

inline read_end(l, e) {
	also = links[l].ends[1 - e];
	close_side(l, e);
	links[l].ends[1 - e] = also && links[l].is_open[1 - e];
	if
	:: attempt[e] == l -> on_end(e)
	:: else
	fi
}

inline read_data(l, e) {
	printf("end %d receives a message\n", e);
	links[l].data[e] = false;
	was_used[e] = true;
	links[l].ack[1 - e] = links[l].is_open[1 - e]
}

inline read_ack(l, e) {
	links[l].ack[e] = false;
	owes[e] = false
}

/* --- disturbances ------------------------------------------------------------------------------ */

#define CALM fired[0] = 0; fired[1] = 0

inline kill(e) {
	printf("the process of end %d dies\n", e);
	leave(e);
	down[e] = true;
	l3 = 0;
	do
	:: l3 < LINKS ->
		if
		:: links[l3].used && links[l3].is_open[e] -> close_side(l3, e)
		:: else
		fi;
		l3++
	:: else -> break
	od
}

inline post(e) {
	printf("end %d sends a message\n", e);
	owes[e] = true;
	was_used[e] = true;
	l3 = attempt[e];
	links[l3].data[1 - e] = links[l3].is_open[1 - e]
}

inline cut(l) {
	printf("the network resets %d\n", l);
	links[l].ends[0] = links[l].is_open[0];
	links[l].ends[1] = links[l].is_open[1]
}

/* --- invariants -------------------------------------------------------------------------------- */

/* Open dials and streams of end e. A parked dial belongs to the other end. */
#define OURS(l, e) (links[l].used && links[l].is_open[e] && \
		    (links[l].dialer == e || links[l].stage == ACCEPTED || links[l].stage == AGREED))
#define N_OURS(e)  (OURS(0, e) + OURS(1, e) + OURS(2, e) + OURS(3, e))
/* Each end has accepted the other end's dial, and neither end gave up its own dial before. */
#define CROSSED    (state[0] == GREETING && state[1] == GREETING && links[attempt[0]].dialer == 1 && \
		    links[attempt[1]].dialer == 0 && links[attempt[0]].incarnation == incarnation[1] && \
		    links[attempt[1]].incarnation == incarnation[0])

inline check() {
	assert(N_OURS(0) <= 1 && N_OURS(1) <= 1);
	assert(!(WAITS(0) && peer[0] == name[0]));
	assert(!(state[0] == MET && state[1] == MET && attempt[0] < LINKS && attempt[1] < LINKS &&
		 attempt[0] != attempt[1]));
	if
	:: JOINED && attempt[0] < LINKS ->
		assert(peer[0] == name[1] && peer[1] == name[0]);
		assert(links[attempt[0]].incarnation == incarnation[links[attempt[0]].dialer])
	:: else
	fi;
	assert(BLOCKED == 2 || cuts < CUTS || !CROSSED)
}

/* Only an end with blocked dials needs the other end's fallback, or has to give up its dial. */
inline count_timer(e) {
	if
	:: RIGHT ->
		fired[e]++;
		assert(fired[0] + fired[1] <= ROUNDS_MAX);
		assert(blind || !(state[e] == AWAITING && MAY_DIAL(e)));
		assert(blind || !MAY_YIELD(e))
	:: else
	fi
}

active proctype world() {
	byte l, e, l1, l2, l3;
	bool was_waiting, also;

	d_step {
		c_code { const char *m = getenv("MUTATION"); now.mutation = m ? atoi(m) : 0; };
		name[0] = 1;
		name[1] = 2
	};
	if
	:: BLOCKED -> blocked[0] = true; blind = true
	:: BLOCKED -> blocked[1] = true; blind = true
	:: !BLOCKED
	fi;

end:
	do
	:: atomic {
		if
		:: l = 0
		:: l = 1
		:: l = 2
		:: l = 3
		fi;
		if
		/* Steps of the network. */
		:: d_step { WILL_CONNECT(l) -> connect(l); skip }
		:: d_step { REQUEST(l) -> read_request(l); skip }
		:: d_step { REPLY(l) -> read_reply(l); skip }
		:: d_step { HELLO(l, 0) -> on_live(l, 0); skip }
		:: d_step { HELLO(l, 1) -> on_live(l, 1); skip }
		:: d_step { links[l].ends[0] -> read_end(l, 0); skip }
		:: d_step { links[l].ends[1] -> read_end(l, 1); skip }
		:: d_step { links[l].data[0] && links[l].live[0] -> read_data(l, 0); skip }
		:: d_step { links[l].data[1] && links[l].live[1] -> read_data(l, 1); skip }
		:: d_step { links[l].ack[0] -> read_ack(l, 0); skip }
		:: d_step { links[l].ack[1] -> read_ack(l, 1); skip }
		/* Disturbances of the network. */
		:: d_step { cuts > 0 && links[l].is_open[0] && links[l].is_open[1] -> cuts--; CALM; cut(l); skip }
		:: d_step { evictions > 0 && (PARKED(l, 0) || PARKED(l, 1)) ->
			printf("%d is dropped\n", l);
			evictions--; CALM;
			l3 = ACCEPTOR(l); close_side(l, l3); skip }
		:: d_step { BLOCKED == 2 && links[l].used && links[l].stage == CONNECTING && blocked[links[l].dialer] ->
			printf("%d reaches something else\n", l);
			links[l].stage = SENT; links[l].nowhere = true; skip }
		:: d_step { BLOCKED == 2 && cuts > 0 && links[l].nowhere && links[l].is_open[links[l].dialer] ->
			printf("it hangs up\n");
			cuts--; CALM;
			l3 = links[l].dialer; close_side(l, l3); on_end(l3); skip }
		:: else
		fi;
		d_step { check(); l = 0; l1 = 0; l2 = 0; l3 = 0; was_waiting = false; also = false }
	}
	:: atomic {
		if
		:: e = 0
		:: e = 1
		fi;
		if
		/* Steps of the user. */
		:: d_step { state[e] == NONE && !down[e] -> CALM; peer[e] = name[1 - e]; on_rtr(e); skip }
		:: d_step { SELF && e == 0 && state[e] == NONE && !down[e] -> CALM; peer[e] = name[e]; on_rtr(e); skip }
		:: d_step { resets > 0 && state[e] != NONE -> resets--; CALM; leave(e); skip }
		:: d_step { posts > 0 && state[e] == MET && attempt[e] < LINKS && !owes[e] -> posts--; CALM; post(e); skip }
		:: d_step { posts > 0 && state[e] == LOST && !owes[e] -> posts--; CALM; owes[e] = true; skip }
		/* Disturbances of the ends. */
		:: d_step { kills > 0 && !down[e] -> kills--; CALM; kill(e); skip }
		:: d_step { down[e] -> printf("end %d comes again\n", e); CALM; down[e] = false; skip }
		:: d_step { NAMES && e == 0 && down[e] ->
			printf("end %d comes again as another\n", e); CALM; down[e] = false; name[e] = 4 - name[e]; skip }
		/* Timers. If no end is blocked, the search leaves out dials that get no reply for
		 * seconds. */
		:: d_step { early > 0 && TIMER(e) && !QUIET && (blind || !MAY_YIELD(e)) ->
			printf("a timer is early\n"); early--; CALM; on_timer(e); skip }
		:: d_step { QUIET && TIMER(e) && TURN(e) -> count_timer(e); on_timer(e); skip }
		:: else
		fi;
		d_step { check(); e = 0; l1 = 0; l2 = 0; l3 = 0; was_waiting = false; also = false }
	}
	:: d_step { QUIET && !TIMER(0) && !TIMER(1) && RIGHT -> assert(JOINED) }
	/* No message waits for ever. */
	:: d_step { QUIET && !TIMER(0) && !TIMER(1) -> assert(!owes[0] && !owes[1]) }
	od
}
