/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror.pml -- a model for spin(1) of the rules by which copies of a mirrored file agree.
 *
 * README.md states the parts that are modelled, and the promises. One step of one member is one
 * transition. Members crash and restart at any step, requests are delayed or lost, and no failure
 * is detected reliably: any member may try to be promoted at any time. `mutation` is a number of
 * the list in mirror_mutations.h; 0 stands for the unchanged rules.
 */
#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef PROMOTIONS
#define PROMOTIONS 2
#endif
#ifndef WRITES
#define WRITES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOSSES /* number of losses of a whole copy with its metadata */
#define LOSSES 0
#endif
#ifndef CONFIGS /* number of changes of the configuration */
#define CONFIGS 0
#endif
#ifndef SPARES /* number of copies that start empty and are not members yet: the last ones */
#define SPARES 0
#endif
#ifndef DEMOTES /* number of planned ends of an epoch */
#define DEMOTES 0
#endif
#ifndef ORDERS /* number of an operator's orders to promote a member by force */
#define ORDERS 0
#endif
#ifndef LATE /* 1: a swap may get no answer */
#define LATE 1
#endif
#ifndef STARTED /* member 0 serves in the first state */
#define STARTED 0
#endif
#ifndef TICKS /* ticks of the clock that measures leases; 0: no leases */
#define TICKS 0
#endif

#define EVERYONE ((1 << (MEMBERS - SPARES)) - 1)
#define ALL_DATA ((1 << (WRITES + 1)) - 1)
#define LEASE    3 /* ticks for which a candidate must have seen the alive key unchanged */
#define HOLDS    2 /* ticks after a renewal was sent during which its primary may answer reads */

#define BIT(i)      (1 << (i))
#define IN(set, i)  (((set) >> (i)) & 1)
#define MUTATED(m)  (mutation == (m))

#include "mirror_mutations.h"

/* The state of member i. Durable: data (one bit for each write), promise, named, blank, unclean.
 * The other fields are the memory of the member's primary process; epoch 0: there is no such
 * process. */
byte data[MEMBERS];
byte promise[MEMBERS];  /* the member refuses lower epochs */
byte named[MEMBERS];    /* records: writes that may differ between copies */
bool blank[MEMBERS];    /* a new copy without content */
bool unclean[MEMBERS];  /* the host lost power: records of writes on its medium may be lost */
bool up[MEMBERS];

byte epoch[MEMBERS];
bool serving[MEMBERS];
byte joined[MEMBERS];   /* members that are fenced and made equal in this epoch */
byte joining[MEMBERS];  /* members outside of S for which flushes wait */
byte insync[MEMBERS];   /* S in this primary's memory */
byte proposed[MEMBERS]; /* members in a swap to enlarge S that has no answer yet */
/* the register is unchanged since this primary's last read: its next swap succeeds */
bool current[MEMBERS];
byte pending[MEMBERS];  /* the write that is not acknowledged yet; 0: none */
byte holders[MEMBERS];  /* members that have this write */

/* The register has one value, which is changed by compare-and-swap. */
byte reg_epoch, reg_insync;
/* A swap without an answer. It may still be carried out as long as no other swap was carried
 * out. */
bool late;
byte late_insync;

/* writes that were acknowledged to an application; values that an application has read */
byte acknowledged, observed;
byte next_write = 1;
byte promotions, crashes, losses, configs;

#if DEMOTES
byte demotes;
bool reg_clean; /* the last primary has ended after it flushed everything, and all copies of S were equal */
bool was_clean[MEMBERS];
#define WAS_CLEAN(i) was_clean[i]
#else
#define WAS_CLEAN(i) false
#endif

#if CONFIGS
byte reg_members, reg_primary; /* the configured copies; index + 1 of the last primary */
byte knows[MEMBERS];           /* reg_members in this primary's memory */
byte successor[MEMBERS];       /* index + 1 of the copy that has replaced this one */
#define KNOWS(i, r) IN(knows[i], r)
#define REPLACED_BY_INSYNC(i) (successor[i] && IN(reg_insync, successor[i] - 1))
#else
#define KNOWS(i, r) true
#define REPLACED_BY_INSYNC(i) false
#endif
#if ORDERS
/*
 * An operator has looked at the set, orders to promote member `ordered` - 1 by force, and waits.
 * The order gives up only the writes that this member's copy lacks. If the operator's tool has
 * ended, its order gives up nothing.
 */
byte orders, ordered;
bool waits;       /* the operator's tool waits */
bool known;       /* the member's daemon has the order */
bool unchanged;   /* the register is unchanged since the operator looked */
bool let_in;      /* the daemon has let a process of the member begin */
/* the last epoch begun by force: writes that primaries of earlier epochs acknowledge are given
 * up */
byte forced_from;
#define GIVEN_UP(i) (epoch[i] < forced_from)
#else
#define GIVEN_UP(i) false
#endif
/* The operator's tool has read the register to change the configuration. */
bool config_read, config_current;
byte config_epoch, config_insync;

#if TICKS
/* The lease of the primary of reg_epoch. The ages are the ticks since the alive key changed, since
 * the last confirmed renewal was sent (as the primary counts them), and since the renewal under way
 * was sent. */
byte key_age, held[MEMBERS], sent_age;
bool renewal, landed; /* a renewal is under way; it has reached the register */
byte decided;         /* candidates that found the lease over some time ago */
byte renewer, ticks;
/* One read of an application: the member whose mapping it loads from, the writes acknowledged at
 * the read's begin, and the writes that it has seen. */
byte reader, read_began, read_saw;
bool reading, loaded, confirmed_early;
#endif

byte mutation;
/* n: the acting member; r: the member on which it acts; x: index or mask; all are 0 between
 * steps */
byte n, r, x;

inline forget(i)
{
	epoch[i] = 0; serving[i] = 0; joined[i] = 0; joining[i] = 0; insync[i] = 0; proposed[i] = 0;
	current[i] = 0; pending[i] = 0; holders[i] = 0;
#if DEMOTES
	was_clean[i] = 0;
#endif
#if CONFIGS
	knows[i] = 0;
#endif
#if TICKS
	/* A load from the mapping of one epoch must not be confirmed in another epoch. */
	reading = reading && reader != i;
	loaded = loaded && reading; confirmed_early = confirmed_early && reading;
	reader = (reading -> reader : 0); read_began = (reading -> read_began : 0);
	read_saw = (reading -> read_saw : 0);
#endif
}

/* Member i has changed the register: no other member's memory of the register is current now. */
inline changed(i)
{
	config_current = 0;
#if ORDERS
	unchanged = 0;
#endif
	x = 0;
	do
	:: x < MEMBERS -> current[x] = (x == i); x++
	:: else -> break
	od;
	x = 0
}

/* A swap of member i has succeeded: every other swap that was prepared before fails from now on. */
inline swapped(i)
{
	late = 0; late_insync = 0;
	changed(i)
}

/* Acknowledge the write of primary i if all members for which it waits have the write. The other
 * members then need no record of the acknowledged write any more. */
inline settle(i)
{
	if
	:: pending[i] && !((insync[i] | joining[i] | proposed[i]) & ~holders[i]) ->
		acknowledged = acknowledged | (GIVEN_UP(i) -> 0 : pending[i]);
		printf("%d acknowledges %d\n", i, pending[i]);
		named[i] = named[i] | pending[i]; /* the write's extent stays hot */
		x = 0;
		do
		:: x < MEMBERS ->
			if
			:: x != i && IN(insync[i], x) && up[x] -> named[x] = named[x] & ~pending[i]
			:: else
			fi;
			x++
		:: else -> break
		od;
		x = 0;
		pending[i] = 0; holders[i] = 0
	:: else
	fi
}

/* Member `to` obeys the epoch of member `from`: a primary process of an earlier epoch loses its
 * connections. */
inline fence(to, from)
{
	if
	:: epoch[to] && epoch[to] < epoch[from] -> forget(to)
	:: else
	fi;
	promise[to] = epoch[from]
}

#define HAS_EPOCH(i)  (up[i] && epoch[i])
#define OWN_PROMISE(i) (IN(joined[i], i) || MUTATED(SERVE_BEFORE_PROMISE))
#define MAY_SWAP(i)   (reg_epoch == epoch[i] && current[i])
#define OBEYS(i, p)   (promise[i] <= epoch[p] || MUTATED(NO_EPOCH_CHECK))
#define MAY_PROMOTE(i) (up[i] && epoch[i] < reg_epoch + 1 && (!epoch[i] || epoch[i] < reg_epoch) && \
	promotions < PROMOTIONS && (IN(reg_insync, i) || MUTATED(ANY_CANDIDATE) || \
	(MUTATED(PLACE_IS_IDENTITY) && REPLACED_BY_INSYNC(i))) && \
	(!blank[i] || MUTATED(EMPTY_CANDIDATE)))

#if TICKS
#define LEASE_IS_OVER(i) (reg_epoch == 0 || key_age >= LEASE || MUTATED(NO_LEASE) || IN(decided, i))
#else
#define LEASE_IS_OVER(i) true
#endif

inline crash_steps()
{
	if
	:: !up[n] -> up[n] = 1; printf("%d restarts\n", n)
	:: up[n] && crashes < CRASHES ->
		crashes++; up[n] = 0; forget(n); printf("%d crashes\n", n);
		if
		:: MUTATED(VOLATILE_PROMISE) -> promise[n] = 0
		:: else
		fi
	/* The member's host loses power. Data on the medium are kept; records that were placed and
	 * not written back are lost. */
	:: up[n] && crashes < CRASHES && named[n] && !serving[n] ->
		crashes++; up[n] = 0; forget(n); named[n] = 0; unclean[n] = 1;
		printf("%d loses power, and its records\n", n)
	/* The copy is lost with its medium. The last copy of S is never lost. */
	:: losses < LOSSES && (reg_insync & ~BIT(n)) ->
		losses++; up[n] = 0; forget(n); data[n] = 0; promise[n] = 0; named[n] = 0; unclean[n] = 0;
		blank[n] = !MUTATED(NEW_COPY_IS_CLEAN);
		printf("%d loses its copy\n", n)
	:: else
	fi
}

inline promote_steps()
{
	if
	:: MAY_PROMOTE(n) && LEASE_IS_OVER(n) ->
		promotions++; forget(n);
		printf("%d is promoted: epoch %d, S %d\n", n, reg_epoch + 1, reg_insync);
		reg_epoch++; swapped(n);
		epoch[n] = reg_epoch; insync[n] = reg_insync; current[n] = 1;
#if DEMOTES
		was_clean[n] = reg_clean; reg_clean = 0;
#endif
#if CONFIGS
		reg_primary = n + 1; knows[n] = reg_members;
#endif
#if TICKS
		decided = 0; key_age = 0; held[n] = 0; renewal = 0; landed = 0; sent_age = 0; renewer = 0
#endif
	:: HAS_EPOCH(n) && !IN(joined[n], n) && promise[n] <= epoch[n] ->
		promise[n] = epoch[n]; joined[n] = joined[n] | BIT(n);
		printf("%d promises its epoch %d\n", n, epoch[n])
	/* Serving begins by a swap, and only when all copies of S are equal. */
	:: HAS_EPOCH(n) && !serving[n] && OWN_PROMISE(n) &&
		(MAY_SWAP(n) || MUTATED(SERVE_WITHOUT_SWAP)) &&
		(!(insync[n] & ~(joined[n] | (MUTATED(SERVE_BEFORE_PROMISE) -> BIT(n) : 0))) ||
		 MUTATED(SERVE_UNEQUAL)) ->
		printf("%d serves: epoch %d, data %d, acknowledged %d, read %d\n", n, epoch[n], data[n],
		       acknowledged, observed);
		assert(!(acknowledged & ~data[n])); /* an acknowledged write is missing */
		assert(!(observed & ~data[n]));     /* a value that was read has disappeared */
		serving[n] = 1; observed = observed | data[n];
		if
		:: MAY_SWAP(n) -> swapped(n)
		:: else
		fi;
		x = 0;
		do
		:: x < MEMBERS ->
			if
			:: IN(insync[n], x) && IN(joined[n], x) -> named[x] = 0; unclean[x] = 0
			:: else
			fi;
			x++
		:: else -> break
		od;
		x = 0
	:: else
	fi
}

/* Before the primary n serves, it makes the copy of r equal to its own copy. */
inline equalise_steps()
{
	if
	:: n != r && HAS_EPOCH(n) && OWN_PROMISE(n) && !serving[n] && up[r] && IN(insync[n], r) &&
		!IN(joined[n], r) && OBEYS(r, n) ->
		/* Equalise the ranges in both members' records, or the whole copy if the records
		 * are not reliable. */
		x = (WAS_CLEAN(n) -> 0 : named[n] | named[r]);
		if
		:: (unclean[n] || unclean[r]) && !MUTATED(TRUST_LOST_RECORDS) -> x = ALL_DATA
		:: blank[r] -> x = ALL_DATA
		:: else
		fi;
		if
		:: MUTATED(NO_EQUALISE)
		:: else -> data[r] = (data[r] & ~x) | (data[n] & x)
		fi;
		if
		:: MUTATED(UNNAMED_EQUALISE)
		/* the records are durable before the first byte is copied, and are kept until n
		 * serves */
		:: else -> named[r] = x; named[n] = x
		fi;
		blank[r] = 0;
		printf("%d makes %d equal over %d\n", n, r, x);
		x = 0;
		fence(r, n);
		joined[n] = joined[n] | BIT(r)
	:: else
	fi
}

inline view_steps()
{
	if
	:: n != r && HAS_EPOCH(n) && OWN_PROMISE(n) && IN(insync[n], r) &&
		(MAY_SWAP(n) || MUTATED(SHRINK_WITHOUT_SWAP)) && !proposed[n] ->
		if
		:: MAY_SWAP(n) ->
			reg_insync = insync[n] & ~BIT(r); swapped(n);
			printf("%d removes %d from S\n", n, r)
		:: else
		fi;
		insync[n] = insync[n] & ~BIT(r); joined[n] = joined[n] & ~BIT(r);
		joining[n] = joining[n] & ~BIT(r);
		settle(n)
	/* The same swap without an answer: this member's state does not change until the outcome
	 * is known. */
	:: n != r && HAS_EPOCH(n) && OWN_PROMISE(n) && IN(insync[n], r) && MAY_SWAP(n) && !proposed[n] &&
		!late && LATE ->
		late = 1; late_insync = insync[n] & ~BIT(r);
		printf("%d asks to remove %d from S, no answer\n", n, r)
	:: n != r && HAS_EPOCH(n) && serving[n] && IN(insync[n], r) && pending[n] &&
		MUTATED(ACK_BEFORE_SHRINK) ->
		printf("%d goes on without %d\n", n, r);
		insync[n] = insync[n] & ~BIT(r);
		settle(n)
	/* r is made equal and gets all further flushes, and flushes wait for it. Only then a swap
	 * proposes it. */
	:: n != r && HAS_EPOCH(n) && serving[n] && !IN(insync[n], r) && !IN(joining[n], r) && up[r] &&
		OBEYS(r, n) && KNOWS(n, r) ->
		if
		:: MUTATED(EXPAND_UNEQUAL)
		:: else -> data[r] = data[n]; holders[n] = holders[n] | (pending[n] -> BIT(r) : 0)
		fi;
		/* If r gets a part of an unacknowledged write, r's records name the write, too. */
		named[r] = (MUTATED(JOIN_UNNAMED) -> 0 : pending[n]);
		blank[r] = 0; unclean[r] = 0;
		fence(r, n);
		joined[n] = joined[n] | BIT(r); joining[n] = joining[n] | BIT(r);
		printf("%d joins %d\n", r, n)
	:: n != r && HAS_EPOCH(n) && serving[n] && IN(joining[n], r) && MAY_SWAP(n) && !proposed[n] &&
		!late ->
		if
		:: true -> /* the swap is answered at once */
			reg_insync = insync[n] | BIT(r); swapped(n);
			insync[n] = insync[n] | BIT(r); joining[n] = joining[n] & ~BIT(r);
			printf("%d adds %d to S\n", n, r)
		:: LATE -> /* no answer: the swap may be carried out later, or never */
			late = 1; late_insync = insync[n] | BIT(r);
			proposed[n] = BIT(r);
			printf("%d asks to add %d to S, no answer\n", n, r)
		fi
	/* Before it serves, n makes r equal while members of S are absent, and one swap replaces
	 * these members by r. No record of r may name ranges in which r differs. */
	:: n != r && HAS_EPOCH(n) && OWN_PROMISE(n) && !serving[n] && !IN(insync[n], r) &&
		!IN(joining[n], r) && up[r] && OBEYS(r, n) && KNOWS(n, r) ->
		data[r] = data[n]; named[r] = 0; blank[r] = 0; unclean[r] = 0;
		fence(r, n);
		joined[n] = joined[n] | BIT(r); joining[n] = joining[n] | BIT(r);
		printf("%d fills %d\n", n, r)
	:: n != r && HAS_EPOCH(n) && !serving[n] && IN(joining[n], r) && MAY_SWAP(n) && !proposed[n] &&
		!late && (insync[n] & ~joined[n]) ->
		x = (MUTATED(FILL_KEEPS_LOST) -> insync[n] : insync[n] & joined[n]) | BIT(r);
		if
		:: true -> /* the swap is answered at once */
			reg_insync = x; insync[n] = x; joining[n] = joining[n] & ~BIT(r);
			swapped(n);
			printf("%d takes in %d: S %d\n", n, r, reg_insync)
		:: LATE -> /* no answer */
			late = 1; late_insync = x; proposed[n] = BIT(r);
			printf("%d asks to take in %d, no answer\n", n, r)
		fi;
		x = 0
	:: n != r && HAS_EPOCH(n) && IN(joining[n], r) && !IN(proposed[n], r) ->
		printf("%d gives up to join %d\n", n, r);
		joined[n] = joined[n] & ~BIT(r); joining[n] = joining[n] & ~BIT(r);
		settle(n)
	:: else
	fi
}

/* The outcomes of a swap without an answer. */
inline late_steps()
{
	if
	:: late ->
		reg_insync = late_insync;
		printf("the swap without an answer is carried out: S %d\n", reg_insync);
		swapped(MEMBERS)
	/* The register shows that the swap was carried out. */
	:: HAS_EPOCH(n) && reg_epoch == epoch[n] && !current[n] && OWN_PROMISE(n) ->
		printf("%d sees that its swap was carried out\n", n);
		insync[n] = reg_insync; joining[n] = joining[n] & ~reg_insync; proposed[n] = 0;
#if CONFIGS
		knows[n] = reg_members; joining[n] = joining[n] & reg_members;
#endif
		joined[n] = joined[n] & (reg_insync | joining[n] | BIT(n));
		current[n] = 1;
		settle(n)
	/* The register is unchanged: another swap of the same primary ends the wait for the first
	 * swap. */
	:: HAS_EPOCH(n) && proposed[n] && MAY_SWAP(n) ->
		printf("%d sees no trace of its swap\n", n);
		if
		:: MUTATED(READ_BACK_DECIDES)
		:: else -> swapped(n)
		fi;
		proposed[n] = 0;
		settle(n)
	:: else
	fi
}

inline write_steps()
{
	if
	:: HAS_EPOCH(n) && serving[n] && !pending[n] && next_write <= WRITES ->
		pending[n] = BIT(next_write); holders[n] = BIT(n); next_write++;
		printf("%d writes %d\n", n, pending[n]);
		data[n] = data[n] | pending[n];
		if
		:: MUTATED(SLOT_AFTER_WRITE)
		:: else -> named[n] = named[n] | pending[n] /* the extent is hot before the local write */
		fi;
		settle(n)
	:: n != r && HAS_EPOCH(n) && serving[n] && pending[n] && up[r] && !IN(holders[n], r) &&
		IN(insync[n] | joining[n] | proposed[n], r) &&
		(promise[r] == epoch[n] || MUTATED(NO_EPOCH_CHECK)) ->
		/* Fails if a former primary writes into the copy of a newer primary that serves. */
		assert(!(epoch[r] > epoch[n] && serving[r]));
		printf("the write %d of %d reaches %d\n", pending[n], n, r);
		data[r] = data[r] | pending[n];
		if
		:: MUTATED(NO_INTENT)
		:: else -> named[r] = named[r] | pending[n]
		fi;
		holders[n] = holders[n] | BIT(r);
		settle(n)
	:: else
	fi
}

#if DEMOTES
/* A planned end: everything was flushed, so the next primary finds no differences. */
inline demote_steps()
{
	if
	:: demotes < DEMOTES && HAS_EPOCH(n) && serving[n] && MAY_SWAP(n) && !(insync[n] & ~joined[n]) &&
		(!pending[n] || MUTATED(CLEAN_UNFLUSHED)) ->
		printf("%d ends its epoch %d well\n", n, epoch[n]);
		demotes++; reg_clean = 1; swapped(n);
		x = 0;
		do
		:: x < MEMBERS -> named[x] = (IN(insync[n], x) -> 0 : named[x]); x++
		:: else -> break
		od;
		x = 0;
		forget(n)
	:: else
	fi
}
#endif

#if ORDERS
#define ORDER_COUNTS (known && (unchanged || MUTATED(ORDER_OF_ANY_VIEW)))
#define MAY_FORCE(i) (ordered == (i) + 1 && up[i] && !blank[i] && promotions < PROMOTIONS && \
	(!epoch[i] || epoch[i] < reg_epoch))

inline end_order()
{
	waits = 0;
	known = known && MUTATED(ORDER_OUTLIVES_REQUEST)
}

inline order_steps()
{
	if
	:: orders < ORDERS && !waits && up[n] && reg_epoch && epoch[n] < reg_epoch ->
		orders++; ordered = n + 1; waits = 1; known = 1; unchanged = 1; let_in = 0;
		printf("an operator orders to promote %d by force: epoch %d, S %d\n", n, reg_epoch, reg_insync)
	:: waits -> end_order(); printf("the operator's tool ends: nothing has happened\n")
	/* The daemon lets a process begin; the process sends its swap later, perhaps more than
	 * once. */
	:: MAY_FORCE(n) && ORDER_COUNTS && !let_in -> let_in = 1; printf("a process of %d begins\n", n)
	:: MAY_FORCE(n) && let_in && (ORDER_COUNTS || MUTATED(ORDER_ASKED_ONCE)) ->
		promotions++; forget(n);
		printf("%d is promoted by force: epoch %d, data %d\n", n, reg_epoch + 1, data[n]);
		reg_epoch++; reg_insync = BIT(n);
		if
		:: waits && unchanged ->
			acknowledged = acknowledged & data[n]; observed = observed & data[n];
			forced_from = reg_epoch
		:: else
		fi;
		swapped(n);
		epoch[n] = reg_epoch; insync[n] = reg_insync; current[n] = 1;
		ordered = 0; waits = 0; known = 0; let_in = 0
	:: else
	fi
}
#endif

#if CONFIGS
#define MAY_LEAVE(i) (((config_insync & ~BIT(i)) && reg_primary != i + 1) || MUTATED(LAST_MAY_LEAVE))

/* The operator's tool changes the configuration: view and configuration are one value. The swap
 * that removes a copy also takes it out of S; a new copy is empty and not in S. */
inline config_steps()
{
	if
	:: configs < CONFIGS && !config_read ->
		printf("the operator's tool reads the register\n");
		config_read = 1; config_current = 1; config_epoch = reg_epoch; config_insync = reg_insync
	:: config_read && (config_current || MUTATED(CONFIG_WITHOUT_COMPARE)) ->
		if
		:: true
		:: IN(reg_members, n) && MAY_LEAVE(n) ->
			reg_members = reg_members & ~BIT(n); config_insync = config_insync & ~BIT(n);
			printf("copy %d leaves\n", n);
			if
			:: !IN(reg_members, r) && blank[r] ->
				reg_members = reg_members | BIT(r); successor[n] = r + 1;
				printf("copy %d takes its place\n", r)
			:: true
			fi
		:: !IN(reg_members, r) && blank[r] ->
			reg_members = reg_members | BIT(r);
			printf("copy %d is new\n", r);
			if
			:: MUTATED(NEW_MEMBER_IN_S) -> config_insync = config_insync | BIT(r); blank[r] = 0
			:: else
			fi
		fi;
		reg_epoch = config_epoch; reg_insync = config_insync;
		printf("the operator's tool writes the configuration: epoch %d, S %d\n", reg_epoch, reg_insync);
		assert(reg_insync != 0); /* fails unless a member is left that can be promoted */
		if
		:: MUTATED(LATE_IGNORES_CONFIG) -> changed(MEMBERS)
		:: else -> swapped(MEMBERS)
		fi;
		config_read = 0; config_epoch = 0; config_insync = 0; configs++
	:: config_read && !config_current ->
		config_read = 0; config_epoch = 0; config_insync = 0; configs++
	:: else
	fi
}
#endif

#if TICKS
#define LEASE_HOLDS(i) (held[i] < HOLDS)

inline lease_steps()
{
	if
	:: ticks < TICKS ->
		ticks++; printf("a tick\n");
		key_age = (key_age < LEASE -> key_age + 1 : LEASE);
		sent_age = (renewal && sent_age < LEASE -> sent_age + 1 : sent_age);
		x = 0;
		do
		:: x < MEMBERS -> held[x] = (held[x] < LEASE -> held[x] + 1 : LEASE); x++
		:: else -> break
		od;
		x = 0
	:: HAS_EPOCH(n) && reg_epoch == epoch[n] && !renewal ->
		renewal = 1; landed = 0; sent_age = 0; renewer = n;
		printf("%d sends a renewal\n", n)
	:: renewal && !landed && epoch[renewer] == reg_epoch ->
		landed = 1; key_age = 0; printf("the renewal changes the key\n")
	/* A promotion compares the key; without this comparison an outdated read of the key would
	 * permit the promotion. */
	:: MUTATED(PROMOTE_WITHOUT_KEY) && key_age >= LEASE && up[n] && !epoch[n] && !IN(decided, n) ->
		decided = decided | BIT(n); printf("%d finds the lease over\n", n)
	:: renewal && landed ->
		if
		:: up[renewer] && epoch[renewer] ->
			held[renewer] = (MUTATED(LEASE_FROM_ANSWER) -> 0 : sent_age)
		:: else
		fi;
		printf("the renewal is answered\n");
		renewal = 0; landed = 0; sent_age = 0; renewer = 0
	/* An application reads through the mapping of n, and then asks whether n was the
	 * primary. */
	:: !reading && HAS_EPOCH(n) && serving[n] ->
		reading = 1; reader = n; read_began = acknowledged;
		printf("an application of %d begins to read\n", n)
	:: !reading && HAS_EPOCH(n) && serving[n] && MUTATED(CONFIRM_BEFORE_LOAD) && LEASE_HOLDS(n) ->
		confirmed_early = 1; printf("an application of %d confirms\n", n)
	:: reading && !loaded && HAS_EPOCH(reader) ->
		loaded = 1; read_saw = data[reader]; printf("it loads %d\n", read_saw)
	:: reading && loaded && HAS_EPOCH(reader) ->
		if
		:: LEASE_HOLDS(reader) || (MUTATED(CONFIRM_BEFORE_LOAD) && confirmed_early) ||
			MUTATED(NO_CONFIRM) ->
			printf("%d was acknowledged before\n", read_began);
			assert(!(read_began & ~read_saw)) /* a stale value was confirmed */
		:: else
		fi;
		reading = 0; loaded = 0; reader = 0; read_began = 0; read_saw = 0; confirmed_early = 0
	:: reading && !HAS_EPOCH(reader) ->
		reading = 0; loaded = 0; reader = 0; read_began = 0; read_saw = 0; confirmed_early = 0
	:: else
	fi
}
#endif

inline choose(i)
{
	i = 0;
	do
	:: i < MEMBERS - 1 -> i++
	:: break
	od
}

init {
	atomic {
		c_code { const char *m = getenv("MUTATION"); now.mutation = m ? atoi(m) : 0; };
		reg_insync = EVERYONE;
		n = 0;
		do
		:: n < MEMBERS -> up[n] = 1; blank[n] = (n >= MEMBERS - SPARES); n++
		:: else -> break
		od;
		n = 0;
#if CONFIGS
		reg_members = EVERYONE;
#endif
#if STARTED
		reg_epoch = 1; epoch[0] = 1; serving[0] = 1; current[0] = 1;
		joined[0] = EVERYONE; insync[0] = EVERYONE;
#if CONFIGS
		reg_primary = 1; knows[0] = EVERYONE;
#endif
		do
		:: n < MEMBERS -> promise[n] = IN(EVERYONE, n); n++
		:: else -> break
		od;
		n = 0
#endif
	};
	do
	:: atomic {
		choose(n); choose(r);
		if
		:: true -> crash_steps()
		:: true -> promote_steps()
		:: true -> equalise_steps()
		:: true -> view_steps()
		:: true -> late_steps()
		:: true -> write_steps()
#if DEMOTES
		:: true -> demote_steps()
#endif
#if ORDERS
		:: true -> order_steps()
#endif
#if CONFIGS
		:: true -> config_steps()
#endif
#if TICKS
		:: true -> lease_steps()
#endif
		fi;
		n = 0; r = 0
	}
	od
}
