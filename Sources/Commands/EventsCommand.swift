import ArgumentParser
import CommandSupport
import LibC
import NIOCore
import NIOPosix
import Support

/// `earshot events`: past and current events.
struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Follow events as they happen, or list past ones.",
        discussion: """
            Events are numbered in ascending order, and no number is used twice; --after NUMBER continues after that event.

            EXAMPLES
              earshot events follow
              earshot events follow --room-id r1 --json | jq .kind
              earshot events follow --kinds room.live,room.expired
              earshot events list --after 1200

            \(ExitStatus.explanation)
            """,
        subcommands: [Follow.self, List.self])

    struct Follow: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print events as they happen, a line each, until Ctrl-C.",
            discussion: """
                After a lost connection the command reconnects; no event is missed or printed twice. Notes about that go to standard \
                error.
                """)
        @Option(name: .option(.roomID), help: ArgumentHelp("Only events of this room.", valueName: "ID"))
        var room: String?
        @OptionGroup var kinds: KindOptions
        @Option(
            help: ArgumentHelp(
                "Start after this event; 0: with the oldest that is kept. (default: with new events)", valueName: "NUMBER"))
        var after: UInt64?
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            // Lines are written at once, so a sudden exit loses nothing.
            for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(0) } }
            MultiThreadedEventLoopGroup.singleton.any().scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
                if Console.isReaderGone { _exit(0) }
            }
            var feed = EventFeed(api, room: self.room, kinds: self.kinds.kinds, after: self.after.map { Int64(clamping: $0) })
            let options = self.options
            try await feed.follow { event in
                if options.json {
                    try Console.print(event.text)
                } else if options.quiet {
                    try Console.print(event["id"].plain ?? "-")
                } else {
                    try Console.print(EventText.line(event))
                }
            }
        }
    }

    /// Which events are shown, as the server's feed and list take it.
    struct KindOptions: ParsableArguments {
        @Option(help: ArgumentHelp("Only events of these kinds, separated by commas: room.live,room.expired.", valueName: "KINDS"))
        var kinds: String?
    }

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List events, the oldest first.")
        @Option(name: .option(.roomID), help: ArgumentHelp("Only events of this room.", valueName: "ID"))
        var room: String?
        @OptionGroup var kinds: KindOptions
        @Option(help: ArgumentHelp("Start after this event. (default: with the oldest that is kept)", valueName: "NUMBER"))
        var after: UInt64?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["events"], query: [("roomId", self.room), ("kinds", self.kinds.kinds)], things: "events",
                columns: [.right("ID"), .left("TIME"), .left("EVENT"), .left("ROOM"), .text("DATA")],
                id: { $0["id"].plain }, row: EventText.row, size: ("limit", 1_000), first: self.after.map { "\($0)" })
            try await listing.show(api, self.options, count: self.page.count)
        }
    }
}

/// Events as text.
enum EventText {
    static func row(_ event: JSONValue?) -> [Table.Cell] {
        [
            .init(event["id"].plain), .init(event["at"].string), .init(self.kind(event), self.colour(event)), .init(event["roomId"].plain),
            .init(self.data(event["data"])),
        ]
    }

    /// "2026-11-21T10:00:00.000Z #17 room.live r1 reason=media"
    static func line(_ event: JSONValue?) -> String {
        let cells = self.row(event)
        func pad(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }
        let kind = pad(cells[2].text, 17)
        let painted = if Console.usesColour, let colour = cells[2].colour { "\u{1B}[\(colour.rawValue)m\(kind)\u{1B}[0m" } else { kind }
        let data = cells[4].text == "-" ? "" : "  \(cells[4].text)"
        return "\(cells[1].text) \(pad("#" + cells[0].text, 6)) \(painted) \(cells[3].text)\(data)"
    }

    /// The event's kind, such as "room.live"; a feed message's `type` is always "event".
    private static func kind(_ event: JSONValue?) -> String? { event["kind"].string }

    private static func colour(_ event: JSONValue?) -> Table.Colour? {
        switch self.kind(event) {
        case "room.live", "room.resumed": .green
        case "room.interrupted", "stream.health": .yellow
        case "room.forbidden", "stream.forbidden": .red
        case "room.expired", "room.closed", "room.deleted": .dim
        default: nil
        }
    }

    /// `reason=media stream=live/r1 by=publisher`: the useful data not shown elsewhere in the line. JSON has everything.
    private static func data(_ data: JSONValue?) -> String {
        var parts: [(String, String?)] = [("reason", data["reason"].plain), ("stream", StreamText.path(data))]
        if let duration = data["durationMs"].number {
            parts.append(("lasted", TimeText.duration(seconds: .number(duration / 1_000))))
        }
        for field in data.fields where !Self.elsewhere.contains(field.name) {
            switch field.value {
            case .null, .object, .array, .string(""): break
            case .string(let text) where text.contains(where: { $0 == " " || $0 == "\"" }): parts.append((field.name, field.value.text))
            default: parts.append((field.name, field.value.plain))
            }
        }
        parts.append(("by", data["by"].plain))
        return parts.compactMap { name, value in value.map { "\(name)=\($0)" } }.joined(separator: " ")
    }

    private static let elsewhere: Set<String> = [
        "reason", "app", "name", "durationMs", "by", "state", "from", "instance", "slot", "parameters", "code",
    ]
}
