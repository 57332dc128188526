/* SPDX-License-Identifier: BSD-3-Clause */
/* Each changes one rule; check.sh reads this list. The word in front of the colon is the
 * configuration in which the search must find what goes wrong. One line each. */
/* clang-format off */
#define SERVE_WITHOUT_SWAP      1 /* views: a candidate serves without a swap of its own */
#define ACK_BEFORE_SHRINK       2 /* views: a flush is acknowledged before its missing member is out of S */
#define VOLATILE_PROMISE        3 /* views: a promise does not survive a crash */
#define EXPAND_UNEQUAL          4 /* views: a member joins without being made equal */
#define ANY_CANDIDATE           5 /* views: a member outside of S may be promoted */
#define NO_EPOCH_CHECK          6 /* views: the data path accepts every epoch */
#define NO_EQUALISE             7 /* views: members of S are not made equal before serving */
#define SERVE_UNEQUAL           8 /* views: serving begins before all of S are equal */
#define SERVE_BEFORE_PROMISE    9 /* views: a candidate goes on before its own promise */
#define SHRINK_WITHOUT_SWAP    10 /* views: a primary removes a member from S on its own */
#define READ_BACK_DECIDES      11 /* views: a swap that is not seen is taken for one that never happens */
#define UNNAMED_EQUALISE       12 /* records: the ranges of an equalisation are not recorded */
#define TRUST_LOST_RECORDS     13 /* records: records are relied on after a loss of power */
#define SLOT_AFTER_WRITE       14 /* records: a hot slot is durable only before the acknowledgement */
#define NO_INTENT              15 /* records: replicas do not record what they get */
#define EMPTY_CANDIDATE        16 /* members: a new copy without content may be promoted */
#define NEW_COPY_IS_CLEAN      17 /* members: a copy that was lost comes back as if it were in S */
#define CONFIG_WITHOUT_COMPARE 18 /* members: the configuration is written without comparing the view */
#define NO_LEASE               19 /* lease: a candidate does not wait for the lease */
#define LEASE_FROM_ANSWER      20 /* lease: a primary counts its lease from the answer, not the sending */
#define CONFIRM_BEFORE_LOAD    21 /* lease: an application confirms before it loads */
#define NO_CONFIRM             22 /* lease: an application does not confirm */
#define CLEAN_UNFLUSHED        23 /* views: an epoch ends as clean with a write under way */
#define JOIN_UNNAMED           24 /* records: what a resync carries of a write under way is not recorded */
#define NEW_MEMBER_IN_S        25 /* config: a copy that is added counts as in-sync at once */
#define PLACE_IS_IDENTITY      26 /* config: a copy that was replaced may act for the one in its place */
#define LAST_MAY_LEAVE         27 /* config: the last copy of S, or the primary's, may be removed */
#define LATE_IGNORES_CONFIG    28 /* config: a late swap is carried out although the configuration changed */
#define PROMOTE_WITHOUT_KEY    29 /* lease: a promotion does not compare the alive key */
#define ORDER_OUTLIVES_REQUEST 30 /* orders: an order by force counts after its tool has ended */
#define ORDER_OF_ANY_VIEW      31 /* orders: an order by force counts in a set that has changed since */
#define FILL_KEEPS_LOST        33 /* records: a copy that is filled before serving enters S beside the lost one */
#define ORDER_ASKED_ONCE       32 /* orders: a process that was let in by force goes on without the order */
