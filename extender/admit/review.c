#include "extender/admit/review.h"

#include <gnutls/crypto.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"

#define TOKEN_REVIEWS "/apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS_REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"

enum {
    DIGEST = 32,
    VERDICTS = 4096, /* remembered at most */
    USERS = 512,
    REQUEST_MAX = 256 << 10,
    SUBJECT_MAX = 64 << 10,
    LOG_EVERY_MS = 60000, /* the same failure */
};

struct verdict {
    uint8_t digest[DIGEST]; /* of token, verb and path */
    int64_t until_ms;
    enum review_verdict verdict;
    char user[REVIEW_USER_MAX + 1];
};

struct user {
    uint8_t digest[DIGEST]; /* of the token */
    int64_t until_ms;
    char *subject; /* JSON members of a SubjectAccessReview's spec; NULL: the
                    * token is nobody's */
    char name[REVIEW_USER_MAX + 1];
};

struct review {
    struct kube_client *client; /* of the thread */
    struct http_answer answer;
    struct user users[USERS];
    int64_t logged_ms;
    char logged[ERROR_TEXT_MAX]; /* the failure that was logged last */
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct verdict verdicts[VERDICTS];
    struct review_call *first, **last;
    size_t waiting;
    bool quiet, stopping;
};

const char *review_verdict_name(enum review_verdict verdict)
{
    static const char *const names[REVIEW_VERDICTS] = {
        "undecided", "admitted", "unknown", "forbidden", "failed"};
    return (unsigned)verdict < REVIEW_VERDICTS ? names[verdict] : "?";
}

/* --- what is remembered ------------------------------------------------- */

/* Each text with its NUL, so that none runs into the next. */
static void digest_of(const char *const *texts, size_t n,
                      uint8_t ret_digest[DIGEST])
{
    gnutls_hash_hd_t hash;
    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        abort(); /* it is always there */
    for (size_t i = 0; i < n; i++)
        if (gnutls_hash(hash, texts[i], strlen(texts[i]) + 1) < 0)
            abort(); /* one verdict would be taken for another's */
    gnutls_hash_deinit(hash, ret_digest);
}

static size_t place_of(const uint8_t digest[DIGEST], size_t places)
{
    uint32_t word;
    memcpy(&word, digest, sizeof word);
    return word % places;
}

static void call_digest(const struct review_call *call,
                        uint8_t ret_digest[DIGEST])
{
    /* no resource begins as a path does */
    if (call->resource)
        digest_of((const char *const[]){call->token, call->verb, call->resource,
                                        call->namespace, call->name},
                  5, ret_digest);
    else
        digest_of((const char *const[]){call->token, call->verb, call->path}, 3,
                  ret_digest);
}

enum review_verdict review_look(struct review *r, struct review_call *call,
                                int64_t now_ms)
{
    uint8_t digest[DIGEST];
    call_digest(call, digest);
    const struct verdict *v = &r->verdicts[place_of(digest, VERDICTS)];
    enum review_verdict verdict = REVIEW_UNDECIDED;
    hold_lock(&r->lock);
    if (now_ms < v->until_ms && memcmp(v->digest, digest, DIGEST) == 0) {
        verdict = v->verdict;
        memcpy(call->user, v->user, sizeof call->user);
    }
    return verdict;
}

static void verdict_keep(struct review *r, const struct review_call *call,
                         int64_t now_ms)
{
    struct verdict v = {.verdict = call->verdict};
    v.until_ms = now_ms + (v.verdict == REVIEW_ADMITTED ? REVIEW_ADMITTED_MS
                                                        : REVIEW_REFUSED_MS);
    memcpy(v.user, call->user, sizeof v.user);
    call_digest(call, v.digest);
    hold_lock(&r->lock);
    r->verdicts[place_of(v.digest, VERDICTS)] = v;
}

/* --- asking ------------------------------------------------------------- */

static int post(struct review *r, const char *path, struct str *body,
                cJSON **ret_json, struct error *err)
{
    const struct kube_request request = {
        .method = "POST",
        .path = path,
        .body = str_text(body),
        .body_size = body->size,
    };
    if (body->overflow)
        return error_set(err, EMSGSIZE, "the review has more than %d bytes",
                         REQUEST_MAX);
    int rc = kube_call(r->client, &request, &r->answer, err);
    return rc < 0 ? rc
                  : json_parse(str_text(&r->answer.body), r->answer.body.size,
                               ret_json, err);
}

/* A member as it is, under the same name. */
static void add_member(struct str *out, const cJSON *from, const char *name)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(from, name);
    cleanup_free char *text = x && !cJSON_IsNull(x) ? cJSON_PrintUnformatted(x)
                                                    : NULL;
    if (text)
        str_addf(out, ",\"%s\":%s", name, text);
}

/* Who the token's user is, as members of a spec; NULL for nobody. */
static int read_user(const cJSON *json, char **ret_subject,
                     char ret_name[REVIEW_USER_MAX + 1], struct error *err)
{
    struct reader r, status, user;
    cleanup_str struct str subject = STR_INIT(SUBJECT_MAX);
    reader_init(&r, json, "", err);
    const cJSON *object = reader_object(&r, "status");
    if (r.failed)
        return -EINVAL;
    reader_init(&status, object, "status", err);
    if (!reader_opt_bool(&status, "authenticated", false)) {
        *ret_subject = NULL;
        return reader_finish_lenient(&status);
    }
    object = reader_object(&status, "user");
    if (status.failed)
        return -EINVAL;
    reader_init(&user, object, "status.user", err);
    const char *name = reader_string(&user, "username", SUBJECT_MAX);
    if (user.failed)
        return -EINVAL;
    str_add(&subject, "\"user\":");
    str_add_json(&subject, name);
    add_member(&subject, object, "uid");
    add_member(&subject, object, "groups");
    add_member(&subject, object, "extra");
    if (subject.overflow)
        return error_set(err, EMSGSIZE, "status.user: has more than %d bytes",
                         SUBJECT_MAX);
    *ret_subject = str_steal(&subject);
    (void)snprintf(ret_name, REVIEW_USER_MAX + 1, "%s", name);
    return 0;
}

/* The user of a token: remembered, or asked for.  `*ret_user` is borrowed
 * until the next call. */
static int find_user(struct review *r, const char *token, int64_t now_ms,
                     const struct user **ret_user, struct error *err)
{
    cleanup_str struct str body = STR_INIT(REQUEST_MAX);
    cleanup_with(json) cJSON *json = NULL;
    uint8_t digest[DIGEST];
    char *subject, name[REVIEW_USER_MAX + 1] = "";
    digest_of(&token, 1, digest);
    struct user *u = &r->users[place_of(digest, USERS)];
    *ret_user = u;
    if (now_ms < u->until_ms && memcmp(u->digest, digest, DIGEST) == 0)
        return 0;
    str_add(&body, "{\"apiVersion\":\"authentication.k8s.io/v1\","
                   "\"kind\":\"TokenReview\",\"spec\":{\"token\":");
    str_add_json(&body, token);
    str_add(&body, "}}");
    int rc = post(r, TOKEN_REVIEWS, &body, &json, err);
    if (body.data)
        explicit_bzero(body.data, body.cap);
    if (r->answer.body.data) /* it has the token, too */
        explicit_bzero(r->answer.body.data, r->answer.body.cap);
    if (rc == 0)
        rc = read_user(json, &subject, name, err);
    if (rc < 0)
        return rc;
    free(u->subject);
    u->subject = subject;
    memcpy(u->name, name, sizeof u->name);
    u->until_ms = now_ms + (subject ? REVIEW_ADMITTED_MS : REVIEW_REFUSED_MS);
    memcpy(u->digest, digest, DIGEST);
    return 0;
}

static void add_attributes(const struct review_call *call, struct str *out)
{
    if (!call->resource) {
        jwrite_object(out, "nonResourceAttributes");
        jwrite_text(out, "path", call->path);
    } else {
        const char *slash = strchr(call->resource, '/');
        cleanup_free char *resource = xstrndup(call->resource,
                                               strcspn(call->resource, "/"));
        jwrite_object(out, "resourceAttributes");
        jwrite_text(out, "version", "v1");
        jwrite_text(out, "resource", resource);
        jwrite_known_text(out, "subresource", slash ? slash + 1 : "");
        jwrite_text(out, "namespace", call->namespace);
        jwrite_text(out, "name", call->name);
    }
    jwrite_text(out, "verb", call->verb);
    jwrite_end_object(out);
}

static int ask_access(struct review *r, const struct review_call *call,
                      const char *subject, bool *ret_allowed, struct error *err)
{
    cleanup_str struct str body = STR_INIT(REQUEST_MAX);
    cleanup_with(json) cJSON *json = NULL;
    struct reader top, status;
    str_addf(&body,
             "{\"apiVersion\":\"authorization.k8s.io/v1\","
             "\"kind\":\"SubjectAccessReview\",\"spec\":{%s",
             subject);
    add_attributes(call, &body);
    str_add(&body, "}}");
    int rc = post(r, ACCESS_REVIEWS, &body, &json, err);
    if (rc < 0)
        return rc;
    reader_init(&top, json, "", err);
    const cJSON *object = reader_object(&top, "status");
    if (top.failed)
        return -EINVAL;
    reader_init(&status, object, "status", err);
    bool allowed = reader_bool(&status, "allowed");
    bool denied = reader_opt_bool(&status, "denied", false);
    rc = reader_finish_lenient(&status);
    if (rc == 0)
        *ret_allowed = allowed && !denied;
    return rc;
}

static void call_fail(struct review_call *call, const char *why)
{
    call->verdict = REVIEW_FAILED;
    (void)error_set(&call->error, EAGAIN, "%s", why);
}

/* One that lasts is told once a minute. */
static void log_failure(struct review *r, const char *text, int64_t now_ms)
{
    if (strcmp(r->logged, text) == 0 && now_ms - r->logged_ms < LOG_EVERY_MS)
        return;
    r->logged_ms = now_ms;
    (void)snprintf(r->logged, sizeof r->logged, "%s", text);
    log_event(LOG_ERROR, "review-failed", "error", text, NULL);
}

static void decide(struct review *r, struct review_call *call, int64_t now_ms)
{
    const struct user *user;
    bool allowed = false;
    int rc = find_user(r, call->token, now_ms, &user, &call->error);
    if (rc == 0 && user->subject)
        rc = ask_access(r, call, user->subject, &allowed, &call->error);
    if (rc < 0)
        call->verdict = REVIEW_FAILED;
    else if (!user->subject)
        call->verdict = REVIEW_UNKNOWN;
    else
        call->verdict = allowed ? REVIEW_ADMITTED : REVIEW_FORBIDDEN;
    if (rc == 0)
        memcpy(call->user, user->name, sizeof call->user);
    if (rc == 0) {
        verdict_keep(r, call, now_ms);
        return;
    }
    log_failure(r, call->error.text, now_ms);
    /* who we are there is nothing for somebody without a token */
    call_fail(call, "the API server gave no verdict, the log says why");
}

/* --- the thread --------------------------------------------------------- */

/* The next call, or NULL at the end. */
static struct review_call *next_call(struct review *r, bool *ret_quiet)
{
    hold_lock(&r->lock);
    while (!r->first && !r->stopping)
        (void)pthread_cond_wait(&r->wake, &r->lock);
    struct review_call *call = r->first;
    if (call) {
        r->first = call->next;
        r->waiting--;
        if (!r->first)
            r->last = &r->first;
    }
    *ret_quiet = r->quiet;
    return call;
}

static void *review_run(void *arg)
{
    struct review *r = arg;
    struct review_call *call;
    bool quiet;
    thread_name("token review", NULL);
    while ((call = next_call(r, &quiet))) {
        int64_t now_ms = clock_ms();
        call->verdict = review_look(r, call, now_ms);
        if (call->verdict != REVIEW_UNDECIDED)
            ; /* another one asked the same meanwhile */
        else if (quiet)
            call_fail(call, "the server is stopping");
        else if (now_ms - call->since_ms > REVIEW_PATIENCE_MS)
            call_fail(call, "the API server answers too slowly");
        else
            decide(r, call, now_ms);
        call->done(call);
    }
    return NULL;
}

bool review_reserve(struct review *r)
{
    hold_lock(&r->lock);
    bool room = r->waiting < REVIEW_WAITING_MAX;
    r->waiting += room;
    return room;
}

void review_post(struct review *r, struct review_call *call)
{
    call->next = NULL;
    call->since_ms = clock_ms();
    hold_lock(&r->lock);
    *r->last = call;
    r->last = &call->next;
    pthread_cond_signal(&r->wake);
}

static void review_free(struct review *r)
{
    kube_client_destroy(r->client);
    str_fini(&r->answer.body);
    for (size_t i = 0; i < USERS; i++)
        free(r->users[i].subject);
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

int review_start(const struct kube_config *config, struct review **ret_review,
                 struct error *err)
{
    struct review *r = xcalloc(1, sizeof *r);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->wake, NULL);
    r->last = &r->first;
    str_init(&r->answer.body, KUBE_ANSWER_MAX);
    int rc = kube_client_create(config, REVIEW_TIMEOUT_MS, &r->client, err);
    if (rc == 0) {
        int e = pthread_create(&r->thread, NULL, review_run, r);
        if (e)
            rc = error_errno(err, e, "cannot start a thread");
    }
    if (rc < 0) {
        review_free(r);
        return rc;
    }
    *ret_review = r;
    return 0;
}

void review_quiesce(struct review *r)
{
    hold_lock(&r->lock);
    r->quiet = true;
}

void review_stop(struct review *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    review_free(r);
}
