#include "tests/lib/card/fakedevlink.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/file.h"

static const char script[] =
    "PCI=" FAKEDEVLINK_PCI "\n"
    "D=$S/sys/bus/pci/devices/$PCI\n"
    "while [ -e $S/hang ]; do sleep 0.02; done\n"
    "fails() {\n"
    "    [ -e $S/fail ] || return 0\n"
    "    read -r verb text <$S/fail\n"
    "    [ \"$verb\" != \"$1\" ] || { echo \"$text\" >&2; exit 1; }\n"
    "}\n"
    "shift\n" /* -j */
    "[ \"$2\" = show ] || [ \"$1\" = dev ] || echo \"$*\" >>$S/calls\n"
    "case \"$1 $2\" in\n"
    "'port show')\n"
    "    fails show\n"
    "    printf '{\"port\":{\"pci/%s/65535\":{\"type\":\"eth\",\"flavour\":'"
    " $PCI\n"
    "    printf '\"physical\",\"port\":0}'\n"
    "    for f in $S/ports/*; do\n"
    "        [ -e $f ] || continue\n"
    "        read -r sfnum state <$f\n"
    "        printf ',\"pci/%s/%s\":{\"flavour\":\"pcisf\",' $PCI ${f##*/}\n"
    "        printf '\"controller\":0,\"pfnum\":0,\"sfnum\":%s,' $sfnum\n"
    "        printf '\"function\":{\"state\":\"%s\"}}' $state\n"
    "    done\n"
    "    echo '}}' ;;\n"
    "'port add')\n"
    "    fails add\n"
    "    [ \"$3 $4 $5 $6 $7 $8\" = \"pci/$PCI flavour pcisf pfnum 0 sfnum\" ]"
    " || exit 2\n"
    "    n=32768; while [ -e $S/ports/$n ]; do n=$((n + 1)); done\n"
    "    echo \"$9 inactive\" >$S/ports/$n ;;\n"
    "'port function')\n"
    "    fails set\n"
    "    n=${4##*/}\n"
    "    read -r sfnum state <$S/ports/$n || exit 2\n"
    "    [ \"$7 $8\" = 'state active' ] || exit 2\n"
    "    echo \"$sfnum active\" >$S/ports/$n\n"
    "    if ! [ -e $S/mute ]; then\n"
    "        mkdir -p $D/mlx5_core.sf.$n\n"
    "        echo $sfnum >$D/mlx5_core.sf.$n/sfnum\n"
    "    fi ;;\n"
    "'port del')\n"
    "    fails del\n"
    "    n=${3##*/}\n"
    "    rm $S/ports/$n || exit 2\n"
    "    rm -rf $D/mlx5_core.sf.$n ;;\n"
    "'dev info') fails info; cat $S/info ;;\n"
    "'dev eswitch') fails eswitch; cat $S/eswitch ;;\n"
    "*) exit 2 ;;\n"
    "esac\n";

static void die(const char *what)
{
    (void)fprintf(stderr, "fakedevlink: %s: %s\n", what, strerror(errno));
    abort();
}

static char *path_of(const struct fakedevlink *d, const char *name)
{
    return xasprintf("%s/%s", d->dir, name);
}

static void make_dir(const char *path)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        die(path);
}

void fakedevlink_put(const struct fakedevlink *d, const char *name,
                     const char *text)
{
    cleanup_free char *path = path_of(d, name);
    struct error err;
    if (!text && unlink(path) < 0 && errno != ENOENT)
        die(path);
    if (text && file_write(path, 0755, text, strlen(text), false, &err) < 0)
        die(path);
}

char *fakedevlink_get(const struct fakedevlink *d, const char *name)
{
    cleanup_free char *path = path_of(d, name);
    char *text = NULL;
    size_t size;
    return file_read(path, 1 << 20, &text, &size, NULL) == 0 ? text
                                                             : xstrdup("");
}

void fakedevlink_init(struct fakedevlink *d, const char *dir)
{
    static const char *const dirs[] = {
        "",
        "ports",
        "sys",
        "sys/bus",
        "sys/bus/pci",
        "sys/bus/pci/devices",
        ("sys/bus/pci/devices/" FAKEDEVLINK_PCI)};
    d->dir = xstrdup(dir);
    d->command = path_of(d, "devlink");
    d->sysfs = path_of(d, "sys");
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        cleanup_free char *path = path_of(d, dirs[i]);
        make_dir(path);
    }
    cleanup_free char *text = xasprintf("#!/bin/sh\nS=%s\n%s", dir, script);
    fakedevlink_put(d, "devlink", text);
}

void fakedevlink_fini(struct fakedevlink *d)
{
    free(d->dir);
    free(d->command);
    free(d->sysfs);
}

unsigned fakedevlink_ports(const struct fakedevlink *d)
{
    cleanup_free char *path = path_of(d, "ports");
    unsigned n = 0;
    DIR *dir = opendir(path);
    if (!dir)
        die(path);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}
