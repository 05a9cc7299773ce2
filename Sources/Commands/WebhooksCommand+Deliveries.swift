import ArgumentParser
import CommandSupport
import Support

/// `earshot webhooks deliveries`: events sent to webhooks, one by one.
struct DeliveriesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deliveries",
        abstract: "List the deliveries of webhooks, and send single ones again.",
        subcommands: [List.self, Redeliver.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List deliveries, the newest first.")
        @Option(help: ArgumentHelp("Only those in this state: pending, delivered, failed.", valueName: "STATE"))
        var state: String?
        @Option(name: .option(.roomID), help: ArgumentHelp("Only those of this room.", valueName: "ID"))
        var room: String?
        @Option(help: ArgumentHelp("Only those to this target: an id from `earshot webhooks targets`.", valueName: "TARGET"))
        var targetId: String?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["webhooks", "deliveries"], query: [("state", self.state), ("roomId", self.room), ("targetId", self.targetId)],
                things: "deliveries",
                columns: [
                    .right("ID"), .left("STATE"), .left("EVENT"), .left("ROOM"), .left("AT"), .right("TRIES"), .right("STATUS"),
                    .right("NEXT"),
                    .text("TO"), .text("LAST ERROR"),
                ],
                id: { $0["deliveryId"].plain }, row: Self.row, size: ("limit", 1_000), cursor: "before")
            try await listing.show(api, self.options, count: self.page.count)
        }

        private static func row(_ delivery: JSONValue) -> [Table.Cell] {
            let event = delivery["event"]
            let colour: Table.Colour? =
                switch delivery["state"].string {
                case "delivered": .green
                case "failed": .red
                case "pending": .yellow
                default: nil
                }
            return [
                .init(delivery["deliveryId"].plain), .init(delivery["state"].plain, colour), .init(event["kind"].plain),
                .init(event["roomId"].plain), .init(event["at"].string.map(TimeText.short)), .init(delivery["attempts"].plain),
                .init(delivery["lastStatus"].plain), .init(delivery["dueAt"].string.flatMap(TimeText.relative)),
                .init([delivery["targetId"].plain, delivery["url"].plain].compactMap { $0 }.joined(separator: " ")),
                .init(delivery["lastError"].plain),
            ]
        }
    }

    struct Redeliver: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Send an event again, with the same idempotency key.")
        @Argument(help: ArgumentHelp("The delivery's number, as in the list.", valueName: "ID")) var delivery: UInt64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let delivery = try await api.post(["webhooks", "deliveries", "\(self.delivery)", "redeliver"])
            try self.options.report(delivery) {
                "delivery \(self.delivery) is \($0["state"].plain ?? "-"), to \($0["targetId"].plain ?? "-")"
            }
        }
    }
}

extension WebhooksCommand {
    struct Targets: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the targets of webhooks, and show which are failing.",
            discussion:
                "Deliveries name them by the same ids. An id is derived from the target's URL, of which only the beginning is shown.")
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["webhooks", "targets"], things: "webhooks in the server's settings",
                columns: [
                    .left("TARGET"), .text("URL"), .left("STATE"), .right("FOR"), .right("WAITING"), .right("FAILED"), .right("GIVEN UP"),
                    .text("LAST ERROR"),
                ],
                id: { $0["targetId"].plain },
                row: { target in
                    let isFailing = target["isFailing"].bool == true
                    return [
                        .init(target["targetId"].plain), .init(target["url"].plain),
                        isFailing ? .init("failing", .red) : .init("well", .green), .init(TimeText.age(target["failingSince"])),
                        .init(target["pending"].plain),
                        .init(isFailing ? target["failedAttempts"].plain : nil), .init(isFailing ? target["givenUp"].plain : nil),
                        .init(target["lastError"].plain),
                    ]
                })
            try await listing.show(api, self.options)
        }
    }
}
