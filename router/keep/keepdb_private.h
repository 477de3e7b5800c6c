/* keepdb_private - what keepdb.c, keepdb_open.c, keepdb_secret.c share. */
#ifndef BIGA_ROUTER_KEEP_KEEPDB_PRIVATE_H
#define BIGA_ROUTER_KEEP_KEEPDB_PRIVATE_H

#include "lib/db/dbmark.h"
#include "lib/db/sqldb.h"
#include "router/keep/keepdb.h"

enum keepdb_sql {
    KEEPDB_BEGIN,
    KEEPDB_COMMIT,
    KEEPDB_ROLLBACK,
    KEEPDB_PUT,
    KEEPDB_DELETE,
    KEEPDB_EACH,
    KEEPDB_PUT_COMMIT,
    KEEPDB_EACH_COMMIT,
    KEEPDB_COUNT
};
extern const char *const keepdb_sql[KEEPDB_COUNT];

struct keepdb {
    struct sqldb d;
    sqlite3_stmt *sql[KEEPDB_COUNT];
    int lock_fd;         /* -1 in memory */
    struct dbmark *mark; /* of the commits; NULL in memory */
    uint64_t commits;    /* that are durable */
    struct kept_secret secret;
    bool is_new;
};
/* A row as it was saved from a damaged file. */
int keepdb_put_row(struct keepdb *db, const char *key, const char *text,
                   struct error *err);
/* A commit of nothing, that counts. */
int keepdb_touch(struct keepdb *db, struct error *err);
/* The one in `dir`, or a new one, durable; NULL: in memory. */
int keepdb_load_secret(const char *dir, struct kept_secret *ret_secret,
                       bool *ret_is_new, struct error *err);

#endif
