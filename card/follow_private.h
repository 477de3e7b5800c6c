/* What the files of follow share. */
#ifndef BIGA_CARD_FOLLOW_PRIVATE_H
#define BIGA_CARD_FOLLOW_PRIVATE_H

#include "card/follow.h"

enum { FOLLOW_LOOK_MS = 500 }; /* events may be missed, for no longer */

int64_t follow_now_ns(void); /* of CLOCK_MONOTONIC, one for all rounds */

/* --- follow_file.c: one log file ------------------------------------------ */

struct follow_file {
    const char *path;
    uint32_t tag;
    bool ends;      /* its container has ended */
    uint64_t next;  /* the offset that comes next */
    uint64_t freed; /* what is before it may go */
    uint64_t rate;  /* bytes per second, 0: no limit */
    int64_t due_ns; /* with a limit: when it may be read again */
    int fd;         /* -1: not open */
    int fault;      /* why it is not open, an errno */
    bool looked;    /* for holes at `next` */
    bool torn;      /* `next` is within a line whose begin is gone */
    bool told;      /* its end was given, or that it is not there */
};
/* Open it where it is, and let `notify` (-1: nobody) tell of changes. */
void follow_file_open(struct follow_file *f, int notify);
void follow_file_free(const struct follow_file *f);
void follow_file_close(struct follow_file *f);

struct follow_out {
    int fd;
    uint64_t given, room; /* bytes; of data, room is what is still wanted */
    char *piece;          /* FOLLOW_PIECE bytes */
};
/* Give a piece of it.  1: there may be more at once; 0; -errno: the output
 * cannot be written. */
int follow_file_give(struct follow_file *f, struct follow_out *out,
                     struct error *err);
/* Say how it is when all was given: 1 when the host waits for that. */
int follow_file_tell(struct follow_file *f, struct follow_out *out,
                     struct error *err);
/* Say at the end of a round why it cannot be read, if so. */
int follow_file_complain(struct follow_file *f, struct follow_out *out,
                         struct error *err);
int follow_out_end(struct follow_out *out, struct error *err);

/* --- follow_meet.c: how rounds take over ---------------------------------- */

enum follow_start { FOLLOW_FIRST, FOLLOW_NEXT, FOLLOW_HURRY };

struct follow_meet {
    enum follow_start start;
    char gen[17];
    uint64_t seq;
    int dir, slot; /* slot: our own file in dir, locked for as long as we are */
    int notify;    /* inotify, -1: none */
    bool hurried;  /* to return at once */
};
/* Makes the folder, and is known to the others from then on. */
int follow_meet_open(struct follow_meet *m, const char *dir, struct error *err);
/* Wait until it is our turn; `files` are where the one before has stopped.
 * -ESTALE. */
int follow_meet_wait(struct follow_meet *m, struct follow_file *files, size_t n,
                     struct error *err);
/* Sets m->hurried when somebody wants it. */
void follow_meet_look(struct follow_meet *m);
/* It is the next one's turn. */
int follow_meet_pass(const struct follow_meet *m,
                     const struct follow_file *files, size_t n,
                     struct error *err);
void follow_meet_close(struct follow_meet *m);

#endif
