import ArgumentParser
import CommandSupport
import Support

/// `earshot callbacks`: notices to webhooks.
struct CallbacksCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "callbacks",
        abstract: "List notices to webhooks, and send them again.",
        discussion: """
            EXAMPLES
              earshot callbacks list --state failed
              earshot callbacks targets
              earshot callbacks redeliver 1234

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Targets.self, Redeliver.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List notices to webhooks, the newest first.")
        @Option(help: ArgumentHelp("Only those in this state: pending, delivered, failed.", valueName: "STATE"))
        var state: String?
        @Option(name: .option(.roomID), help: ArgumentHelp("Only those of this room.", valueName: "ID"))
        var room: String?
        @Option(help: ArgumentHelp("Only those to this target: an id from `earshot callbacks targets`.", valueName: "TARGET"))
        var targetId: String?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["callbacks"], query: [("state", self.state), ("roomId", self.room), ("targetId", self.targetId)],
                things: "callbacks",
                columns: [
                    .right("ID"), .left("STATE"), .left("EVENT"), .left("ROOM"), .left("AT"), .right("TRIES"), .right("STATUS"),
                    .right("NEXT"),
                    .text("TO"), .text("LAST ERROR"),
                ],
                id: { $0["callbackId"].plain }, row: Self.row, size: ("limit", 1_000), cursor: "before")
            try await listing.show(api, self.options, count: self.page.count)
        }

        private static func row(_ notice: JSONValue) -> [Table.Cell] {
            let event = notice["event"]
            let colour: Table.Colour? =
                switch notice["state"].string {
                case "delivered": .green
                case "failed": .red
                case "pending": .yellow
                default: nil
                }
            return [
                .init(notice["callbackId"].plain), .init(notice["state"].plain, colour), .init(event["kind"].plain),
                .init(event["roomId"].plain), .init(event["at"].string.map(TimeText.short)), .init(notice["attempts"].plain),
                .init(notice["lastStatus"].plain), .init(notice["dueAt"].string.flatMap(TimeText.relative)),
                .init([notice["targetId"].plain, notice["url"].plain].compactMap { $0 }.joined(separator: " ")),
                .init(notice["lastError"].plain),
            ]
        }
    }

    struct Targets: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the targets of webhooks, and show which are failing.",
            discussion: "The log uses the same ids. An id is derived from the target's URL, of which only the beginning is shown.")
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["callbacks", "targets"], things: "webhook targets in the server's settings",
                columns: [
                    .left("TARGET"), .text("URL"), .left("STATE"), .right("FOR"), .right("FAILED"), .right("GIVEN UP"), .text("LAST ERROR"),
                ],
                id: { $0["targetId"].plain },
                row: { target in
                    let isFailing = target["isFailing"].bool == true
                    return [
                        .init(target["targetId"].plain), .init(target["url"].plain),
                        isFailing ? .init("failing", .red) : .init("well", .green), .init(TimeText.age(target["failingSince"])),
                        .init(isFailing ? target["failedAttempts"].plain : nil), .init(isFailing ? target["givenUp"].plain : nil),
                        .init(target["lastError"].plain),
                    ]
                })
            try await listing.show(api, self.options)
        }
    }

    struct Redeliver: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Send a notice again, with the same idempotency key.")
        @Argument(help: ArgumentHelp("The notice's number, as in the list.", valueName: "ID")) var callback: UInt64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let notice = try await api.post(["callbacks", "\(self.callback)", "redeliver"])
            try self.options.report(notice) {
                "callback \(self.callback) is \($0["state"].plain ?? "-"), to \($0["targetId"].plain ?? "-")"
            }
        }
    }
}
