/* What the files of the intents share: intents.c has their texts, intents_db.c
 * their rows, intents_open.c opens the database. */
#ifndef BIGA_ADVERTISER_ACT_POD_INTENTS_PRIVATE_H
#define BIGA_ADVERTISER_ACT_POD_INTENTS_PRIVATE_H

#include <pthread.h>

#include "advertiser/act/pod/intents.h"
#include "lib/base/str.h"
#include "lib/db/dbmark.h"
#include "lib/db/sqldb.h"

void intent_env_encode(const struct intent *i, struct str *out);
int intent_env_decode(struct intent *i, const char *text, size_t size,
                      struct error *err);
void intent_progress_encode(const struct intent *i, struct str *out);
int intent_progress_decode(struct intent *i, const char *text, size_t size,
                           struct error *err);

/* --- the database -------------------------------------------------------- */

enum sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_PUT_POD,
    SQL_PUT_PROGRESS,
    SQL_SAVE_PROGRESS,
    SQL_DELETE_POD,
    SQL_DELETE_PROGRESS,
    SQL_EACH,
    SQL_EACH_PROGRESS,
    SQL_DRAIN,
    SQL_UNDRAIN,
    SQL_EACH_DRAINED,
    SQL_PUT_LOG,
    SQL_TRIM_LOGS,
    SQL_DELETE_LOGS,
    SQL_EACH_LOG,
    SQL_FIND_LOG,
    SQL_PUT_LEFTOVER_DIR,
    SQL_TRIM_LEFTOVER_DIRS,
    SQL_DELETE_LEFTOVER_DIR,
    SQL_EACH_LEFTOVER_DIR,
    SQL_PUT_COMMIT,
    SQL_EACH_COMMIT,
    SQL_COUNT
};

extern const char *const intents_sql[SQL_COUNT];

struct intents {
    pthread_mutex_t lock; /* one statement, or transaction, at a time */
    struct sqldb d;
    sqlite3_stmt *sql[SQL_COUNT];
    int lock_fd;         /* -1 in memory */
    struct dbmark *mark; /* of the commits; NULL in memory */
    uint64_t commits;    /* that are durable */
};

/* A commit of nothing, that counts. */
int intents_touch(struct intents *s, struct error *err);

#endif
