import Delivery
import HTTPTypes
import Listening
import Rooms
import Support

extension APIRoute {
    /// Calls about the server itself.
    package static let server: [APIRoute] = [
        APIRoute(.get, "/counters", "getCounters", .server, .ops, "Totals since the server started.", answers: ServerTotals.outputType) {
            call in call.core.totals
        },
        APIRoute(
            raw: .get, "/metrics", "getMetrics", .server, .ops, "The counters for Prometheus; also at /metrics.", type: Metrics.mediaType
        ) { call in
            Array(try await Metrics.read(call.core).text.utf8)
        },
        APIRoute(
            .get, "/selfcheck", "checkSelf", .server, .ops, "Hold the counters against what they count.", answers: SelfCheck.outputType
        ) { call in
            try await SelfCheck.run(call.core)
        },
        APIRoute(
            raw: .get, "/openapi.json", "getOpenAPI", .server, nil, "This document.", type: "application/json", schema: .keywords("object")
        ) { _ in OpenAPIDocument.bytes },
    ]
}

/// Everything that a server counts, at one moment.
package struct ServerTotals {
    let counters: Counters.Values
    /// Log lines that were not written.
    let logLinesDropped: UInt64
    let talk: (mixes: Int, totals: TalkTotals)
    /// Bytes, and the effects of their limit.
    let memory: (used: Int, limit: Int, state: MemoryBudget.State)
}

extension ServerTotals {
    static let outputType = OutputType<ServerTotals>.object("Counters", Self.fields)

    package static let fields: [Field<ServerTotals>] = [
        .field("connectionsAccepted", .count, "RTMP and RTMPS connections.", \.counters.connectionsAccepted),
        .field("publishesStarted", .count, "Pushes that were let in.", \.counters.publishesStarted),
        .field("playsStarted", .count, "Plays that were let in.", \.counters.playsStarted),
        .field("playsWaited", .count, "Players over HTTP that were held because nobody published yet.", \.counters.playsWaited),
        .field("closed", .map(.count), "Connections that ended, by reason.") { values in
            Dictionary(uniqueKeysWithValues: CloseReason.allCases.map { ($0.rawValue, values.counters.closed[$0] ?? 0) })
        },
        .field(
            "httpConnectionsRefused", .count, "HTTP connections and forwarded requests beyond a limit.", \.counters.httpConnectionsRefused),
        .field(
            "httpConnectionsShed", .count, "Idle HTTP connections that were closed to make room for others.", \.counters.httpConnectionsShed
        ),
        .field(
            "connectionsTurnedAway", .count, "Connections closed as they came: beyond the limit, and too many at once to tell each.",
            \.counters.connectionsTurnedAway),
        .field("eventFeedsRefused", .count, "Subscribers of /events beyond the limit.", \.counters.eventFeedsRefused),
        .field(
            "eventFeedsBehind", .count, "Times that a subscriber was too slow for memory and read the store.", \.counters.eventFeedsBehind),
        .field("webhooksDelivered", .count, "Notices that were answered with a 2xx status.", \.counters.webhooksDelivered),
        .field("webhookAttemptsFailed", .count, "Attempts at notices that failed.", \.counters.webhookAttemptsFailed),
        .field("webhooksGivenUp", .count, "Notices that were given up.", \.counters.webhooksGivenUp),
        .field(
            "logLinesDropped", .count, "Lines of the log that were not written, since nobody read them or the disk was full.",
            \.logLinesDropped),
        .field("memoryUsedBytes", .count, "Media, and what connections have sent, that is held now. Bytes.", \.memory.used),
        .field("memoryLimitBytes", .count, "What it is held to: limits.memory. Bytes.", \.memory.limit),
        .field("memoryRefusals", .count, "Publishes and plays refused because memory was used up.", \.memory.state.refusals),
        .field("memoryTrims", .count, "Times that free memory was given back to the system.", \.memory.state.trims),
        .field("memoryTrimLongestMs", .count, "The longest of them: nobody waited longer for memory. Milliseconds.") {
            UInt64(clamping: ($0.memory.state.longestTrimMicros + 999) / 1_000)
        },
        .field("talkMixes", .count, "Different mixes of talk that are listened to now.", \.talk.mixes),
        .field("talkEncodes", .count, "Runs of talk that were encoded.", \.talk.totals.encodes),
        .field("talkUnderruns", .count, "Times that a talker's buffer ran dry.", \.talk.totals.underruns),
        .field("talkDroppedMs", .count, "Talk left out because it came in a burst, or too late.") { $0.talk.totals.dropped / 48 },
        .field("talkDroppedFrames", .count, "Frames of talk that came in a burst and were not decoded.", \.talk.totals.skipped),
        .field("talkDamagedFrames", .count, "Frames of talk that could not be decoded.", \.talk.totals.damaged),
    ]
}
