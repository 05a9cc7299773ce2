/* Simulates the nodes of a cluster towards its PostgreSQL: each renews its lease and asks for the others' signals, with the server's own
 * statements, prepared, in the server's order of waits (pipeline mode), over few connections, as behind a pooler.
 *
 *   nodes --url URL --nodes N --connections N --poll MS --seconds N --warmup N --kinds WORDS --postmaster PID [--watch NAME=PID]…
 *         [--events] [--scrape S] > figures.json
 *
 * --events: every node reads the events that signals name. --scrape: each node lists all nodes every S seconds, as for its metrics.
 * Like a server, a node sleeps for MS after a look has ended, and renews every 3 s. Prints "measuring" on stderr when the measured seconds begin.
 * The statements are those of Sources/Store (NodeLease.swift) and Sources/RoomRegistry (NodeStatements.swift, EventStatements.swift). For benchmarks, nothing else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "processes.h"
#include "times.h"

enum { MOST_NODES = 5000, MOST_CONNECTIONS = 300, MOST_WATCHED = 8, SIGNALS = 256, LEASE_MS = 3000, RENEWALS_PER_COUNT = 10 };

enum kind { LOOK, LEASE, SCRAPE };
enum statement { BEGIN, PAGE, EVENTS, COMMIT, RENEW, KEEP, COUNT, NODES, STATEMENTS };

struct node { char number[24]; int64_t last; int renewals; double due, lease_due, scrape_due, looked_at; };
struct job { int node; enum kind kind; double due; };
struct connection {
    PGconn *pg;
    struct job *jobs;
    int first, count, is_busy, phase, signals;
    struct job job;
    int64_t low, high;
    double sent;
    PGresult *result;
};

static struct node nodes[MOST_NODES];
static struct connection connections[MOST_CONNECTIONS];
static int node_count = 1000, connection_count = 40, epoll_fd, with_events, job_capacity;
static double poll_ms = 100, seconds = 30, warmup = 5, scrape_s, measured_from, measured_to;
static const char *url, *kinds = "";
static struct times look_times, lease_times, lags, statement_times;
static long long looks, leases, scrapes, signal_rows, event_rows, full_pages, news, round_trips, not_renewed;

static void die(const char *what, const char *why) {
    fprintf(stderr, "nodes: %s: %s\n", what, why);
    exit(1);
}

static int is_measured(double now) { return now >= measured_from && now < measured_to; }

/* --- Statements */

static char events_sql[4096];
static const char *sql[STATEMENTS] = {
    [BEGIN] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    [PAGE] = "SELECT id, node, CASE WHEN id > $1 THEN body END FROM signals WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3",
    [EVENTS] = events_sql,
    [COMMIT] = "COMMIT",
    [RENEW] = "WITH renewed AS (\n"
              "    UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => $1)\n"
              "    WHERE number = $2 AND EXISTS (SELECT 1 FROM fences WHERE node = $2 AND incarnation = $3) RETURNING number)\n"
              "SELECT (SELECT count(*) FROM renewed), (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    [KEEP] = "UPDATE duties SET node = $2, expires_at = clock_timestamp() + make_interval(secs => $1)\n"
             "WHERE name = 'keeper' AND (node = $2 OR expires_at < clock_timestamp())\n"
             "    AND EXISTS (SELECT 1 FROM fences WHERE node = $2 AND incarnation = $3)",
    [COUNT] = "SELECT count(*) FROM nodes WHERE expires_at > clock_timestamp()",
    [NODES] = "SELECT n.number, n.name, n.version, (extract(epoch FROM n.started_at) * 1000)::bigint,\n"
              "    (extract(epoch FROM n.expires_at - clock_timestamp()) * 1000)::bigint, n.state, n.address,\n"
              "    CASE WHEN d.node = n.number AND d.expires_at > clock_timestamp() THEN 1 ELSE 0 END,\n"
              "    (SELECT count(*) FROM pushes p WHERE p.ended_at IS NULL AND p.node = n.number)\n"
              "FROM nodes n LEFT JOIN duties d ON d.name = 'keeper' WHERE true ORDER BY n.name",
};
static const char *names[STATEMENTS] = {"begin", "page", "events", "commit", "renew", "keep", "count", "nodes"};

static void need(PGconn *pg, PGresult *result, const char *what) {
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) die(what, PQerrorMessage(pg));
}

static PGconn *connect_one(void) {
    const char *keys[] = {"dbname", "client_encoding", "fallback_application_name", NULL};
    const char *values[] = {url, "UTF8", "simulated nodes", NULL};
    PGconn *pg = PQconnectdbParams(keys, values, 1);
    if (PQstatus(pg) != CONNECTION_OK) die("connect", PQerrorMessage(pg));
    return pg;
}

static PGresult *run(PGconn *pg, const char *text) {
    PGresult *result = PQexec(pg, text);
    need(pg, result, text);
    return result;
}

static void prepare(struct connection *c) {
    c->pg = connect_one();
    PQclear(run(c->pg, "SET statement_timeout = '5s'; SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '5s'"));
    for (int i = 0; i < STATEMENTS; i++) {
        PGresult *result = PQprepare(c->pg, names[i], sql[i], 0, NULL);
        need(c->pg, result, names[i]);
        PQclear(result);
    }
    if (PQsetnonblocking(c->pg, 1) || !PQenterPipelineMode(c->pg)) die("pipeline", PQerrorMessage(c->pg));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, PQsocket(c->pg), &event)) die("epoll", strerror(errno));
}

static void enter_nodes(PGconn *pg) {
    char text[2048];
    snprintf(text, sizeof text,
             "BEGIN; INSERT INTO nodes (name, process, version, started_at, expires_at, key)"
             " SELECT 'simulated-' || g, 'simulated-' || g, (SELECT max(version) FROM nodes), clock_timestamp(),"
             "  clock_timestamp() + interval '60 s', coalesce((SELECT max(key) FROM nodes), '') FROM generate_series(1, %d) g;"
             " INSERT INTO fences (node, incarnation, batch) SELECT number, 1, 0 FROM nodes WHERE name LIKE 'simulated-%%'; COMMIT",
             node_count);
    PQclear(run(pg, text));
    PGresult *result = run(pg, "SELECT number, name, (SELECT signal FROM heads) FROM nodes WHERE name LIKE 'simulated-%' ORDER BY number");
    if (PQntuples(result) != node_count) die("nodes", "another number than was entered");
    for (int i = 0; i < node_count; i++) {
        snprintf(nodes[i].number, sizeof nodes[i].number, "%s", PQgetvalue(result, i, 0));
        nodes[i].last = atoll(PQgetvalue(result, i, 2));
    }
    PQclear(result);
}

static void send_one(struct connection *c, enum statement s, int count, const char *const *values) {
    if (!PQsendQueryPrepared(c->pg, names[s], count, values, NULL, NULL, 0)) die(names[s], PQerrorMessage(c->pg));
}

/* One wait for the server. */
static void synchronise(struct connection *c) {
    if (!PQpipelineSync(c->pg)) die("sync", PQerrorMessage(c->pg));
    for (int left; (left = PQflush(c->pg)) != 0;) {
        if (left < 0) die("flush", PQerrorMessage(c->pg));
        struct pollfd wait = {.fd = PQsocket(c->pg), .events = POLLOUT | POLLIN};
        poll(&wait, 1, 100);
        if (wait.revents & POLLIN) PQconsumeInput(c->pg);
    }
    c->sent = now_ms();
    round_trips += is_measured(c->sent);
}

static void begin_job(struct connection *c);

static void end_job(struct connection *c) {
    double now = now_ms();
    struct node *n = &nodes[c->job.node];
    switch (c->job.kind) {
    case LOOK:
        n->due = now + poll_ms;
        n->looked_at = now;
        if (is_measured(now)) { looks++; record(&look_times, now - c->job.due); }
        break;
    case LEASE:
        n->lease_due = now + LEASE_MS;
        if (is_measured(now)) { leases++; record(&lease_times, now - c->job.due); }
        break;
    case SCRAPE:
        n->scrape_due = now + scrape_s * 1000;
        if (is_measured(now)) scrapes++;
        break;
    }
    c->is_busy = 0;
    if (c->count) begin_job(c);
}

static void ask_signals(struct connection *c) {
    char after[24], limit[24];
    snprintf(after, sizeof after, "%lld", (long long)nodes[c->job.node].last);
    snprintf(limit, sizeof limit, "%d", SIGNALS + 1);
    const char *values[] = {after, "9223372036854775807", limit};
    send_one(c, PAGE, 3, values);
    synchronise(c);
}

static void begin_job(struct connection *c) {
    c->job = c->jobs[c->first];
    c->first = (c->first + 1) % job_capacity;
    c->count--;
    c->is_busy = 1;
    c->phase = 0;
    struct node *n = &nodes[c->job.node];
    const char *lease[] = {"10", n->number, "1"};
    switch (c->job.kind) {
    case LOOK:
        ask_signals(c);
        break;
    case LEASE:
        send_one(c, RENEW, 3, lease);
        synchronise(c);
        break;
    case SCRAPE:
        send_one(c, BEGIN, 0, NULL);
        send_one(c, NODES, 0, NULL);
        synchronise(c);
        break;
    }
}

static void add_job(int node, enum kind kind, double due) {
    struct connection *c = &connections[node % connection_count];
    if (c->count == job_capacity) die("queue", "full");
    c->jobs[(c->first + c->count++) % job_capacity] = (struct job){node, kind, due};
    if (!c->is_busy) begin_job(c);
}

static void commit(struct connection *c) {
    send_one(c, COMMIT, 0, NULL);
    synchronise(c);
    c->phase = 1;
}

/* Takes in the signals behind the last one known, which comes first, and finds the ids of their events. */
static void take_signals(struct connection *c) {
    struct node *n = &nodes[c->job.node];
    c->low = INT64_MAX;
    c->high = c->signals = 0;
    for (int row = 0; row < PQntuples(c->result); row++) {
        int64_t id = atoll(PQgetvalue(c->result, row, 0));
        if (id <= n->last) continue;
        c->signals++;
        n->last = id;
        for (const char *at = PQgetvalue(c->result, row, 2); (at = strstr(at, "\"event\":"));) {
            at += strlen("\"event\":");
            int64_t event = atoll(at);
            if (event < c->low) c->low = event;
            if (event > c->high) c->high = event;
        }
    }
    if (is_measured(now_ms())) { signal_rows += c->signals; news += c->signals > 0; full_pages += c->signals >= SIGNALS; }
}

static int ask_events(struct connection *c) {
    if (!c->high || !with_events) return 0;
    char after[24], limit[24];
    snprintf(after, sizeof after, "%lld", (long long)c->low - 1);
    snprintf(limit, sizeof limit, "%lld", (long long)(c->high - c->low + 1));
    const char *values[] = {after, limit};
    send_one(c, EVENTS, 2, values);
    synchronise(c);
    return 1;
}

static void look_again_or_end(struct connection *c) {
    if (c->signals < SIGNALS) return end_job(c);
    c->jobs[c->first = (c->first + job_capacity - 1) % job_capacity] = c->job;
    c->count++;
    begin_job(c);
}

/* Everything up to a synchronisation was answered. */
static void answered(struct connection *c) {
    struct node *n = &nodes[c->job.node];
    double now = now_ms();
    if (is_measured(now)) record(&statement_times, now - c->sent);
    switch (c->job.kind) {
    case LOOK:
        if (c->phase == 0) {
            take_signals(c);
            c->phase = 1;
            if (!ask_events(c)) look_again_or_end(c);
            return;
        }
        if (is_measured(now)) event_rows += PQntuples(c->result);
        return look_again_or_end(c);
    case LEASE:
        if (c->phase == 0) {
            not_renewed += atoi(PQgetvalue(c->result, 0, 0)) != 1;
            const char *lease[] = {"10", n->number, "1"};
            c->phase = 1;
            send_one(c, KEEP, 3, lease);
            return synchronise(c);
        }
        if (c->phase == 1 && n->renewals++ % RENEWALS_PER_COUNT == 0) {
            c->phase = 2;
            send_one(c, COUNT, 0, NULL);
            return synchronise(c);
        }
        return end_job(c);
    case SCRAPE:
        if (c->phase == 0) return commit(c);
        return end_job(c);
    }
}

static void receive(struct connection *c) {
    if (!PQconsumeInput(c->pg)) die("connection", PQerrorMessage(c->pg));
    while (c->is_busy && !PQisBusy(c->pg)) {
        PGresult *result = PQgetResult(c->pg);
        // Between two statements, or nothing more now.
        if (!result) {
            if (PQisBusy(c->pg)) return;
            result = PQgetResult(c->pg);
            if (!result) return;
        }
        switch (PQresultStatus(result)) {
        case PGRES_PIPELINE_SYNC:
            PQclear(result);
            answered(c);
            break;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
            PQclear(c->result);
            c->result = result;
            break;
        default: die("statement", PQresultErrorMessage(result));
        }
    }
}

static const struct option options[] = {
    {"url", 1, 0, 'u'}, {"nodes", 1, 0, 'n'}, {"connections", 1, 0, 'c'}, {"poll", 1, 0, 'p'}, {"seconds", 1, 0, 's'},
    {"warmup", 1, 0, 'w'}, {"kinds", 1, 0, 'k'}, {"postmaster", 1, 0, 'm'}, {"watch", 1, 0, 'x'}, {"events", 0, 0, 'e'},
    {"scrape", 1, 0, 'r'}, {0}};

int main(int argc, char **argv) {
    long postmaster = 0, watched[MOST_WATCHED];
    const char *watched_names[MOST_WATCHED];
    int watched_count = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        char *equals;
        switch (option) {
        case 'u': url = optarg; break;
        case 'n': node_count = atoi(optarg); break;
        case 'c': connection_count = atoi(optarg); break;
        case 'p': poll_ms = atof(optarg); break;
        case 's': seconds = atof(optarg); break;
        case 'w': warmup = atof(optarg); break;
        case 'k': kinds = optarg; break;
        case 'm': postmaster = atol(optarg); break;
        case 'e': with_events = 1; break;
        case 'r': scrape_s = atof(optarg); break;
        case 'x':
            equals = strchr(optarg, '=');
            if (!equals || watched_count == MOST_WATCHED) die("--watch", optarg);
            *equals = 0;
            watched_names[watched_count] = optarg;
            watched[watched_count++] = atol(equals + 1);
            break;
        default: return 2;
        }
    }
    if (!url || node_count < 0 || node_count > MOST_NODES || connection_count < 1 || connection_count > MOST_CONNECTIONS || poll_ms < 1 ||
        seconds < 1 || seconds > 600 || warmup < 0 || warmup > 60)
        die("options", "--url is missing, or a number is out of range");
    snprintf(events_sql, sizeof events_sql,
             "SELECT id, number, kind, room_id, instance, at, data, app, subject FROM events WHERE id > $1 AND kind IN (%s) ORDER BY id ASC LIMIT $2",
             kinds);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    PGconn *watcher = connect_one();
    if (node_count) enter_nodes(watcher);
    if (connection_count > node_count) connection_count = node_count ? node_count : 1;
    job_capacity = 3 * (node_count / connection_count + 2);
    for (int i = 0; i < connection_count; i++) {
        connections[i].jobs = calloc(job_capacity, sizeof(struct job));
        prepare(&connections[i]);
    }
    double start = now_ms();
    measured_from = start + warmup * 1000;
    measured_to = measured_from + seconds * 1000;
    for (int i = 0; i < node_count; i++) {
        nodes[i].due = start + i * poll_ms / node_count;
        nodes[i].lease_due = start + (double)i * LEASE_MS / node_count;
        nodes[i].scrape_due = scrape_s > 0 ? start + i * scrape_s * 1000 / node_count : 1e300;
        nodes[i].looked_at = start;
        nodes[i].renewals = i % RENEWALS_PER_COUNT;
    }
    const char *count_sql = "SELECT event, signal, (SELECT count(*) FROM events), (SELECT min(id) FROM events), (SELECT max(id) FROM events),"
                            " (SELECT count(*) FROM signals), (SELECT min(id) FROM signals), (SELECT max(id) FROM signals),"
                            " (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) FROM heads";
    PGresult *before = NULL;
    double cpu = 0, own_cpu = 0, busy[2] = {0}, stolen[2] = {0}, watched_cpu[MOST_WATCHED] = {0}, wall = 0, sampled_at = 0;
    for (double scanned = 0;;) {
        double now = now_ms();
        if (now >= measured_to) break;
        if (!before && now >= measured_from) {
            before = run(watcher, count_sql);
            cpu = database_cpu(postmaster);
            own_cpu = process_cpu(getpid());
            for (int i = 0; i < 2; i++) core_time(i, &busy[i], &stolen[i]);
            for (int i = 0; i < watched_count; i++) watched_cpu[i] = process_cpu(watched[i]);
            wall = now_ms();
            fprintf(stderr, "measuring\n");
        }
        if (now - scanned >= 1) {
            scanned = now;
            for (int i = 0; i < node_count; i++) {
                struct node *n = &nodes[i];
                // Not again before it has ended.
                if (n->due <= now) { add_job(i, LOOK, n->due); n->due = 1e300; }
                if (n->lease_due <= now) { add_job(i, LEASE, n->lease_due); n->lease_due = 1e300; }
                if (n->scrape_due <= now) { add_job(i, SCRAPE, n->scrape_due); n->scrape_due = 1e300; }
            }
            if (before && now - sampled_at >= 97) {
                sampled_at = now;
                for (int i = 0; i < node_count; i++) record(&lags, now - nodes[i].looked_at);
            }
        }
        struct epoll_event events[64];
        int count = epoll_wait(epoll_fd, events, 64, 1);
        for (int i = 0; i < count; i++) receive(events[i].data.ptr);
    }
    wall = (now_ms() - wall) / 1000;
    cpu = database_cpu(postmaster) - cpu;
    own_cpu = process_cpu(getpid()) - own_cpu;
    for (int i = 0; i < watched_count; i++) watched_cpu[i] = process_cpu(watched[i]) - watched_cpu[i];
    double busy_after[2], stolen_after[2];
    for (int i = 0; i < 2; i++) core_time(i, &busy_after[i], &stolen_after[i]);
    PGresult *after = run(watcher, count_sql);
    long long was[9], is[9];
    for (int i = 0; i < 9; i++) { was[i] = atoll(PQgetvalue(before, 0, i)); is[i] = atoll(PQgetvalue(after, 0, i)); }

    printf("{\n  \"nodes\": %d, \"connections\": %d, \"pollMs\": %g, \"seconds\": %.2f,\n", node_count, connection_count, poll_ms, wall);
    printf("  \"databaseCores\": %.3f, \"ownCores\": %.3f,\n", cpu / wall, own_cpu / wall);
    for (int i = 0; i < 2; i++)
        printf("  \"core%d\": {\"busy\": %.3f, \"stolen\": %.3f},\n", i, (busy_after[i] - busy[i]) / wall, (stolen_after[i] - stolen[i]) / wall);
    printf("  \"watchedCores\": {");
    for (int i = 0; i < watched_count; i++) printf("%s\"%s\": %.3f", i ? ", " : "", watched_names[i], watched_cpu[i] / wall);
    printf("},\n  \"eventsPerSecond\": %.1f, \"signalsPerSecond\": %.1f, \"commitsPerSecond\": %.1f,\n", (is[0] - was[0]) / wall,
           (is[1] - was[1]) / wall, (is[8] - was[8]) / wall);
    printf("  \"eventsHaveNoGap\": %s, \"signalsHaveNoGap\": %s, \"events\": %lld, \"signals\": %lld,\n",
           is[2] == is[4] - is[3] + 1 && is[4] == is[0] ? "true" : is[2] == 0 ? "null" : "false",
           is[5] == is[7] - is[6] + 1 && is[7] == is[1] ? "true" : is[5] == 0 ? "null" : "false", is[2], is[5]);
    printf("  \"looksPerSecond\": %.1f, \"looksWithNewsPerSecond\": %.1f, \"leasesPerSecond\": %.1f, \"scrapesPerSecond\": %.1f,\n", looks / wall,
           news / wall, leases / wall, scrapes / wall);
    printf("  \"signalRowsPerSecond\": %.0f, \"eventRowsPerSecond\": %.0f, \"roundTripsPerSecond\": %.0f, \"fullPages\": %lld, \"notRenewed\": %lld,\n",
           signal_rows / wall, event_rows / wall, round_trips / wall, full_pages, not_renewed);
    print_times("look", &look_times);
    print_times("lease", &lease_times);
    print_times("roundTrip", &statement_times);
    print_times("signalLag", &lags);
    printf("  \"version\": 1\n}\n");
    return 0;
}
