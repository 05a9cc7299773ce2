package import HTTPAPI
import Listening
import Streaming
import Support
import Talkback

/// Everything that a server counts, at one moment.
package struct ServerTotals {
    let counters: ServerCounters.Values
    /// Log lines that were not written.
    let logLinesDropped: UInt64
    let talk: (mixes: Int, totals: TalkTotals)
    /// Bytes, and the effects of their limit.
    let memory: (used: Int, limit: Int, state: MemoryBudget.State)
}

extension ServerTotals {
    static let outputType = OutputType<ServerTotals>.object("Counters", Self.fields)

    package static let fields: [Field<ServerTotals>] = [
        .field("connectionsAccepted", .count, "RTMP and RTMPS connections accepted.", \.counters.connectionsAccepted),
        .field("publishesStarted", .count, "Pushes admitted.", \.counters.publishesStarted),
        .field("playsStarted", .count, "Plays admitted.", \.counters.playsStarted),
        .field("playsWaited", .count, "Players over HTTP that had to wait because nobody was publishing yet.", \.counters.playsWaited),
        .field(
            "messagesSkipped", .count,
            "Publishers' messages that were skipped: unreadable ones, unknown commands, and data over limits.dataMessage.",
            \.counters.messagesSkipped),
        .field("closed", .map(.count), "Connections that ended, by reason.") { values in
            Dictionary(uniqueKeysWithValues: CloseReason.allCases.map { ($0.rawValue, values.counters.closed[$0] ?? 0) })
        },
        .field(
            "httpConnectionsRefused", .count, "HTTP connections and forwarded requests beyond a limit.", \.counters.httpConnectionsRefused),
        .field(
            "httpConnectionsShed", .count, "Idle HTTP connections that were closed to make room for others.", \.counters.httpConnectionsShed
        ),
        .field(
            "connectionsTurnedAway", .count, "Connections beyond a limit that were closed on arrival, too many at once to answer each.",
            \.counters.connectionsTurnedAway),
        .field("eventFeedsRefused", .count, "Subscribers of /events refused at the limit.", \.counters.eventFeedsRefused),
        .field(
            "eventFeedsBehind", .count, "Times that a subscriber fell behind the events in memory and read the store.",
            \.counters.eventFeedsBehind),
        .field("webhooksDelivered", .count, "Deliveries answered with a 2xx status.", \.counters.webhooksDelivered),
        .field("webhookAttemptsFailed", .count, "Failed attempts at deliveries.", \.counters.webhookAttemptsFailed),
        .field("webhooksGivenUp", .count, "Deliveries given up.", \.counters.webhooksGivenUp),
        .field(
            "auditLinesHeld", .count, "Failed calls without a line in the audit trail, because too many failed.", \.counters.auditLinesHeld),
        .field(
            "logLinesDropped", .count, "Log lines dropped because nobody read them or the disk was full.",
            \.logLinesDropped),
        .field("memoryUsedBytes", .count, "Bytes of media, and of what connections have sent, in memory now.", \.memory.used),
        .field("memoryLimitBytes", .count, "The limit of these bytes: the setting limits.memory.", \.memory.limit),
        .field("memoryRefusals", .count, "Publishes and plays refused because memory was used up.", \.memory.state.refusals),
        .field("memoryTrims", .count, "Times that free memory was returned to the system.", \.memory.state.trims),
        .field("memoryTrimLongestMs", .count, "The longest of these returns, in milliseconds; nothing waited longer for memory.") {
            UInt64(clamping: ($0.memory.state.longestTrimMicros + 999) / 1_000)
        },
        .field("talkMixes", .count, "Different talk mixes that have listeners now.", \.talk.mixes),
        .field("talkEncodes", .count, "Blocks of talk mixes encoded.", \.talk.totals.encodes),
        .field("talkUnderruns", .count, "Times that a talker's buffer ran empty.", \.talk.totals.underruns),
        .field("talkDroppedMs", .count, "Milliseconds of talk dropped because it came in a burst or too late.") {
            $0.talk.totals.dropped / 48
        },
        .field("talkDroppedFrames", .count, "Talk frames of a burst dropped without decoding.", \.talk.totals.skipped),
        .field("talkDamagedFrames", .count, "Talk frames that could not be decoded.", \.talk.totals.damaged),
    ]
}
