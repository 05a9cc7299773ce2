import HTTPAPI
import Streaming
import Trace

extension TraceReport {
    static let outputType = OutputType<TraceReport>.object(
        "SessionTrace",
        [
            .field("sessionId", .count, "The connection's number.", \.id),
            .field("endedAt", .nullable(.instant), "When the connection ended; null while it goes on.", \.endedMs),
            .field("reason", .nullable(.text), "Why it ended; null while it goes on.", \.reason),
            .field("entries", .list(Line.outputType), "What happened, oldest first.", \.lines),
        ])
}

extension TraceReport.Line {
    static let outputType = OutputType<TraceReport.Line>.object(
        "SessionTraceEntry",
        [
            .field("at", .instant, "When it happened.", \.timeMs),
            .field("agoMs", .count, "Milliseconds before this answer.", \.agoMs),
            .field(
                "direction", .words(TraceDirection.allCases.map(\.word)),
                "Whether the server received or sent it; `here` for what happened in the server.", \.entry.direction.word),
            .field(
                "kind", .words(TraceKind.allCases.map(\.word)),
                """
                `command` and `control`: RTMP's messages of these kinds. `message`: the header of another one, mostly media. `request`: HTTP. \
                `frame`: a WebSocket control frame. `state`: a change of the session.
                """, \.entry.kind.word),
            .field("name", .text, "The command, kind of message, method or state.", \.entry.name),
            .field("text", .text, "Arguments and details. Credentials and other values of clients are left out.", \.entry.text),
            .field("messageStreamId", .nullable(.count), "RTMP's message stream.") { $0.entry.streamID.map(Int.init) },
            .field("transactionId", .nullable(.count), "A command's transaction.") { $0.entry.transaction.map(Int.init) },
            .field("message", .nullable(TracedHeader.outputType), "A message's header.", \.entry.header),
        ])
}

extension TracedHeader {
    static let outputType = OutputType<TracedHeader>.object(
        "SessionTraceMessage",
        [
            .field("type", .count, "RTMP's message type id.") { Int($0.type) },
            .field("timestampMs", .count, "The message's timestamp.") { Int($0.timestamp) },
            .field("bytes", .count, "Bytes of payload.") { Int($0.length) },
            .field("keyframe", .flag, "Whether pictures can be decoded from it on.") { $0.flags.contains(.keyframe) },
            .field("sequenceHeader", .flag, "Whether it has a codec's configuration.") { $0.flags.contains(.sequenceHeader) },
            .field("flags", .list(.text), "All flags of the media in it.", \.flagNames),
        ])
}
