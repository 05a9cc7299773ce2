/* Times of what a benchmark does, and their quantiles as JSON. */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct times { uint32_t *at; size_t count, capacity; };

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void record(struct times *t, double ms) {
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 1 << 16;
        t->at = realloc(t->at, t->capacity * sizeof *t->at);
        if (!t->at) abort();
    }
    t->at[t->count++] = ms < 0 ? 0 : (uint32_t)(ms * 1000);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *name, struct times *t) {
    qsort(t->at, t->count, sizeof *t->at, by_size);
    double share[] = {0.5, 0.99, 1};
    printf("  \"%s\": {\"count\": %zu", name, t->count);
    const char *words[] = {"p50Ms", "p99Ms", "maxMs"};
    for (int i = 0; i < 3 && t->count; i++) {
        size_t index = (size_t)(share[i] * t->count);
        if (index >= t->count) index = t->count - 1;
        printf(", \"%s\": %.3f", words[i], t->at[index] / 1000.0);
    }
    printf("},\n");
}

