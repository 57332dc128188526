/* SPDX-License-Identifier: BSD-3-Clause */
/* Each line changes one rule of meeting.pml, in the form that mirror_mutations.h describes. */
/* clang-format off */
#define RTR_WITHOUT_LOOK        1 /* meets: an end that moves to RTR does not look at parked dials */
#define END_WITHOUT_LOOK        2 /* meets: an end whose stream has ended unused does not look at parked dials */
#define GREETING_IS_LOST        3 /* meets: an end whose stream ends before it was live does not wait again */
#define UNUSED_IS_LOST          4 /* meets: an end whose unused stream ends does not wait again */
#define FALLBACK_STAYS          5 /* meets: the end that awaits keeps its own dial when it accepts the peer's dial */
#define FALLBACK_WINS           6 /* meets: the end that awaits parks the peer's dial if it has sent its own */
#define CROSSWISE               7 /* meets: the end that dials accepts the peer's dial after it has sent its request */
#define BOTH_DIAL               8 /* meets: the end with the smaller name also dials immediately */
#define RESET_LEAVES_DIAL       9 /* meets: a reset does not end the dial */
#define RESET_FORGETS_PARKED   10 /* meets: a reset drops parked dials without closing them */
#define REPLACED_STAYS         11 /* meets: a parked dial that is replaced is not ended */
#define GREETING_ACCEPTS       12 /* meets: an end that has chosen a dial accepts another one */
#define LIVE_EARLY             13 /* meets: an end that accepts a dial counts as met before the peer's HELLO arrives */
#define ANY_NAME               14 /* names: an end that waits accepts every dial */
#define NO_YIELD               15 /* blocked: a dial without a reply is kept, although the peer's dial is parked */
#define DIAL_ENDS_WITHOUT_LOOK 16 /* blocked: an end whose dial has ended does not look at parked dials */
#define FALLBACK_ONCE          17 /* blocked: the end that awaits dials only once */
#define DIALS_END              18 /* blocked: an end stops dialing after failures */
#define LOST_ACCEPTS           19 /* used: an end whose stream was used accepts a dial of the peer's next incarnation */
#define SELF_DIALS             20 /* self: a queue pair that is its own peer dials itself */
#define LOST_UNTIMED           21 /* used: the end of a stream does not start the retry clock of its messages */
