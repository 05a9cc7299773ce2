/* CPU of processes and cores, in seconds: from /proc (proc(5)). */
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fields of /proc/PID/stat: its parent, and its own and its waited-for children's time. */
static int process_stat(long pid, long *parent, double *own, double *children) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return 0;
    text[length] = 0;
    char *rest = strrchr(text, ')');
    unsigned long utime, stime;
    long cutime, cstime;
    if (!rest || sscanf(rest + 2, "%*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", parent, &utime, &stime, &cutime, &cstime) != 5)
        return 0;
    double tick = sysconf(_SC_CLK_TCK);
    *own = (utime + stime) / tick;
    *children = (cutime + cstime) / tick;
    return 1;
}

/* PostgreSQL's processes: the first one, those that it runs, and those that have ended. */
static double database_cpu(long postmaster) {
    long parent;
    double own, children, sum = 0;
    if (process_stat(postmaster, &parent, &own, &children)) sum = own + children;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        long pid = atol(entry->d_name);
        if (pid > 0 && process_stat(pid, &parent, &own, &children) && parent == postmaster) sum += own + children;
    }
    if (folder) closedir(folder);
    return sum;
}

static double process_cpu(long pid) {
    long parent;
    double own = 0, children;
    return process_stat(pid, &parent, &own, &children) ? own : 0;
}

/* Busy seconds of a core, other virtual machines' theft apart. */
static void core_time(int core, double *busy, double *stolen) {
    char line[512], name[16];
    FILE *file = fopen("/proc/stat", "r");
    *busy = *stolen = 0;
    snprintf(name, sizeof name, "cpu%d ", core);
    while (file && fgets(line, sizeof line, file)) {
        unsigned long user, nice, system, idle, wait, irq, soft, steal;
        if (strncmp(line, name, strlen(name))) continue;
        if (sscanf(line + strlen(name), "%lu %lu %lu %lu %lu %lu %lu %lu", &user, &nice, &system, &idle, &wait, &irq, &soft, &steal) != 8) continue;
        *busy = (user + nice + system + irq + soft) / (double)sysconf(_SC_CLK_TCK);
        *stolen = steal / (double)sysconf(_SC_CLK_TCK);
    }
    if (file) fclose(file);
}

