import HTTPAPI
import Rooms
import Streaming

struct StreamListAnswer: Sendable {
    let total: Int
    let next: String?
    let list: [StreamAnswer]

    static let outputType = OutputType<StreamListAnswer>.object(
        "StreamList",
        [
            .field("total", .count, "The number of streams on all pages.", \.total),
            .field("next", .nullable(.text), "Pass it as `after` to get the next page; null on the last page.", \.next),
            .field("list", .list(StreamAnswer.outputType), "The streams of this page.", \.list),
        ])
}

struct StreamBanListAnswer: Sendable {
    let total: Int
    let next: String?
    let list: [StreamBan]

    static let outputType = OutputType<StreamBanListAnswer>.object(
        "StreamBanList",
        [
            .field("total", .count, "The number of bans on all pages.", \.total),
            .field("next", .nullable(.text), "Pass it as `after` to get the next page; null on the last page.", \.next),
            .field("list", .list(StreamBan.outputType), "The bans of this page.", \.list),
        ])
}

struct PushListAnswer: Sendable {
    let next: Int64?
    let list: [StoredPush]

    static let outputType = OutputType<PushListAnswer>.object(
        "PushList",
        [
            .field("next", .nullable(.count), "Pass it as `before` to get the next page; null at the end.", \.next),
            .field("list", .list(StoredPush.outputType), "The pushes.", \.list),
        ])
}

extension StoredPush {
    static let outputType = OutputType<StoredPush>.object(
        "Push",
        [
            .field("sequence", .count, "The push's number, the same in its stream.begin and stream.end events.", \.sequence),
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("roomId", .nullable(.text), "The room that the stream belonged to.") { $0.roomID.rawValue },
            .field("clientAddress", .text, "The publisher's address.", \.clientAddress),
            .field("startedAt", .instant, "When the push was admitted.", \.startedAt),
            .field("mediaAt", .nullable(.instant), "When the first media arrived.", \.mediaAt),
            .field("endedAt", .nullable(.instant), "When the push ended; null while it is running.", \.endedAt),
            .field("stopReason", .nullable(.choice()), "Why the push ended; null while it is running.", \.end),
            .field("width", .nullable(.count), "Pixels.", \.media.width),
            .field("height", .nullable(.count), "Pixels.", \.media.height),
        ])
}

struct DropAnswer: Sendable {
    let wasDropped: Bool

    static let outputType = OutputType<DropAnswer>.object(
        "Drop", [.field("wasDropped", .flag, "Whether there was a push to end.", \.wasDropped)])
}

struct StreamStatsAnswer: Sendable {
    let path: StreamPath
    let seconds: [StreamSecond]

    static let outputType = OutputType<StreamStatsAnswer>.object(
        "StreamStats",
        [
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("list", .list(StreamSecond.outputType), "One entry a second, oldest first.", \.seconds),
        ])
}

extension StreamSecond {
    static let outputType = OutputType<StreamSecond>.object(
        "StreamSecond",
        [
            .field("at", .instant, "The second's end.", \.at),
            .field("videoBitsPerSecond", .count, "Bit rate of the video.", \.videoBitsPerSecond),
            .field("audioBitsPerSecond", .count, "Bit rate of the audio.", \.audioBitsPerSecond),
            .field("fps", .number, "Frames per second.", \.framesPerSecond),
            .field(
                "arrivalJitterMs", .number, "Jitter of message arrival: mean deviation of arrival from timestamp, in milliseconds.",
                \.arrivalJitterMs),
            .field("keyframeIntervalMs", .nullable(.count), "Milliseconds between the newest two keyframes.", \.keyframeIntervalMs),
            .field("viewers", .count, "Connected players.", \.viewers),
        ])
}
