/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl.h -- the daemon's objects, and what its files have of each other.
 *
 * One thread runs the loop and owns all of this; only calls of a register run elsewhere (agent.h).
 */
#ifndef MIRRORD_IMPL_H
#define MIRRORD_IMPL_H

#include <librpma.h>
#include <sys/types.h>

#include "base/clock.h"
#include "export/mapfile.h"
#include "mirror/core/candidate.h"
#include "mirror/core/growth.h"
#include "mirror/core/member.h"
#include "mirror/core/meta.h"
#include "mirror/wire/message.h"
#include "mirror/wire/packet.h"
#include "mirrord/agent.h"
#include "mirrord/conf.h"
#include "mirrord/neighbour.h"
#include "session/secret.h"

#define DAEMON_PENDING_MS   5000 /* for the steps before a connection is granted */
#define DAEMON_REFUSED_MAX  64
#define DAEMON_CLIENTS_MAX  256  /* of the UNIX socket, */
#define DAEMON_CLIENTS_USER 64   /* and of one user but root */
#define DAEMON_HEARTBEAT_MS 1000 /* without one the alive key is not renewed */
#define DAEMON_SILENT_MS    3000 /* a primary's status that is older says nothing of now */

struct daemon;
struct set;
struct json_t; /* of jansson */

/* A descriptor that the loop watches. */
struct watch {
	int fd; /* -1: none */
	void (*on_ready)(struct watch *w);
	void *owner;
};

/* A program that the configuration names. What sets it up fills all from `daemon` on. */
struct program {
	pid_t pid;           /* 0: it does not run; also of its process group */
	struct watch on_end; /* its pidfd */
	int cause_fd;        /* where the reason comes from for which it cannot be run */
	uint64_t deadline_ms;
	bool is_late; /* hence killed */
	pid_t stuck;  /* a former one that was killed and does not end; 0: none */
	struct daemon *daemon;
	bool is_probe; /* it is not run: can it be? */
	unsigned limit_ms;
	/* NULL: it ended with 0 */
	void (*on_done)(struct program *p, const char *failure);
	void *owner;
};

/* A connection of a primary, a candidate or another daemon. */
enum link_state { LINK_PROVING, LINK_GRANTED, LINK_REFUSED };

struct link {
	struct link *next;
	struct daemon *daemon;
	struct set *set; /* NULL only when refused */
	enum link_state state;
	struct greeting greeting;
	struct greeting_reply reply;
	unsigned version; /* of the messages */
	char addr[RPMA_ADDR_MAX];
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct watch on_event, on_message;
	uint64_t deadline_ms;
	bool counts; /* as open, in the rules of member.h */
	struct rpma_mr_local *data_mr, *ring_mr, *message_mr;
	uint32_t out_busy; /* slots of messages.out, a bit each */
	struct link_messages {
		uint8_t in[MESSAGE_OUTSTANDING][MESSAGE_SIZE];
		uint8_t out[2 * MESSAGE_OUTSTANDING][MESSAGE_SIZE];
	} messages;
};

/* A process at the UNIX socket. */
struct client {
	struct client *next;
	struct daemon *daemon;
	uint64_t serial;
	pid_t pid;
	uid_t uid;
	struct watch on_packet;
	unsigned version; /* of the packets; 0: no MAP has come yet */
	struct set *set;  /* that it maps or waits for */
	bool is_waiting;
	bool is_reader;  /* maps it read-only */
	bool is_ordered; /* an operator wants it to be primary */
	bool is_dead;    /* it did not read; its end is on the way */
	uint32_t map_id; /* of the MAP that waits */
	uint8_t map_flags;
	uint32_t wants_answer, wants_alive; /* reads that count for it, by number */
	/* A tool's: what it waits for. */
	enum client_wait {
		CLIENT_IDLE,
		CLIENT_WAITS_ORDER,
		CLIENT_WAITS_SWAP,
		CLIENT_WAITS_PRIMARY,
		CLIENT_WAITS_GROWTH
	} wait;
	struct set *wait_set;
	bool wants_verified; /* in the answer to its order */
	bool is_forced;      /* its promotion, */
	bool has_run;        /* for which on-promote was run */
	uint64_t wait_until_ms;
	bool gets_events;
};

/* Who maps a set on this host. */
struct holder {
	pid_t pid;                 /* 0: nobody */
	uint64_t known_ms;         /* since when this daemon knows of it */
	struct watch on_end;       /* its pidfd; none: it cannot be watched yet */
	struct client *client;     /* NULL: it has lost its connection */
	unsigned version;          /* the newest one of its library; 0: not known */
	struct mirror_epoch epoch; /* that it is primary of, or 0 */
	uint64_t fenced_by; /* number of the epoch that took its place, and that it heard of */
	uint64_t heartbeat_ms;
	struct packet_report report; /* the last one */
	uint64_t report_ms;          /* 0: there was none */
	bool is_silent;              /* and an event says so */
};

/* Who proves that a former primary's host is off. */
struct fence_agent {
	struct program program, probe;
	char path[MIRROR_PATH_MAX + 1], member[MIRROR_NAME_MAX + 1];
	struct mirror_epoch epoch; /* of that primary */
	struct mirror_epoch proof; /* of one that is off, as it says */
	bool is_cancelled;
	unsigned failures; /* in this epoch, one after the other, */
	uint64_t retry_ms; /* until when it is not run again, */
	char why[128];     /* and the last one */
};

struct set {
	struct daemon *daemon;
	const struct conf_set *conf;
	bool is_open; /* files and metadata */
	uint64_t open_retry_ms;
	struct error why_not; /* it is not open, or cannot be used */
	struct mapfile data, meta_file;
	int sentinel; /* of medium.c; -1: none */
	struct meta meta;
	struct member member;
	bool has_secret;
	struct secret secret;
	struct rpma_mr_local
		*anchor; /* a failed write-back is remembered as long as there is one */
	struct agent *asks, *alive, *watcher;
	struct agent *worker; /* for what may last long; made when it is needed first */
	struct neighbours *neighbours;
	bool is_asking, ask_again, is_watching, is_reading_alive, is_renewing;
	uint32_t asked, answered;             /* reads of the record, by number, */
	uint32_t alive_asked, alive_answered; /* and of the alive key */
	uint64_t epoch_ns;                    /* when its epoch was heard of */
	uint64_t shown_ns;                    /* when the copy's rules saw a record or view last */
	struct mirror_epoch cleared;          /* whose alive key was cleared here */
	/* the register, as it was read last */
	struct register_entry entry;
	struct register_health register_health; /* no members: not known yet */
	uint64_t count_ms;                      /* when to ask for it again */
	bool has_entry, register_answers, is_split;
	enum member_reason split_reason;
	char split_why[256];
	struct candidate candidate;
	struct register_alive seen;           /* the alive key of the candidate's verdict, */
	uint64_t seen_ms;                     /* and when it was read; 0: not in this epoch */
	bool lease_is_over;                   /* that key is there, and stands still */
	bool may_promote;                     /* by that key, an agent or an operator */
	struct register_alive renewed;        /* what our renewal saw last */
	uint64_t renew_ms, look_ms, alive_ms; /* when the next one is due */
	struct mirror_epoch word;             /* whose primary is off, as an operator says */
	struct fence_agent fence;
	struct set_promotion {
		struct program program; /* on-promote */
		char path[MIRROR_PATH_MAX + 1];
		uint64_t next_ms; /* when it may run again */
		char why[128];    /* its failure, the last time; "": there was none */
	} promotion;
	uint64_t fresh_ns; /* the copy had all that was acknowledged then; 0: not known */
	uint64_t scrub_retry_ms;
	bool is_scrubbing;
	struct holder holder;
	struct set_growth {
		struct growth copy;
		struct growth_order order;
		uint64_t client; /* whose order */
	} growth;
	struct set_reported {
		bool is_set;
		struct mirror_view view;
		enum mirror_health health;
		enum mirror_copy copy;
	} reported;
};

struct daemon {
	struct conf *conf;
	const char *conf_path;
	void (*set_log)(enum log_level level);
	struct mirror_uuid boot;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct address listen;
	int epoll_fd;
	struct watch on_request, on_client, on_signal, on_answer;
	struct agent_answers *answers;
	struct set *sets;
	struct link *links; /* the latest one first */
	unsigned pending, granted, refused;
	struct client *clients;
	unsigned client_count;
	uint64_t next_serial;
	bool is_ending;
};

/* loop.c: descriptors. */
int loop_watch(struct daemon *d, struct watch *w, int fd, void (*on_ready)(struct watch *w),
	       void *owner);
void loop_unwatch(struct daemon *d, struct watch *w);
/* Until it is told to end. */
void loop_run(struct daemon *d);

/* copy.c: files of a set's copy. */
/* 0: the set is open. Otherwise set->why_not says why, and it is tried again later. */
int copy_open(struct set *s);
void copy_close(struct set *s);
enum mirror_copy copy_state(const struct set *s);

/* Of a member, by this daemon or its own: a failed copy, which no resync brings back. */
bool copy_has_failed(const struct set *s, uint8_t slot);
#define COPY_FAILED_NEXT                                                                           \
	"when its medium is good again restart rpmirrord on its host; if the copy has failed "     \
	"still, 'rpmirror member replace' gives the member a new one"

/* medium.c: write-backs of the copy's data file that failed, whoever met them. */
/* Before the data file is used. */
int medium_open(struct set *s, struct error *err);
void medium_close(struct set *s);
/* Before it was opened; is_cached: what is cached of the file is in use. */
void medium_begin(struct set *s, bool is_cached);
/* If one has failed, the copy has, and it is recorded. Before each answer about the copy; it waits
 * for nothing. The metadata are open. */
void medium_look(struct set *s);
/* One has, with that errno. */
void medium_fail(struct set *s, int error);

/* grow.c: a set gets larger. */
/* A question of another daemon, which gives an order to grow. */
void grow_on_reserve(struct set *s, const struct message_reserve *asked,
		     struct message_reserve *answer);
/* An operator's order: the files of all in-sync copies, then the register. */
void grow_request(struct client *client, struct set *s, uint64_t size);
/* The register's size is taken over as soon as that is possible. May close and open the copy. */
void grow_look(struct set *s);
void grow_tick(struct set *s, uint64_t now_ms);
/* The files are made longer, or the copy waits for its turn: why, or NULL. */
const char *grow_obstacle(const struct set *s);

/* set.c: sets, and what is to be done from time to time. */
int set_init(struct set *s, struct daemon *d, const struct conf_set *conf, struct error *err);
void set_fini(struct set *s);
/* A thread for calls of its register, and others. Kinds of error.h. */
int set_new_agent(struct set *s, struct agent **agent, struct error *err);
struct set *set_find(struct daemon *d, const char *name);
struct set *set_find_uuid(struct daemon *d, const struct mirror_uuid *uuid);
/* The configuration was read: whom to ask for their status. */
void set_plan_neighbours(struct set *s);
/* Unless it is open. */
void set_try_open(struct set *s, uint64_t now_ms);
/* Milliseconds until it is to be called again. */
int set_tick(struct set *s, uint64_t now_ms);
bool set_has_waiting(const struct set *s);
/* What the process that maps the set says of it, unless that is too old; NULL: nothing. */
const struct packet_report *set_report(const struct set *s);
/* It maps the set, but has not reported lately. */
bool set_is_silent(const struct set *s);
void set_fill_status(struct set *s, struct message_status *status);

/* health.c: what the primary says of the set: its process here, or the daemon of its host. */
struct primary_words {
	const struct message_status *status; /* NULL: it says nothing now */
	const struct packet_report *report;  /* the same, and more; only of a process here */
	bool is_silent;                      /* there is a process that should */
	bool has_ended;                      /* no process has the copy mapped */
	bool is_unreachable;                 /* the daemon of its host does not answer */
	struct message_status of_neighbour;
};
/* words->status may point into *words or *s. */
void health_ask_primary(const struct set *s, struct primary_words *words);
enum mirror_health health_of(const struct set *s, const struct primary_words *words);
/* Why it is not known that a set is served which the register says is; NULL: it is known, or not
 * so. */
const char *health_doubt(const struct set *s, const struct primary_words *words);
/* By the register's view alone. */
enum mirror_health health_by_register(const struct set *s);

/* reg.c: the register, and who is alive. */
void reg_ask(struct set *s); /* read the record; reg.c calls map_retry() then */
void reg_tick(struct set *s, uint64_t now_ms);
void reg_ask_alive(struct set *s);
/* The primary of that epoch has ended on this host. */
void reg_clear_alive(struct set *s, struct mirror_epoch epoch);
/* The answer to a question that was sent at that time. */
void reg_on_entry(struct set *s, const struct register_entry *entry, uint64_t sent_ns);

/* link.c: the life of connections. */
/* End overdue ones; when the next one will be, or UINT64_MAX. */
uint64_t links_deadline(struct daemon *d, uint64_t now_ms);
/* Watch it; *link may be gone afterwards. */
void link_adopt(struct daemon *d, struct link *link);
void link_enter(struct link *link, enum link_state state);
/* Release what it has; for one that was not adopted. */
void link_free(struct link *link);
/* Disconnect and deregister: when this returns nothing of it can be placed any more. */
void link_end(struct link *link);
void links_make_room(struct daemon *d, const char *addr);
/* Data connections of the set with epochs below that one, and control connections too. */
void links_cut(struct set *s, struct mirror_epoch epoch, const struct link *asker);
void links_end_all(struct daemon *d, struct set *s); /* s NULL: of all sets */
int link_post_receives(struct link *link, struct rpma_conn_req *req);
/* Librpma's results, or RPMA_E_AGAIN: the other end asked for more than it may. */
int link_send(struct link *link, const struct message *m);

/* accept.c: connections that are asked for. */
void accept_on_request(struct watch *w);

/* fence.c: promises. */
enum greeting_status fence_status(enum member_reason reason);
/* answer is DONE with the verdict's reason. */
void fence_refuse(const struct set *s, const struct member_verdict *v, uint8_t to,
		  struct message *answer);
/* Cut, drain, record; answer is PROMISED, or DONE with a refusal. */
void fence_promise(struct set *s, const struct link *asker, struct mirror_epoch epoch,
		   struct message *answer);

/* control.c: messages of connections. */
void control_on_message(struct watch *w);
/* The answer to a question about the set's copy. False: it is no question. */
bool control_answer(struct set *s, const struct link *asker, const struct message *m,
		    struct message *answer);

/* local.c: the UNIX socket. */
int local_open(struct daemon *d, struct error *err);
void local_close(struct daemon *d);
struct client *local_find(struct daemon *d, uint64_t serial);
/* Send; a client that does not read is closed, not before the loop's next turn, and so is one that
 * does not understand the format of the record. At most two descriptors, fds may be NULL. */
void local_send(struct client *client, struct packet *p, const int *fds, unsigned fd_count);
void local_send_done(struct client *client, uint32_t id, enum packet_status status,
		     const char *text);
void local_send_text(struct client *client, const char *text, size_t len);

/* End its connection at the loop's next turn. */
void local_drop(struct client *client);

/* reload.c: SIGHUP. */
void reload(struct daemon *d);

/* library.c: packets of a library. 0, or -errno: it may not send that now. */
int library_on_packet(struct client *client, const struct packet *p);

/* map.c: who maps a set. */
void map_on_request(struct client *client, const struct packet *p);
void map_on_unmap(struct client *client, const struct packet *p);
/* Something has changed: look after whoever waits. */
void map_retry(struct set *s);
/* Why a process that waits does not map yet. */
struct map_reason {
	enum packet_status status;
	char text[PACKET_TEXT];
};
struct map_reason map_why_waits(const struct set *s, const struct client *client);
/* The process that the metadata name as the holder is not known to have ended. */
bool map_holder_may_live(const struct set *s);
/* After the daemon's start: is the holder that the metadata name still there? It is kept as long as
 * that is not known; to be called again then. */
void map_find_holder(struct set *s);
/* The connection is gone; the process may go on. */
void map_on_lost(struct client *client);
void map_release(struct set *s, bool clean);

/* request.c: the tool's JSON. */
void request_on_packet(struct client *client, const char *text, size_t len);
/* The numbers are REQUESTS.md's, and exit codes of the tool. */
enum request_code {
	REQUEST_USAGE = 1,
	REQUEST_CONFIG,
	REQUEST_UNREACHABLE,
	REQUEST_QUORUM,
	REQUEST_NOT_INSYNC,
	REQUEST_EPOCH,
	REQUEST_SPLIT,
	REQUEST_TIMEOUT,
	REQUEST_IO,
	REQUEST_BUSY
};
void request_refuse(struct client *client, enum request_code code, const char *hint,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void request_send(struct client *client, struct json_t *answer); /* releases it */
void request_done(struct client *client);                        /* {"ok": true} */
/* Those that waited too long are answered; milliseconds until the next one's time, or -1. */
int requests_tick(struct daemon *d, uint64_t now_ms);

uint64_t request_random(void); /* not 0 */

/* program.c: programs of the configuration. */
#define PROGRAM_VARS 6
#define PROGRAM_VAR  320
struct program_vars {
	unsigned count;
	char text[PROGRAM_VARS][PROGRAM_VAR]; /* NAME=value */
};
void program_set_var(struct program_vars *vars, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Of that set: what all programs are told of it, as the first variables. */
void program_prepare(struct program *p, struct set *s, struct program_vars *vars);
/* That is its environment, beside PATH. argument may be NULL. 0, or -errno: on_done is not called
 * then. A file that cannot be executed is a failure of the program. */
int program_start(struct program *p, const char *path, const char *argument,
		  struct program_vars *vars);
/* None runs, and none is stuck that is of the same file: each would be, and they would pile up. */
bool program_may_start(const struct program *p, const char *last, const char *path);
/* End it when its time has passed. */
void program_tick(struct program *p, uint64_t now_ms);
/* And what it has started, as far as that is still in its process group. */
void program_kill(struct program *p);
/* It lives on. */
void program_forget(struct program *p);

/* promote.c: the program on-promote. */
void promote_run(struct set *s);
void promote_tick(struct set *s, uint64_t now_ms);

/* fence_agent.c: the program fence-agent. */
struct fence_words {
	char what[96], why[192], next[320];
	int64_t deadline_ms, retry_ms; /* from now; -1: none */
};
/* The configuration was read: perhaps it names another program, or none that there is. */
void fence_agent_on_conf(struct set *s);
/* The alive key of that epoch stands still: may another member be promoted? */
bool fence_agent_permits(const struct set *s, struct mirror_epoch epoch);
/* The alive key was read: s->seen. */
void fence_agent_on_alive(struct set *s);
void fence_agent_tick(struct set *s, uint64_t now_ms);
void fence_agent_end(struct set *s);
/* A promotion here waits for it alone: in words. */
bool fence_agent_obstacle(const struct set *s, struct fence_words *words);

/* alive_words.c: the primary is silent, or has ended, and nobody has followed it: in words, and
 * what the set's health is for that. */
bool alive_obstacle(const struct set *s, struct fence_words *words, enum mirror_health *health);

/* request_status.c */
struct json_t *request_status(const struct set *s);

/* request_order.c: what changes something. Each answers, now or later. */
void request_order(struct client *client, struct set *s, const char *member,
		   const struct packet_order_request *order);
void request_fence(struct client *client, struct set *s, const char *member, int64_t timeout_ms);
void request_resolve(struct client *client, struct set *s, const char *member);
void request_change(struct client *client, struct set *s, const struct mirror_config *config);
void request_on_ordered(struct set *s, const struct packet *p);
/* request_settings.c: settings of a set, by the words of the register. */
void request_settings(struct client *client, struct set *s, struct json_t *settings);
/* Answered later. */
void request_wait(struct client *client, struct set *s, enum client_wait wait);
/* The member's slot; MIRROR_NOBODY after a refusal. */
uint8_t request_slot(struct client *client, const struct set *s, const char *member);
/* Refuse what this host cannot do for another one. */
void request_elsewhere(struct client *client, const struct set *s, uint8_t slot, const char *what);
enum request_code request_code_of(enum packet_status status);

/* request_promote.c: an operator's promotion. */
void request_promote(struct client *client, struct set *s, const char *member, bool force);
/* A process waits for the set: perhaps the one that on-promote was to start. */
void request_on_waiting(struct set *s, struct client *waiting);
/* Something has changed: refuse what cannot be any more. */
void request_look_promotions(struct set *s);
/* Somebody has become primary on this host. */
void request_on_promoted(struct set *s);
/* The time of one has passed: say why. */
void request_give_promotion_up(struct client *client);
/* on-promote has failed, as it says: nobody will wait for the set. */
void request_on_promote_failed(struct set *s, const char *text);

/* scrub.c: the periodic comparison of the copies. */
#define SCRUB_ID UINT32_MAX /* of its order; tools have small numbers */
void scrub_tick(struct set *s, uint64_t now_ms);
void scrub_on_ordered(struct set *s, const struct packet_ordered *ordered);

/* event.c: what the tool's `events` gets. */
void event_emit(struct set *s, const char *member, const char *what, const char *from,
		const char *to, const char *text);
/* An `events` request: what there is now, then what changes. */
void event_begin(struct client *client, const struct set *only, bool now_only);
/* Compare with what was reported last. */
void event_look(struct set *s);

#endif
