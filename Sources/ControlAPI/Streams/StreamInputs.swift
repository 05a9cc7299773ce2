import Access
import HTTPAPI
import Rooms
import Support

/// Inputs of the stream calls.
enum StreamInputs {
    static let app = Input("app", .streamApp, "The app.").required
    static let name = Input("name", .streamName, "The stream's name under the app; write a slash in it as %2F.").required
    static let path: [any RequestInput] = [Self.app, Self.name]

    static let appFilter = Input("app", .streamApp, "Only streams of this app.")
    static let nameFilter = Input("name", .streamName, "Only streams of this name; needs app.")
    static let state = Input("state", .choice() as InputType<StreamAnswer.State>, "Only streams in this state.")
    static let streams = Input(
        "streams", .streamPaths(atMost: 100), "Only these streams, as app/name, each by its own name or by its device's.")
    static let sort = Input(
        "sort", .choice() as InputType<StreamListing.Order>,
        "The order; viewers: most first. verdict: interrupted streams first, then the worst.", fallback: .name)
    static let after = Input("after", .sought(length: 1...StreamBan.longestCursor), "The `next` of the previous page.")
    static let limit = Input("limit", .whole(1...1_000), "The maximum number of entries.", fallback: 100)
    static let action = Input("action", .choice() as InputType<AdmissionRequest.Action>, "Only these: publish or play.")
    static let from = Input("from", .instant, "Only pushes that began at this time or later.")
    static let to = Input("to", .instant, "Only pushes that began before this time.")
    static let before = Input("before", .whole(1...Int64.max), "The `next` of the previous page.")
    static let minutes = Input("seconds", .whole(1...600), "How many seconds back from now.", fallback: 120)
}
