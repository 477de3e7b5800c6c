#include "tests/lib/http/fakeapi.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/http/rawclient.h"

enum { CONNECTIONS_MAX = 256, HEAD_MAX = 65536 };

struct connection {
    struct fakeapi *owner;
    pthread_t thread;
    int fd;
};

struct fakeapi {
    const struct fakeapi_answer *script;
    size_t n_script;
    int fd;
    pthread_t thread;
    char *server;
    struct kube_config config;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended;
    bool stopping;
    bool used[FAKEAPI_SCRIPT_MAX];
    size_t n_requests;
    struct str requests;
    struct connection connections[CONNECTIONS_MAX];
    size_t n;
};

static void die(const char *what)
{
    perror(what);
    abort();
}

/* A request's head up to its empty line; false when the peer has closed. */
static bool read_head(int fd, struct str *head)
{
    str_reset(head);
    while (!head->size || !strstr(head->data, "\r\n\r\n")) {
        char c;
        if (recv(fd, &c, 1, 0) <= 0)
            return false;
        str_add_c(head, c);
    }
    return true;
}

/* The target, with the varied number left out. */
static void note_request(struct fakeapi *f, const char *head,
                         const struct fakeapi_answer *a)
{
    const char *from = strchr(head, ' ') + 1;
    size_t size = strcspn(from, " ");
    cleanup_free char *target = xstrndup(from, size);
    char *timeout = strstr(target, "timeoutSeconds=");
    if (timeout) {
        char *number = timeout + strlen("timeoutSeconds=");
        unsigned long s = strtoul(number, &timeout, 10);
        if (s < 300 || s > 600)
            str_addf(&f->requests, "not expected: timeout of %lu s\n", s);
        memmove(number, timeout, strlen(timeout) + 1);
    }
    str_addf(&f->requests, "%s\n", target);
    if (a && a->expect && !strstr(head, a->expect))
        str_addf(&f->requests, "not expected: no \"%s\" in\n%s", a->expect,
                 head);
}

static const struct fakeapi_answer *find_answer(struct fakeapi *f,
                                                const char *target)
{
    for (size_t i = 0; i < f->n_script; i++) {
        const char *path = f->script[i].path;
        if (f->used[i] || (path && strncmp(target, path, strlen(path)) != 0))
            continue;
        f->used[i] = true;
        return &f->script[i];
    }
    return NULL;
}

static const struct fakeapi_answer *next_answer(struct fakeapi *f,
                                                const char *head)
{
    pthread_mutex_lock(&f->lock);
    const struct fakeapi_answer *a = find_answer(f, strchr(head, ' ') + 1);
    note_request(f, head, a);
    f->n_requests++;
    pthread_mutex_unlock(&f->lock);
    return a;
}

static void hold(struct fakeapi *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->stopping)
        pthread_cond_wait(&f->ended, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static void trickle(int fd, const struct str *text)
{
    const struct timespec pause = {.tv_nsec = 200000};
    for (size_t i = 0; i < text->size; i++) {
        (void)raw_send_n(fd, text->data + i, 1);
        (void)nanosleep(&pause, NULL);
    }
}

/* False when the connection is to end. */
static bool answer(struct fakeapi *f, int fd, const struct fakeapi_answer *a)
{
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    const char *body = a->body ? a->body : "";
    if (a->end == FAKEAPI_REFUSE || a->end == FAKEAPI_MUTE) {
        if (a->end == FAKEAPI_MUTE)
            hold(f);
        return false;
    }
    str_addf(&text,
             "HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\n"
             "Transfer-Encoding: chunked\r\n%s\r\n",
             a->status ? a->status : 200, a->head ? a->head : "");
    if (*body)
        str_addf(&text, "%zx\r\n%s\r\n", strlen(body), body);
    if (a->end == FAKEAPI_WHOLE || a->end == FAKEAPI_TRICKLE)
        str_add(&text, "0\r\n\r\n");
    if (a->end == FAKEAPI_TRICKLE)
        trickle(fd, &text);
    else
        (void)raw_send_n(fd, text.data, text.size);
    if (a->end == FAKEAPI_HOLD)
        hold(f);
    return a->end == FAKEAPI_WHOLE || a->end == FAKEAPI_TRICKLE;
}

static void *connection_thread(void *ctx)
{
    struct connection *c = ctx;
    cleanup_str struct str head = STR_INIT(HEAD_MAX);
    while (read_head(c->fd, &head)) {
        const struct fakeapi_answer *a = next_answer(c->owner, head.data);
        if (!a) {
            hold(c->owner);
            break;
        }
        if (!answer(c->owner, c->fd, a))
            break;
    }
    (void)shutdown(c->fd, SHUT_RDWR);
    return NULL;
}

static void *accept_thread(void *ctx)
{
    struct fakeapi *f = ctx;
    for (;;) {
        int fd = accept(f->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        pthread_mutex_lock(&f->lock);
        if (f->n == CONNECTIONS_MAX)
            die("fakeapi: too many connections");
        struct connection *c = &f->connections[f->n++];
        *c = (struct connection){.owner = f, .fd = fd};
        if (pthread_create(&c->thread, NULL, connection_thread, c))
            die("fakeapi: pthread_create");
        pthread_mutex_unlock(&f->lock);
    }
}

struct fakeapi *fakeapi_start(const struct fakeapi_answer *script, size_t n)
{
    if (n > FAKEAPI_SCRIPT_MAX)
        die("fakeapi: too long a script");
    struct fakeapi *f = xcalloc(1, sizeof *f);
    uint16_t port = 0;
    f->script = script;
    f->n_script = n;
    f->requests = STR_INIT(STR_MAX_DEFAULT);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->ended, NULL);
    f->fd = raw_listen(&port);
    f->server = xasprintf("http://127.0.0.1:%u", port);
    f->config.server = f->server;
    if (pthread_create(&f->thread, NULL, accept_thread, f))
        die("fakeapi: pthread_create");
    return f;
}

void fakeapi_stop(struct fakeapi *f)
{
    (void)shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_cond_broadcast(&f->ended);
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < f->n; i++) {
        (void)shutdown(f->connections[i].fd, SHUT_RDWR);
        pthread_join(f->connections[i].thread, NULL);
        (void)close(f->connections[i].fd);
    }
    (void)close(f->fd);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->ended);
    str_fini(&f->requests);
    free(f->server);
    free(f);
}

struct kube_config *fakeapi_config(struct fakeapi *f)
{
    return &f->config;
}

size_t fakeapi_n_requests(struct fakeapi *f)
{
    pthread_mutex_lock(&f->lock);
    size_t n = f->n_requests;
    pthread_mutex_unlock(&f->lock);
    return n;
}

char *fakeapi_requests(struct fakeapi *f)
{
    pthread_mutex_lock(&f->lock);
    char *text = xstrdup(str_text(&f->requests));
    pthread_mutex_unlock(&f->lock);
    return text;
}
