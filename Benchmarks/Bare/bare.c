/* The floor that servers are measured against: one thread, epoll, and a plain send() per message and viewer.
 *
 *   bare PORT [WINDOW_MS]
 *
 * Speaks just enough RTMP for earshot-load: no cache for joiners, no timeouts, no checks that a server on a network needs. A frame is encoded
 * once, as earshot does it (fmt 0 header, chunks of 60,000 bytes), and sent to every viewer of its stream at once; with WINDOW_MS, what
 * arrived within the window leaves in one send() per viewer. Listens on 127.0.0.1 only. For benchmarks, nothing else.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 60000, HANDSHAKE = 1536, CHUNK_STREAMS = 8, MAX_MESSAGE = 8 << 20, MAX_BACKLOG = 4 << 20, READ = 64 << 10, EVENTS = 512 };

struct bytes { uint8_t *at; size_t length, capacity; };

struct message { uint32_t id, timestamp, length, stream_id; uint8_t type; struct bytes body; };

struct stream;

struct connection {
    int fd, handshaken, is_waiting;
    struct bytes in, backlog;
    uint32_t chunk_size;
    struct message partial[CHUNK_STREAMS];
    struct stream *plays, *publishes;
    struct connection *next_viewer;
};

struct stream {
    char name[128];
    struct connection *viewers;
    struct bytes window;
    struct stream *next;
};

static struct stream *streams;
static int epoll_fd, window_ms;

static void die(const char *what) { perror(what); exit(1); }

static void reserve(struct bytes *b, size_t more) {
    if (b->length + more <= b->capacity) return;
    b->capacity = (b->length + more) * 2;
    b->at = realloc(b->at, b->capacity);
    if (!b->at) die("realloc");
}

static void append(struct bytes *b, const void *from, size_t count) {
    reserve(b, count);
    memcpy(b->at + b->length, from, count);
    b->length += count;
}

static void drop(struct bytes *b, size_t count) {
    memmove(b->at, b->at + count, b->length - count);
    b->length -= count;
}

static void release(struct bytes *b) { free(b->at); *b = (struct bytes){0}; }

/* ---- Writing ---- */

static void watch(struct connection *c, int wants_write) {
    if (c->is_waiting == wants_write) return;
    c->is_waiting = wants_write;
    struct epoll_event event = {.events = EPOLLIN | (wants_write ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void transmit(struct connection *c, const void *from, size_t count) {
    ssize_t sent = 0;
    if (c->backlog.length == 0) {
        sent = send(c->fd, from, count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent == (ssize_t)count) return;
        if (sent < 0 && errno != EAGAIN) return; /* The next read tells that it is gone. */
        if (sent < 0) sent = 0;
    }
    if (c->backlog.length < MAX_BACKLOG) append(&c->backlog, (const uint8_t *)from + sent, count - sent);
    watch(c, 1);
}

static void drain(struct connection *c) {
    ssize_t sent = send(c->fd, c->backlog.at, c->backlog.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) drop(&c->backlog, sent);
    if (c->backlog.length == 0) { release(&c->backlog); watch(c, 0); }
}

/* RTMP 1.0 section 5.3.1: a type 0 header, and type 3 headers between the chunks of a long message. */
static void encode(struct bytes *out, int chunk_stream, int type, uint32_t timestamp, uint32_t stream_id, const uint8_t *body, size_t length) {
    int is_extended = timestamp >= 0xFFFFFF;
    uint32_t field = is_extended ? 0xFFFFFF : timestamp, extended = htonl(timestamp);
    uint8_t header[12] = {chunk_stream, field >> 16, field >> 8, field, length >> 16, length >> 8, length, type, stream_id, stream_id >> 8};
    append(out, header, sizeof header);
    if (is_extended) append(out, &extended, 4);
    for (size_t at = 0; at < length; at += CHUNK) {
        if (at > 0) {
            uint8_t next = 0xC0 | chunk_stream;
            append(out, &next, 1);
            if (is_extended) append(out, &extended, 4);
        }
        append(out, body + at, length - at < CHUNK ? length - at : CHUNK);
    }
}

/* ---- Commands: AMF 0, as much as is needed ---- */

static void put_string(struct bytes *b, const char *text) {
    uint8_t head[3] = {2, strlen(text) >> 8, strlen(text)};
    append(b, head, 3);
    append(b, text, strlen(text));
}

static void put_number(struct bytes *b, double number) {
    uint64_t bits;
    memcpy(&bits, &number, 8);
    uint8_t out[9] = {0};
    for (int i = 0; i < 8; i++) out[1 + i] = bits >> (56 - 8 * i);
    append(b, out, 9);
}

static void put_status(struct bytes *b, const char *code) {
    append(b, "\x03\x00\x05level", 8);
    put_string(b, "status");
    append(b, "\x00\x04" "code", 6);
    put_string(b, code);
    append(b, "\x00\x00\x09", 3);
}

static void answer(struct connection *c, const char *name, double transaction, uint32_t stream_id, const char *code, double number) {
    struct bytes body = {0}, out = {0};
    put_string(&body, name);
    put_number(&body, transaction);
    append(&body, "\x05", 1);
    if (code) put_status(&body, code); else put_number(&body, number);
    encode(&out, 3, 20, 0, stream_id, body.at, body.length);
    transmit(c, out.at, out.length);
    release(&body);
    release(&out);
}

static struct stream *find(const uint8_t *name, size_t length) {
    char text[128] = {0};
    memcpy(text, name, length < 127 ? length : 127);
    for (struct stream *s = streams; s; s = s->next) if (!strcmp(s->name, text)) return s;
    struct stream *s = calloc(1, sizeof *s);
    memcpy(s->name, text, sizeof text);
    s->next = streams;
    return streams = s;
}

static void command(struct connection *c, struct message *m) {
    const uint8_t *at = m->body.at, *end = at + m->body.length;
    if (end - at < 3 || at[0] != 2) return;
    size_t length = at[1] << 8 | at[2];
    const char *name = (const char *)at + 3;
    at += 3 + length;
    if (end - at < 9 || at[0] != 0) return;
    uint64_t bits = 0;
    for (int i = 1; i < 9; i++) bits = bits << 8 | at[i];
    double transaction;
    memcpy(&transaction, &bits, 8);
    at += 9;
    #define IS(text) (length == strlen(text) && !memcmp(name, text, length))
    if (IS("connect")) {
        uint8_t size[4] = {CHUNK >> 24, CHUNK >> 16 & 255, CHUNK >> 8 & 255, CHUNK & 255};
        struct bytes out = {0};
        encode(&out, 2, 1, 0, 0, size, 4);
        transmit(c, out.at, out.length);
        release(&out);
        answer(c, "_result", transaction, 0, "NetConnection.Connect.Success", 0);
    } else if (IS("createStream")) {
        answer(c, "_result", transaction, 0, NULL, 1);
    } else if ((IS("publish") || IS("play")) && end - at >= 4 && at[0] == 5 && at[1] == 2) {
        struct stream *s = find(at + 4, at[2] << 8 | at[3]);
        if (IS("publish")) {
            c->publishes = s;
            return answer(c, "onStatus", 0, m->stream_id, "NetStream.Publish.Start", 0);
        }
        answer(c, "onStatus", 0, m->stream_id, "NetStream.Play.Start", 0);
        c->plays = s;
        c->next_viewer = s->viewers;
        s->viewers = c;
    }
}

/* ---- Fan-out ---- */

static void send_to_all(struct stream *s, struct bytes *b) {
    for (struct connection *v = s->viewers; v; v = v->next_viewer) transmit(v, b->at, b->length);
    b->length = 0;
}

static void received(struct connection *c, struct message *m) {
    static struct bytes scratch;
    if (m->type == 1 && m->body.length >= 4) {
        c->chunk_size = ntohl(*(uint32_t *)m->body.at);
    } else if (m->type == 20) {
        command(c, m);
    } else if (c->publishes && (m->type == 8 || m->type == 9 || m->type == 18)) {
        struct bytes *out = window_ms ? &c->publishes->window : &scratch;
        encode(out, m->type == 9 ? 6 : 4, m->type, m->timestamp, 1, m->body.at, m->body.length);
        if (!window_ms) send_to_all(c->publishes, out);
    }
}

/* ---- Reading ---- */

static uint32_t u24(const uint8_t *b) { return b[0] << 16 | b[1] << 8 | b[2]; }

/* One chunk from the front of the input: bytes used, 0 when it is not all there, -1 when it cannot be. */
static ssize_t chunk(struct connection *c, const uint8_t *at, size_t count) {
    static const int header_lengths[] = {11, 7, 3, 0};
    if (count < 1) return 0;
    int format = at[0] >> 6, id = at[0] & 63;
    if (id < 2 || id >= 2 + CHUNK_STREAMS) return -1;
    struct message *m = &c->partial[id - 2];
    size_t used = 1 + header_lengths[format];
    if (count < used) return 0;
    if (format < 3) {
        uint32_t field = u24(at + 1);
        if (field == 0xFFFFFF) {
            if (count < used + 4) return 0;
            memcpy(&field, at + used, 4);
            field = ntohl(field);
            used += 4;
        }
        if (m->body.length == 0) m->timestamp = format == 0 ? field : m->timestamp + field;
        if (format < 2) { m->length = u24(at + 4); m->type = at[7]; }
        if (format == 0) m->stream_id = at[8] | at[9] << 8 | at[10] << 16;
    }
    if (m->length > MAX_MESSAGE) return -1;
    size_t left = m->length - m->body.length, take = left < c->chunk_size ? left : c->chunk_size;
    if (count < used + take) return 0;
    append(&m->body, at + used, take);
    if (m->body.length == m->length) {
        received(c, m);
        m->body.length = 0;
    }
    return used + take;
}

static int consume(struct connection *c) {
    size_t at = 0;
    if (c->handshaken == 0) {
        if (c->in.length < 1 + HANDSHAKE) return 1;
        uint8_t reply[1 + 2 * HANDSHAKE] = {3};
        memcpy(reply + 1 + HANDSHAKE, c->in.at + 1, HANDSHAKE);
        transmit(c, reply, sizeof reply);
        c->handshaken = 1;
        at = 1 + HANDSHAKE;
    }
    if (c->handshaken == 1) {
        if (c->in.length - at < HANDSHAKE) { drop(&c->in, at); return 1; }
        c->handshaken = 2;
        at += HANDSHAKE;
    }
    for (ssize_t used; (used = chunk(c, c->in.at + at, c->in.length - at)) != 0; at += used) if (used < 0) return 0;
    drop(&c->in, at);
    if (c->in.length == 0) release(&c->in);
    return 1;
}

static void finish(struct connection *c) {
    if (c->plays) {
        struct connection **link = &c->plays->viewers;
        while (*link && *link != c) link = &(*link)->next_viewer;
        if (*link) *link = c->next_viewer;
    }
    close(c->fd);
    release(&c->in);
    release(&c->backlog);
    for (int i = 0; i < CHUNK_STREAMS; i++) release(&c->partial[i].body);
    free(c);
}

static void readable(struct connection *c) {
    reserve(&c->in, READ);
    ssize_t count = recv(c->fd, c->in.at + c->in.length, READ, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count > 0) c->in.length += count;
    if (count <= 0 || !consume(c)) finish(c);
}

static void take_all(int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct connection *c = calloc(1, sizeof *c);
        if (!c) die("calloc");
        c->fd = fd;
        c->chunk_size = 128;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl");
    }
}

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

int main(int count, char **arguments) {
    int port = count > 1 ? atoi(arguments[1]) : 0;
    window_ms = count > 2 ? atoi(arguments[2]) : 0;
    if (port < 1 || port > 65535 || window_ms < 0 || window_ms > 1000) { fprintf(stderr, "usage: bare PORT [WINDOW_MS, 0 to 1000]\n"); return 64; }
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) die("listen");
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    int64_t next = now_ms() + window_ms;
    for (;;) {
        int64_t left = next - now_ms();
        int ready = epoll_wait(epoll_fd, events, EVENTS, window_ms ? (left < 0 ? 0 : (int)left) : -1);
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) { take_all(listener); continue; }
            if (events[i].events & EPOLLOUT) drain(c);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) readable(c);
        }
        if (!window_ms || now_ms() < next) continue;
        next = now_ms() + window_ms;
        for (struct stream *s = streams; s; s = s->next) if (s->window.length) send_to_all(s, &s->window);
    }
}
