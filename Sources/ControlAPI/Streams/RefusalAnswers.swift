import Access
import HTTPAPI
import Rooms
import Streaming

struct RefusalListAnswer: Sendable {
    let list: [RecentRefusals.Entry]

    static let outputType = OutputType<RefusalListAnswer>.object(
        "RefusalList", [.field("list", .list(RecentRefusals.Entry.outputType), "The refusals.", \.list)])
}

extension RecentRefusals.Entry {
    static let outputType = OutputType<RecentRefusals.Entry>.object(
        "Refusal",
        [
            .field("action", .choice(), "What the client wanted: to publish or to play.", \.action),
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("reason", .choice(), "Why it was refused.", \.reason),
            .field("message", .text, "The message that the client got, a sentence.", \.message),
            .field("clientAddress", .text, "The client's address.", \.address),
            .field("count", .count, "How often.", \.count),
            .field("firstAt", .instant, "The first time.", \.firstAt),
            .field("lastAt", .instant, "The last time.", \.lastAt),
        ])
}
