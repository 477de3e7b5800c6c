#include "lib/io/process_metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/metrics.h"

bool process_facts_read(const char *stat, double booted_s,
                        struct process_facts *ret_facts)
{
    double ticks = (double)sysconf(_SC_CLK_TCK);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t user, system, started;
    /* the name before it may have anything in it */
    const char *rest = strrchr(stat, ')');
    struct process_facts f = {0};
    if (!rest || sscanf(rest,
                        ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
                        " %" SCNu64 " %*d %*d %*d %*d %" SCNu64 " %*d %" SCNu64
                        " %" SCNu64 " %" SCNu64,
                        &user, &system, &f.n_threads, &started,
                        &f.virtual_bytes, &f.resident_bytes) != 6)
        return false;
    f.cpu_s = (double)(user + system) / ticks;
    f.started_s = booted_s + (double)started / ticks;
    f.resident_bytes *= page;
    *ret_facts = f;
    return true;
}

static void add(struct str *out, const char *name, const char *type,
                const char *help, double value)
{
    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name,
             type, name, value);
}

static void add_facts(const struct process_facts *f, struct str *out)
{
    add(out, "process_cpu_seconds_total", "counter",
        "User and system time of the process.", f->cpu_s);
    add(out, "process_start_time_seconds", "gauge",
        "When the process began, as Unix time.", f->started_s);
    add(out, "process_resident_memory_bytes", "gauge",
        "Memory of the process that is in RAM.", (double)f->resident_bytes);
    add(out, "process_virtual_memory_bytes", "gauge",
        "Address space of the process.", (double)f->virtual_bytes);
    add(out, "process_threads", "gauge", "Threads of the process.",
        (double)f->n_threads);
}

static void add_files(struct str *out)
{
    struct rlimit limit;
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;
    if (dir) {
        for (const struct dirent *e; (e = readdir(dir));)
            n += e->d_name[0] != '.';
        (void)closedir(dir);
        add(out, "process_open_fds", "gauge", "Open files of the process.",
            (double)(n - 1)); /* but for that of the folder */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        add(out, "process_max_fds", "gauge",
            "How many files the process may open.", (double)limit.rlim_cur);
}

/* The first line of a file that begins so; NULL: there is none. */
static char *find_line(const char *path, const char *begins)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    while (f && !found && getline(&line, &size, f) >= 0)
        found = strncmp(line, begins, strlen(begins)) == 0;
    if (f)
        (void)fclose(f);
    if (!found) {
        free(line);
        line = NULL;
    }
    return line;
}

void process_metrics_write(struct str *out)
{
    cleanup_free char *stat = find_line("/proc/self/stat", "");
    cleanup_free char *boot = find_line("/proc/stat", "btime ");
    struct process_facts facts;
    if (stat && boot &&
        process_facts_read(stat, strtod(boot + strlen("btime "), NULL), &facts))
        add_facts(&facts, out);
    add_files(out);
}

void process_metrics_build(const char *name, struct str *out)
{
    const struct metric_family build = {name,
                                        "The version of the program; always 1.",
                                        METRIC_GAUGE,
                                        {"version"}};
    metrics_write_head(&build, out);
    metrics_write_sample(&build, (const char *[]){BIGA_VERSION}, 1, out);
}
