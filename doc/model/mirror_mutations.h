/* SPDX-License-Identifier: BSD-3-Clause */
/* Each line changes one rule; check.sh reads this list. The word before the colon is the
 * configuration in which the search must find an error. A mutation has exactly one line. */
/* clang-format off */
#define SERVE_WITHOUT_SWAP      1 /* views: a candidate serves without a swap of its own */
#define ACK_BEFORE_SHRINK       2 /* views: a flush is acknowledged before the member that lacks it has left S */
#define VOLATILE_PROMISE        3 /* views: a promise does not survive a crash */
#define EXPAND_UNEQUAL          4 /* views: a member joins without being made equal */
#define ANY_CANDIDATE           5 /* views: a member outside of S may be promoted */
#define NO_EPOCH_CHECK          6 /* views: the data path accepts every epoch */
#define NO_EQUALISE             7 /* views: members of S are not made equal before serving */
#define SERVE_UNEQUAL           8 /* views: serving begins before all copies of S are equal */
#define SERVE_BEFORE_PROMISE    9 /* views: a candidate continues before its own promise */
#define SHRINK_WITHOUT_SWAP    10 /* views: a primary removes a member from S without a swap */
#define READ_BACK_DECIDES      11 /* views: a swap that the register does not show counts as failed */
#define UNNAMED_EQUALISE       12 /* records: the ranges of an equalisation are not recorded */
#define TRUST_LOST_RECORDS     13 /* records: records count as complete after a loss of power */
#define SLOT_AFTER_WRITE       14 /* records: a hot slot is durable only before the acknowledgement */
#define NO_INTENT              15 /* records: replicas do not record the ranges of writes that they get */
#define EMPTY_CANDIDATE        16 /* members: a new copy without content may be promoted */
#define NEW_COPY_IS_CLEAN      17 /* members: a copy that was lost returns without the mark of an empty copy */
#define CONFIG_WITHOUT_COMPARE 18 /* members: the configuration is written without comparing the view */
#define NO_LEASE               19 /* lease: a candidate does not wait for the lease */
#define LEASE_FROM_ANSWER      20 /* lease: a primary counts its lease from a renewal's answer, not from its sending */
#define CONFIRM_BEFORE_LOAD    21 /* lease: an application confirms before it loads */
#define NO_CONFIRM             22 /* lease: an application does not confirm */
#define CLEAN_UNFLUSHED        23 /* views: an epoch ends as clean with an unacknowledged write */
#define JOIN_UNNAMED           24 /* records: parts of unacknowledged writes in a resync are not recorded */
#define NEW_MEMBER_IN_S        25 /* config: a copy that is added counts as in-sync immediately */
#define PLACE_IS_IDENTITY      26 /* config: a copy that was replaced may be promoted if its replacement is in-sync */
#define LAST_MAY_LEAVE         27 /* config: the last copy of S, or the primary's copy, may be removed */
#define LATE_IGNORES_CONFIG    28 /* config: a late swap is carried out although the configuration changed */
#define PROMOTE_WITHOUT_KEY    29 /* lease: a promotion does not compare the alive key */
#define ORDER_OUTLIVES_REQUEST 30 /* orders: an order by force counts after its tool has ended */
#define ORDER_OF_ANY_VIEW      31 /* orders: an order by force counts although the set has changed since the order */
#define FILL_KEEPS_LOST        33 /* records: a copy that is filled before serving enters S, and the lost copy stays */
#define ORDER_ASKED_ONCE       32 /* orders: a process that an order let begin is promoted after the order's end */
