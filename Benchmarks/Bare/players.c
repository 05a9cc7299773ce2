// Players of one low-latency HLS stream, on one core: each asks for the next playlist and for the part that it hints, as soon as it has the ones
// before. Prints how much later than the first player the others had each part. Usage: players PORT PATH PLAYERS SECONDS
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 20, PARTS = 1 << 16, BUCKETS = 10001 };
enum Step { OPENING, STARTING, RELOADING, LOADING };
typedef struct {
    int socket;
    enum Step step;
    char media[256], part[128], *bytes;
    size_t used;
    long sequence, index;
} Player;

static char path[200], folder[200];
static long first[PARTS], buckets[BUCKETS], answers, failures;
static double bytesRead;

static long nowMicros(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000L + time.tv_nsec / 1000;
}

static void ask(Player *player, const char *target) {
    char text[700];
    int length = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target);
    if (write(player->socket, text, (size_t)length) != length) failures++;
}

static void reload(Player *player) {
    char target[600];
    snprintf(target, sizeof target, "%s/%s&_HLS_msn=%ld&_HLS_part=%ld", folder, player->media, player->sequence, player->index);
    player->step = RELOADING;
    ask(player, target);
}

// Reads what comes next out of a playlist: the hinted part, and the numbers to reload with.
static int readPlaylist(Player *player, char *text) {
    char *line = strstr(text, "#EXT-X-MEDIA-SEQUENCE:"), *rest = line;
    if (!line) return 0;
    player->sequence = atol(line + 22);
    player->index = 0;
    while ((rest = strstr(rest, "\n#EXT"))) {
        if (!strncmp(rest, "\n#EXTINF:", 9)) player->sequence++, player->index = 0;
        if (!strncmp(rest, "\n#EXT-X-PART:", 13)) player->index++;
        rest += 5;
    }
    if (!(line = strstr(text, "#EXT-X-PRELOAD-HINT:")) || !(line = strstr(line, "URI=\""))) return 0;
    size_t length = strcspn(line += 5, "\"");
    if (length >= sizeof player->part) return 0;
    memcpy(player->part, line, length);
    player->part[length] = 0;
    return 1;
}

static void notePart(const char *name, long now) {
    const char *number = strstr(name, "-p");
    long *seen = &first[(number ? atol(number + 2) : 0) % PARTS];
    if (!*seen) *seen = now;
    long ms = (now - *seen) / 100;
    buckets[ms < BUCKETS ? ms : BUCKETS - 1]++;
}

static void answered(Player *player, char *body, int status) {
    char target[600], *line, name[256];
    answers++;
    if (status != 200) {
        failures++;
        player->step = OPENING;
        return ask(player, path);
    }
    switch (player->step) {
    case OPENING:
        for (line = strtok(body, "\n"); line && *line == '#'; line = strtok(NULL, "\n")) {}
        if (!line) return;
        snprintf(name, sizeof name, "%s", line);
        snprintf(player->media, sizeof player->media, "%s", strchr(name, '/') + 1);
        snprintf(target, sizeof target, "%s/%s", folder, player->media);
        player->step = STARTING;
        return ask(player, target);
    case STARTING:
    case RELOADING:
        if (!readPlaylist(player, body)) return (void)failures++;
        snprintf(target, sizeof target, "%s/%s", folder, player->part);
        player->step = LOADING;
        return ask(player, target);
    case LOADING:
        notePart(player->part, nowMicros());
        // The next playlist is the one that lists this part.
        reload(player);
    }
}

static void readable(Player *player) {
    for (;;) {
        ssize_t count = read(player->socket, player->bytes + player->used, ROOM - 1 - player->used);
        if (count <= 0) {
            if (count == 0 || errno != EAGAIN) failures++, close(player->socket);
            return;
        }
        bytesRead += (double)count;
        player->used += (size_t)count;
        player->bytes[player->used] = 0;
        char *end = memmem(player->bytes, player->used, "\r\n\r\n", 4);
        char *field = end ? strcasestr(player->bytes, "content-length:") : NULL;
        if (!field) continue;
        size_t whole = (size_t)(end + 4 - player->bytes) + (size_t)atol(field + 15);
        if (player->used < whole) continue;
        player->used = 0;
        answered(player, end + 4, atoi(player->bytes + 9));
    }
}

int main(int count, char **arguments) {
    if (count != 5) return fprintf(stderr, "usage: players PORT PATH PLAYERS SECONDS\n"), 2;
    int players = atoi(arguments[3]), poll = epoll_create1(0);
    snprintf(path, sizeof path, "%s", arguments[2]);
    snprintf(folder, sizeof folder, "%.*s.hls", (int)strcspn(path, "."), path);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1]))};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    Player *all = calloc((size_t)players, sizeof(Player));
    long began = nowMicros(), warm = began + 3000000L + players * 1000L, end = warm + atol(arguments[4]) * 1000000L;
    int opened = 0, isWarm = 0;
    for (long now = began; now < end; now = nowMicros()) {
        for (; opened < players && opened < (now - began) / 1000; opened++) {
            Player *player = &all[opened];
            player->bytes = malloc(ROOM);
            player->socket = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(player->socket, (struct sockaddr *)&address, sizeof address)) return perror("connect"), 1;
            fcntl(player->socket, F_SETFL, O_NONBLOCK);
            struct epoll_event event = {.events = EPOLLIN, .data.ptr = player};
            epoll_ctl(poll, EPOLL_CTL_ADD, player->socket, &event);
            ask(player, path);
        }
        if (!isWarm && now >= warm) {
            isWarm = 1, answers = failures = 0, bytesRead = 0;
            memset(buckets, 0, sizeof buckets);
            printf("warm\n"), fflush(stdout);
        }
        struct epoll_event events[256];
        int ready = epoll_wait(poll, events, 256, opened < players ? 1 : 100);
        for (int index = 0; index < ready; index++) readable(events[index].data.ptr);
    }
    long total = 0, sum = 0, late = 0;
    for (int index = 0; index < BUCKETS; index++) total += buckets[index], late += index > 1000 ? buckets[index] : 0;
    printf("players %d, answers %ld, failures %ld, parts %ld, %.0f Mbit/s", players, answers, failures, total, bytesRead * 8e-6 / atol(arguments[4]));
    double shares[] = {0.5, 0.9, 0.99, 1};
    for (int index = 0, share = 0; index < BUCKETS && share < 4; index++) {
        for (sum += buckets[index]; share < 4 && total && sum >= (long)(shares[share] * (double)total); share++)
            printf(", p%g %.1f ms", shares[share] * 100, index / 10.0);
    }
    printf(", over 100 ms: %.3f %%\n", total ? 100.0 * (double)late / (double)total : 0);
}
