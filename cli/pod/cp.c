/* biga cp: files from and to a pod, by the tar that is in it and the one that is
 * here. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/say.h"
#include "cli/pod/far.h"
#include "cli/pod/pod_verbs.h"
#include "lib/base/mem.h"
#include "lib/io/tree.h"

/* "[NAMESPACE/]POD:PATH", or a file here. */
struct end {
    char *pod; /* NULL: here */
    const char *path;
};

static int parse_end(struct cli *c, char *text, struct end *ret_end)
{
    char *colon = strchr(text, ':');
    *ret_end = (struct end){.path = text};
    /* a file whose name has a colon is given with a slash before it */
    if (*text == '/' || *text == '.' || !colon)
        return 0;
    cleanup_free char *pod = xstrndup(text, (size_t)(colon - text));
    char *name = pod;
    int rc = cli_qualify(c, "cp", &name);
    if (rc)
        return rc;
    if (!colon[1])
        return cli_usage("cp: \"%s\": which file? POD:PATH", text);
    *ret_end = (struct end){.pod = xstrdup(name), .path = colon + 1};
    return 0;
}

/* --- tar, here -------------------------------------------------------------- */

/* Start it with one of its ends ours: its process id, or -1 after saying why. */
static pid_t start_tar(const char *const *argv, int its, int *ret_ours)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)cli_fail("pipe: %s", strerror(errno));
        return -1;
    }
    int theirs = its == STDIN_FILENO ? ends[0] : ends[1];
    int ours = its == STDIN_FILENO ? ends[1] : ends[0];
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGPIPE, SIG_DFL);
        if (dup2(theirs, its) >= 0)
            (void)execvp("tar", (char *const *)argv);
        _exit(127);
    }
    (void)close(theirs); /* the child's own is open */
    if (pid < 0) {
        (void)cli_fail("tar: %s", strerror(errno));
        (void)close(ours);
        return -1;
    }
    *ret_ours = ours;
    return pid;
}

/* An exit code. */
static int wait_tar(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail("tar: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return cli_fail("there is no tar on this machine");
    return cli_fail("tar on this machine failed");
}

/* --- from a pod --------------------------------------------------------------- */

/* Into an empty folder beside where it is to be, so that nothing in the
 * archive leads elsewhere; then to its place. */
static int unpack(struct cli *c, const struct end *from, const char *folder,
                  const char *directory, const char *name)
{
    /* for root tar would keep what sets user ids, and make it root's */
    const char *const here[] = {"tar",
                                "xf",
                                "-",
                                "-C",
                                folder,
                                "--no-same-owner",
                                "--no-same-permissions",
                                NULL};
    const char *const there[] = {"tar",     "cf", "-",  "-C",
                                 directory, "--", name, NULL};
    struct far_command command = {.argv = there, .in = -1};
    pid_t pid = start_tar(here, STDIN_FILENO, &command.out);
    if (pid < 0)
        return CLI_FAILED;
    int rc = far_command_run(c, from->pod, &command);
    (void)close(command.out); /* a pipe: nothing is kept back */
    int local = wait_tar(pid);
    return rc ? rc : local;
}

/* DIR/NAME of a path there; both the caller's. */
static void split(const char *path, char **ret_directory, char **ret_name)
{
    cleanup_free char *a = xstrdup(path), *b = xstrdup(path);
    *ret_directory = xstrdup(dirname(a));
    *ret_name = xstrdup(basename(b));
}

static int copy_from(struct cli *c, const struct end *from, const char *to)
{
    cleanup_free char *directory = NULL, *name = NULL, *above = NULL,
                      *own = NULL;
    struct stat st;
    split(from->path, &directory, &name);
    bool into = stat(to, &st) == 0 && S_ISDIR(st.st_mode);
    if (into) {
        above = xstrdup(to);
        own = xstrdup(name);
    } else {
        split(to, &above, &own);
    }
    cleanup_free char *folder = xasprintf("%s/.biga-cp-XXXXXX", above);
    cleanup_free char *target = xasprintf("%s/%s", above, own);
    if (!mkdtemp(folder))
        return cli_fail("%s: %s", folder, strerror(errno));
    int rc = unpack(c, from, folder, directory, name);
    cleanup_free char *got = xasprintf("%s/%s", folder, name);
    if (rc == 0 && rename(got, target) < 0)
        rc = cli_fail("%s: %s", target, strerror(errno));
    struct error err = {0};
    if (tree_remove(AT_FDCWD, folder, folder, &err) < 0 && rc == 0)
        rc = cli_fail("%s", err.text);
    return rc;
}

/* --- to a pod ------------------------------------------------------------------ */

static int is_directory(struct cli *c, const struct end *to, bool *ret_is)
{
    const char *const argv[] = {"test", "-d", to->path, NULL};
    const struct far_command command = {
        .argv = argv, .in = -1, .out = STDOUT_FILENO};
    int rc = far_command_run(c, to->pod, &command);
    *ret_is = rc == 0;
    /* 1: it is none, where somebody could be asked */
    return rc > 1 || c->status != 101 ? rc : 0;
}

/* "s|^name|own|" for tar, of names as they are, and of those that hard links
 * name. */
static char *rename_rule(const char *name, const char *own)
{
    cleanup_str struct str rule = STR_INIT(STR_MAX_DEFAULT);
    str_add(&rule, "--transform=flags=rh;s|^");
    for (const char *p = name; *p; p++)
        str_addf(&rule, strchr("\\.*[]^$|", *p) ? "\\%c" : "%c", *p);
    str_add_c(&rule, '|');
    for (const char *p = own; *p; p++)
        str_addf(&rule, strchr("\\&|", *p) ? "\\%c" : "%c", *p);
    str_add_c(&rule, '|');
    return xstrdup(str_text(&rule));
}

static int copy_to(struct cli *c, const char *from, const struct end *to)
{
    cleanup_free char *directory = NULL, *name = NULL, *above = NULL,
                      *own = NULL;
    bool into = false;
    if (access(from, R_OK) < 0)
        return cli_fail("%s: %s", from, strerror(errno));
    int rc = is_directory(c, to, &into);
    if (rc)
        return rc;
    split(from, &directory, &name);
    if (into) {
        above = xstrdup(to->path);
        own = xstrdup(name);
    } else {
        split(to->path, &above, &own);
    }
    cleanup_free char *rule = rename_rule(name, own);
    const char *const here[] = {"tar",     "cf", "-",  rule, "-C",
                                directory, "--", name, NULL};
    const char *const there[] = {"tar", "xf", "-", "-C", above, NULL};
    struct far_command command = {
        .argv = there, .input = true, .out = STDOUT_FILENO};
    pid_t pid = start_tar(here, STDOUT_FILENO, &command.in);
    if (pid < 0)
        return CLI_FAILED;
    rc = far_command_run(c, to->pod, &command);
    (void)close(command.in); /* tar ends, if it has not */
    int local = wait_tar(pid);
    return rc ? rc : local;
}

int verb_cp(struct cli *c, int argc, char **argv)
{
    struct end from = {0}, to = {0};
    (void)argc;
    /* a tar that fails here is waited for, and what it made is removed */
    (void)signal(SIGPIPE, SIG_IGN);
    int rc = parse_end(c, argv[0], &from);
    if (rc == 0)
        rc = parse_end(c, argv[1], &to);
    if (rc == 0 && !from.pod == !to.pod)
        rc = cli_usage("cp: one of \"%s\" and \"%s\" must be in a pod, "
                       "POD:PATH, and the other a file here",
                       argv[0], argv[1]);
    if (rc == 0)
        rc = from.pod ? copy_from(c, &from, to.path)
                      : copy_to(c, from.path, &to);
    free(from.pod);
    free(to.pod);
    return rc;
}
