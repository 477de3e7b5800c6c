/* What a router of CRI calls needs of a card, by the headers of its room alone:
 * how it is reached, its health, and files and logs of a pod there. */
#include "advertiser/act/card/card.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/health.h"
#include "advertiser/act/card/pod_files.h"
#include "advertiser/act/card/pod_logs.h"
#include "lib/base/mem.h"
#include "tests/lib/card/cardserver.h"
#include "tests/lib/late_writer.h"

/* Were anything of the room to call up into the actuator, its files would be
 * linked in, and these names defined twice. */
int intents_open(void);
int intents_open(void)
{
    cr_assert_fail("a card opened the intents");
    return -1;
}
void machine_next(void);
void machine_next(void)
{
    cr_assert_fail("a card asked the machine");
}
void actuator_create(void);
void actuator_create(void)
{
    cr_assert_fail("a card made an actuator");
}

static struct {
    char dir[64], path[96];
    struct cardserver *server;
    struct connection c;
    struct pod_dirs dirs;
    struct error err;
} lab;

static void begin(void)
{
    const struct cardserver_times at_once = {0};
    (void)snprintf(lab.dir, sizeof lab.dir, "/tmp/biga-card-XXXXXX");
    cr_assert_not_null(mkdtemp(lab.dir));
    (void)snprintf(lab.path, sizeof lab.path, "%s/card.sock", lab.dir);
    const struct h2_config config = {.socket = lab.path};
    lab.server = cardserver_start(&config, &at_once);
    lab.dirs = (struct pod_dirs){.host = lab.dir, .card = "/var/lib/biga"};
    (void)snprintf(lab.c.place.name, sizeof lab.c.place.name, "card-0");
    (void)snprintf(lab.c.place.endpoint, sizeof lab.c.place.endpoint,
                   "unix://%s", lab.path);
    cr_assert_eq(connection_open(&lab.c, &lab.err), 0, "%s", lab.err.text);
}

static void end(void)
{
    connection_close(&lab.c);
    cardserver_stop(lab.server);
    (void)unlink(lab.path);
    (void)rmdir(lab.dir);
}

/* The helper's container counts as running, as the caller says so. */
static struct pod_access pod_there(const char *helper)
{
    return (struct pod_access){.place = &lab.c.place,
                               .dirs = &lab.dirs,
                               .uid = "u-1",
                               .cri = lab.c.cri,
                               .helper = helper};
}

Test(act_card, answers_make_it_ready_and_silence_loses_it, .timeout = 60)
{
    struct health h;
    struct cri_version version;
    begin();
    health_init(&h, 0, 0, 0);
    cr_assert_eq(cri_version(lab.c.cri, 5000, &version, &lab.err), 0, "%s",
                 lab.err.text);
    cr_expect(health_good(&h, 1));
    cr_expect_eq(h.now, ACT_READY);
    cardserver_stop(lab.server);
    lab.server = NULL;
    for (int64_t now = 1000; h.now != ACT_LOST && now < 20000; now += 1000) {
        cr_assert_lt(cri_version(lab.c.cri, 1000, &version, &lab.err), 0);
        (void)health_bad(&h, now, now);
    }
    cr_expect_eq(h.now, ACT_LOST);
    cr_expect_eq(health_shown(&h, true), ACT_LOST, "lost is lost, drained too");
    connection_close(&lab.c);
    (void)unlink(lab.path);
    (void)rmdir(lab.dir);
}

Test(act_card, logs_are_read_by_the_helper, .timeout = 60)
{
    struct str text = STR_INIT(1 << 20);
    const struct pod_log ask = {.container = "main", .attempt = 1, .max = 4096};
    uint64_t next = 0;
    begin();
    cardserver_exec(lab.server, 0, "hello\n", "bytes=6\nnext=44\n");
    const struct pod_access pod = pod_there("abc");
    cr_assert_eq(pod_logs_read(&pod, &ask, &text, &next, &lab.err), 0, "%s",
                 lab.err.text);
    cr_expect_str_eq(str_text(&text), "hello\n");
    cr_expect_eq(next, 44);
    const struct pod_access alone = pod_there("");
    cr_expect_eq(pod_logs_read(&alone, &ask, &text, &next, &lab.err), -EAGAIN);
    cr_expect_eq(pod_logs_tail(&alone, &ask, &text, &next, &lab.err), -ESRCH);
    str_fini(&text);
    end();
}

Test(act_card, files_are_removed_by_the_helper_or_it_says_why_not,
     .timeout = 60)
{
    bool refused;
    begin();
    const struct pod_access pod = pod_there("abc");
    cardserver_exec(lab.server, 0, "", "");
    cr_assert_eq(pod_files_remove(&pod, NULL, &refused, &lab.err), 0, "%s",
                 lab.err.text);
    cardserver_exec(lab.server, 1, "", "biga-card: busy");
    cr_expect_eq(pod_files_remove(&pod, NULL, &refused, &lab.err), -EIO);
    cr_expect(refused);
    cr_expect_not_null(strstr(lab.err.text, "biga-card: busy"));
    end();
}

/* The card file may give other ones by then, or none. */
Test(act_card, huge_pages_go_with_their_pod, .timeout = 60)
{
    struct podspec_volume volumes[] = {
        {.medium = PODSPEC_DISK},
        {.medium = PODSPEC_HUGEPAGES, .page = 2 << 20},
        {.medium = PODSPEC_HUGEPAGES, .page = 1 << 30},
    };
    const struct podspec spec = {.volumes = volumes,
                                 .n_volumes = ARRAY_LEN(volumes)};
    cleanup_str struct str asked = STR_INIT(4096);
    bool refused;
    begin();
    const struct pod_access pod = pod_there("abc");
    cardserver_exec(lab.server, 0, "", "");
    cr_assert_eq(pod_files_remove(&pod, &spec, &refused, &lab.err), 0, "%s",
                 lab.err.text);
    cardserver_asked(lab.server, &asked);
    cr_expect(strstr(str_text(&asked), " /card-dev/hugepages-2Mi/biga/u-1"),
              "%s", str_text(&asked));
    cr_expect(strstr(str_text(&asked), " /card-dev/hugepages-1Gi/biga/u-1"),
              "%s", str_text(&asked));
    end();
}

#define LINE "2026-01-02T03:04:05.000000000Z stdout F "

/* Its runtime says that a container has exited before it has written all. */
Test(act_card, on_the_host_what_comes_late_is_in_logs_of_what_has_exited,
     .timeout = 60)
{
    struct str text = STR_INIT(1 << 20);
    const struct pod_log ask = {
        .container = "main", .attempt = 1, .max = 4096, .ended = true};
    const struct podspec nothing = {0};
    struct late_writer late;
    uint64_t next;
    bool refused;
    (void)snprintf(lab.dir, sizeof lab.dir, "/tmp/biga-card-XXXXXX");
    cr_assert_not_null(mkdtemp(lab.dir));
    lab.dirs = (struct pod_dirs){.host = lab.dir, .card = "/nowhere"};
    (void)snprintf(lab.c.place.name, sizeof lab.c.place.name, ACT_HOST);
    const struct pod_access pod = pod_there("");
    cleanup_free char *dir = pod_dir_path(&lab.dirs, ACT_HOST, pod.uid);
    cleanup_free char *name = pod_dir_log_name("main", 1);
    cleanup_free char *path = xasprintf("%s/logs/%s", dir, name);
    cr_assert_eq(pod_files_make(&pod, &nothing, &lab.err), 0, "%s",
                 lab.err.text);
    late_writer_begin(&late, path, LINE "one\n");
    int e = pod_logs_tail(&pod, &ask, &text, &next, &lab.err);
    late_writer_end(&late);
    cr_assert_eq(e, 0, "%s", lab.err.text);
    cr_expect_str_eq(str_text(&text), "one\n");
    str_reset(&text);
    late_writer_begin(&late, path, LINE "two\n");
    e = pod_logs_read(&pod, &ask, &text, &next, &lab.err);
    late_writer_end(&late);
    cr_assert_eq(e, 0, "%s", lab.err.text);
    cr_expect_str_eq(str_text(&text), "one\ntwo\n");
    cr_expect_eq(next, 2 * sizeof LINE "one");
    cr_expect_eq(pod_files_remove(&pod, &nothing, &refused, &lab.err), 0);
    cleanup_free char *pods = xasprintf("%s/pods", lab.dir);
    (void)rmdir(pods);
    cr_expect_eq(rmdir(lab.dir), 0);
    str_fini(&text);
}

Test(act_card, on_the_host_files_and_logs_are_our_own)
{
    struct str text = STR_INIT(1 << 20);
    const struct pod_log ask = {.container = "main", .attempt = 1, .max = 4096};
    const struct podspec nothing = {0};
    uint64_t next = 7;
    bool refused;
    (void)snprintf(lab.dir, sizeof lab.dir, "/tmp/biga-card-XXXXXX");
    cr_assert_not_null(mkdtemp(lab.dir));
    lab.dirs = (struct pod_dirs){.host = lab.dir, .card = "/nowhere"};
    (void)snprintf(lab.c.place.name, sizeof lab.c.place.name, ACT_HOST);
    const struct pod_access pod = pod_there("");
    cr_assert_eq(pod_files_make(&pod, &nothing, &lab.err), 0, "%s",
                 lab.err.text);
    cr_assert_eq(pod_logs_read(&pod, &ask, &text, &next, &lab.err), 0, "%s",
                 lab.err.text);
    cr_expect_eq(next, 0, "a log that is not there yet is empty");
    cr_expect_eq(pod_files_remove(&pod, NULL, &refused, &lab.err), 0);
    cleanup_free char *pods = xasprintf("%s/pods", lab.dir);
    (void)rmdir(pods);
    cr_expect_eq(rmdir(lab.dir), 0, "all of it is gone");
    str_fini(&text);
}
