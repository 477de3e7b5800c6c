/* cardserver - a card's runtime as a server of its own (h2server): keeps
 * sandboxes and containers, has every image (of arm64), and takes as long for each call
 * as it is told to.  It has no events, as containerd before 1.7, unless it is
 * told so. */
#ifndef BIGA_TESTS_LIB_CARD_CARDSERVER_H
#define BIGA_TESTS_LIB_CARD_CARDSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "tests/lib/http/h2server.h"

enum { CARDSERVER_OBJECTS = 256 }; /* sandboxes, and containers, at a time */

struct cardserver_times {
    unsigned run_us, create_us, start_us, stop_us, remove_us, exec_us;
    unsigned other_us; /* lists, status, images */
    bool follow_waits; /* `biga-card follow` takes all of its WAIT */
};
/* About those of containerd 1.6.20 with runc and native snapshots, as
 * tests/cards has it. */
extern const struct cardserver_times cardserver_usual;

struct cardserver;
/* Both are copied; certificates as in h2server.h. */
struct cardserver *cardserver_start(const struct h2_config *config,
                                    const struct cardserver_times *times);
void cardserver_stop(struct cardserver *s);
uint16_t cardserver_port(const struct cardserver *s);
/* What is there of a pod, sandboxes and containers that run; of all pods when
 * `uid` is NULL. */
unsigned cardserver_live(struct cardserver *s, const char *uid);
/* The variable of the newest container; "" when it has none. */
void cardserver_env(struct cardserver *s, const char *key, char *ret_value,
                    size_t size);
/* What the newest container of a pod is given beyond what all have, in lines:
 * devices as "PATH PERMISSIONS", "capability NAME", "hugepages SIZE BYTES", and
 * mounts of what is below /dev as "PATH from PATH". */
void cardserver_given(struct cardserver *s, const char *uid, struct str *out);
/* From then on. */
void cardserver_take(struct cardserver *s,
                     const struct cardserver_times *times);
/* How often a method was called, as soon as it is. */
unsigned cardserver_calls(struct cardserver *s, const char *method);
/* The next `times` calls of a method end with `code`; one below 0: they are
 * carried out, and end with -code. */
void cardserver_fail(struct cardserver *s, const char *method, int code,
                     unsigned times);
/* From now on it has events: GetContainerEvents is a stream of what ends and
 * goes; or of the same without end. */
enum cardserver_events {
    CARDSERVER_NO_EVENTS,
    CARDSERVER_EVENTS,
    CARDSERVER_MUTE,  /* streams of nothing */
    CARDSERVER_FLOOD, /* about its newest container */
};
void cardserver_events(struct cardserver *s, enum cardserver_events events);
/* The containers of a pod end by themselves; how many did. */
unsigned cardserver_exit(struct cardserver *s, const char *uid);
/* It lists that image, of 1 GB, until it is removed; whether it still does. */
void cardserver_image(struct cardserver *s, const char *id);
bool cardserver_has_image(struct cardserver *s, const char *id);
/* What has ended, of then and later, did so with that code, in its own 1970. */
void cardserver_exit_code(struct cardserver *s, int code);
/* Calls wait until it is thawed, as those of a process that is stopped. */
void cardserver_freeze(struct cardserver *s, bool frozen);
/* The same for calls of one method. */
void cardserver_hold(struct cardserver *s, const char *method, bool held);
/* Calls that wait so now and have a deadline, which has not passed; and the
 * earliest of those, INT64_MAX when there is none. */
unsigned cardserver_held(struct cardserver *s, int64_t *ret_due_ms);
/* What ExecSync answers from then on; Exec, Attach and PortForward have `out` for
 * their URL. */
void cardserver_exec(struct cardserver *s, int exit_code, const char *out,
                     const char *err);
/* The words of the last ExecSync, with ' ' between. */
void cardserver_asked(struct cardserver *s, struct str *out);
/* ExecSync of `biga-card WORD` ends with 1 from then on, whatever else is to
 * be answered; NULL: none does. */
void cardserver_exec_refuse(struct cardserver *s, const char *word);
/* ExecSync of `biga-card log`, and of `lines`, reads DIR/CONTAINER-ATTEMPT.log from then on
 * (copied), whatever folder it names; NULL: as cardserver_exec() says. */
void cardserver_logs(struct cardserver *s, const char *dir);
/* Its biga-card takes no more than so many bytes for MAX, as one of before. */
void cardserver_logs_max(struct cardserver *s, size_t max);
/* What each of its containers has used from then on, as ListContainerStats
 * tells it. */
struct cardserver_used {
    uint64_t cpu_ns, memory;
    int64_t at_ns;
};
void cardserver_use(struct cardserver *s, const struct cardserver_used *used);
/* Calls since the last time, and how long they took it all together. */
unsigned cardserver_taken(struct cardserver *s, int64_t *ret_ns);

#endif
