/* Sockets that are files: whose place is taken, and whose is not. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/unix_socket.h"
#include "tests/lib/tmpdir.h"

struct side {
    int fd;
    struct unix_file file;
};

static int listen_at(const char *path, bool take_over, struct side *ret_side,
                     struct error *err)
{
    *ret_side = (struct side){.fd = -1};
    return unix_listen(path, take_over, &ret_side->fd, &ret_side->file, err);
}

static void side_end(struct side *s)
{
    (void)close(s->fd);
    unix_file_fini(&s->file);
}

/* Does a connection that is made now come to this side? */
static bool comes_to(const char *path, const struct side *s)
{
    int asked; /* by somebody who wanted to listen: is it served? */
    while ((asked = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        (void)close(asked);
    cleanup_fd int fd = unix_connect(path);
    cr_assert_geq(fd, 0);
    cleanup_fd int peer = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0)
        return false;
    cr_assert(unix_peer_is_ours(unix_peer(peer)));
    return true;
}

Test(unix_socket, one_takes_the_others_place_at_once)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s", dir);
    cleanup_free char *beside = xasprintf("%s.new", path);
    struct error err = {0};
    struct side old, new;
    struct stat st;
    cr_assert_eq(listen_at(path, false, &old, &err), 0, "%s", err.text);
    cr_expect_eq(listen_at(path, false, &new, &err), -EADDRINUSE);
    cr_expect(strstr(err.text, path) != NULL, "%s", err.text);
    cr_expect(comes_to(path, &old));
    cr_assert_eq(listen_at(path, true, &new, &err), 0, "%s", err.text);
    cr_expect(!comes_to(path, &old));
    cr_expect_lt(access(beside, F_OK), 0, "nothing is left beside it");
    cr_assert_eq(lstat(path, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 0600);
    side_end(&old); /* removes nothing that is not its own */
    cr_expect_eq(access(path, F_OK), 0);
    side_end(&new);
    cr_expect_lt(access(path, F_OK), 0);
    tmpdir_remove(dir);
}

Test(unix_socket, leftovers_of_the_killed_are_removed)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s", dir);
    cleanup_free char *beside = xasprintf("%s.new", path);
    struct error err = {0};
    struct side killed, s;
    cr_assert_eq(listen_at(beside, false, &killed, &err), 0);
    (void)close(killed.fd); /* and its file stays */
    cr_expect_eq(unix_connect(beside), -ECONNREFUSED);
    cr_assert_eq(listen_at(path, true, &s, &err), 0, "%s", err.text);
    cr_expect(comes_to(path, &s));
    side_end(&s);
    free(killed.file.path);
    tmpdir_remove(dir);
}

Test(unix_socket, what_is_no_socket_stays)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s", dir);
    struct error err = {0};
    struct side s;
    (void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    cr_expect_eq(listen_at(path, true, &s, &err), -EEXIST);
    cr_expect_eq(listen_at(path, false, &s, &err), -EEXIST);
    cr_expect_eq(access(path, F_OK), 0);
    tmpdir_remove(dir);
}

Test(unix_socket, paths_are_judged)
{
    char longest[200];
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[107] = '\0';
    cr_expect(unix_path_is_good(longest));
    longest[107] = 'a';
    longest[108] = '\0';
    cr_expect(!unix_path_is_good(longest));
    cr_expect_eq(unix_connect(longest), -EINVAL);
    cr_expect(!unix_path_is_good("run/s"));
    cr_expect(!unix_path_is_good(""));
    cr_expect_eq(unix_connect("/nowhere/at/all"), -ENOENT);
    cr_expect_eq(unix_peer(-1), (uid_t)-1);
    cr_expect(unix_peer_is_ours(geteuid()));
    cr_expect(!unix_peer_is_ours((uid_t)-1));
}
