/* SPDX-License-Identifier: BSD-3-Clause */
/* Each line changes one rule of lookers.pml, in the form that mirror_mutations.h describes. */
/* clang-format off */
#define LEAVE_WITHOUT_LOOK       1 /* tcp: a thread releases the lock and does not check `want` again */
#define WAIT_ENDS_UNSEEN         2 /* tcp: a wait ends while the lock is held, and the link does not report again */
#define LEASE_ENDS_UNSEEN        3 /* tcp: a lease ends, and the link does not report again */
#define EARLY_ALARM_ONCE         4 /* tcp: an alarm that is early, for a Write, is not set again for the leases */
#define WANT_LATE                5 /* threads: the leader tries the lock first, and sets its bit of `want` afterwards */
#define LEASE_WITHOUT_ALARM      6 /* threads: a lease begins and no alarm is set */
#define ALARM_ONCE               7 /* threads: the alarm is not set again while a lease is used */
#define FORGET_UNFINISHED        8 /* spins: the unfinished part of a thread's turn does not become a task */
#define SPIN_ENDS_UNSEEN         9 /* spins: a leader stops spinning, and the link does not report again */
#define REPORT_UNSEEN           10 /* rings: the link reports again without a look at the ring */
#define SLEEP_UNSEEN            11 /* rings: a reader asks for a wake-up without another look at the ring */
#define WAIT_UNSEEN             12 /* rings: a thread waits for the socket without a look at the ring */
#define NO_GUARD                13 /* stalls: a leader that is held up is not replaced */
#define GUARD_DROPS_EVENTS      14 /* stalls: the events of a leader that was replaced are lost */
#define GUARD_FORGETS_SPIN      15 /* stalls: the successor does not spin on its predecessor's connections */
#define ALARM_WITHOUT_REFERENCE 16 /* destroy: the alarm lists a connection again without a reference */
#define LIST_WITHOUT_REFERENCE  17 /* destroy: the alarm's list has no reference to the connection */
#define TASK_WITHOUT_REFERENCE  18 /* destroy: a task has no reference to the connection */
