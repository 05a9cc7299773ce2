import Delivery
import Rooms

struct StreamListAnswer: Sendable {
    let total: Int
    let next: String?
    let list: [StreamAnswer]

    static let outputType = OutputType<StreamListAnswer>.object(
        "StreamList",
        [
            .field("total", .count, "How many there are on all pages.", \.total),
            .field("next", .nullable(.text), "For `after`; null on the last page.", \.next),
            .field("list", .list(StreamAnswer.outputType), "The page.", \.list),
        ])
}

struct StreamBanListAnswer: Sendable {
    let total: Int
    let next: String?
    let list: [StreamBan]

    static let outputType = OutputType<StreamBanListAnswer>.object(
        "StreamBanList",
        [
            .field("total", .count, "How many there are on all pages.", \.total),
            .field("next", .nullable(.text), "For `after`; null on the last page.", \.next),
            .field("list", .list(StreamBan.outputType), "The page.", \.list),
        ])
}

struct PushListAnswer: Sendable {
    let next: Int64?
    let list: [PublishedPush]

    static let outputType = OutputType<PushListAnswer>.object(
        "PushList",
        [
            .field("next", .nullable(.count), "For `before`; null at the end.", \.next),
            .field("list", .list(PublishedPush.outputType), "The pushes.", \.list),
        ])
}

extension PublishedPush {
    static let outputType = OutputType<PublishedPush>.object(
        "Push",
        [
            .field("sequence", .count, "The push's number; its begin and end share it.", \.sequence),
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("roomId", .nullable(.text), "The room that it belonged to.") { $0.roomID?.rawValue },
            .field("clientAddress", .text, "Where it came from.", \.clientAddress),
            .field("startedAt", .instant, "When it was let in.", \.startedAt),
            .field("mediaAt", .nullable(.instant), "When its first media arrived.", \.mediaAt),
            .field("endedAt", .nullable(.instant), "When it ended; null while it runs.", \.endedAt),
            .field("stopReason", .nullable(.choice()), "How it ended.", \.end),
            .field("width", .nullable(.count), "Pixels.", \.width),
            .field("height", .nullable(.count), "Pixels.", \.height),
        ])
}

struct DropAnswer: Sendable {
    let wasDropped: Bool

    static let outputType = OutputType<DropAnswer>.object(
        "Drop", [.field("wasDropped", .flag, "False: there was no push.", \.wasDropped)])
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
                "arrivalJitterMs", .number, "How unevenly messages arrive: mean deviation of arrival from timestamp, in milliseconds.",
                \.arrivalJitterMs),
            .field("keyframeIntervalMs", .nullable(.count), "Between the newest two keyframes, in milliseconds.", \.keyframeIntervalMs),
            .field("viewers", .count, "Connected players.", \.viewers),
        ])
}
