import ArgumentParser
import CommandSupport
import Support

/// `earshot webhooks`: webhooks, and what was sent to them.
struct WebhooksCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webhooks",
        abstract: "List webhooks; add, change, test, pause and remove them; list deliveries.",
        discussion: """
            A target gets events by HTTP POST, signed with a secret of its own. Targets in the server's settings are listed by \
            `earshot webhooks targets`. A URL may hold a secret: to keep it out of process lists, give - and write it to standard input. No \
            command prints it again.

            EXAMPLES
              (umask 077; earshot webhooks add back-end https://app.example.com/earshot --kind room.live --kind room.closed > secret)
              earshot webhooks test 1
              earshot webhooks change 1 --all-rooms --kind room.expired
              earshot webhooks redeliver 1 --kind room.closed
              earshot webhooks redeliver --from 2026-11-25T00:00:00Z
              earshot webhooks deliveries --state failed
              earshot webhooks deliveries redeliver 1234

            \(ExitStatus.explanation)
            """,
        subcommands: [
            List.self, Add.self, Change.self, Test.self, Pause.self, Resume.self, Redeliver.self, Remove.self, Targets.self,
            DeliveriesCommand.self,
        ],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List webhooks, the oldest first.")
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["webhooks"], things: "webhooks",
                columns: [
                    .right("ID"), .text("NAME"), .text("URL"), .left("FORMAT"), .left("STATE"), .right("WAITING"), .text("EVENTS"),
                    .text("LAST ERROR"),
                ],
                id: { $0["webhookId"].plain },
                row: { hook in
                    [
                        .init(hook["webhookId"].plain), .init(hook["name"].plain), .init(hook["url"].plain), .init(hook["format"].plain),
                        Self.state(hook), .init(hook["pending"].plain), .init(Self.events(hook)), .init(hook["lastError"].plain),
                    ]
                })
            try await listing.show(api, self.options)
        }

        private static func state(_ hook: JSONValue?) -> Table.Cell {
            if hook["isPaused"].bool == true { return .init("paused", .yellow) }
            return hook["isFailing"].bool == true ? .init("failing", .red) : .init("well", .green)
        }

        /// "room.live room.closed of acme-".
        fileprivate static func events(_ hook: JSONValue?) -> String {
            let kinds = hook["kinds"].list.compactMap(\.string).joined(separator: " ")
            let rooms = hook["rooms"].list.compactMap(\.string).joined(separator: " ")
            return (kinds.isEmpty ? "all" : kinds) + (rooms.isEmpty ? "" : " of \(rooms)")
        }
    }

    struct Add: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add a target and print its secret, which is shown only once.",
            discussion: "Only the secret goes to standard output: the target checks the signatures with it.")
        @Argument(help: ArgumentHelp("The target's name.", valueName: "NAME")) var name: String
        @Argument(help: ArgumentHelp("Where events are posted; - reads it from standard input.", valueName: "URL")) var url: String
        @Option(help: ArgumentHelp("The format of the bodies: earshot or tencent.", valueName: "FORMAT")) var format = "earshot"
        @Option(help: ArgumentHelp("Only events of this kind; may be given several times.", valueName: "KIND")) var kind: [String] = []
        @Option(
            help: ArgumentHelp("Only events of rooms whose ids begin so; may be given several times.", valueName: "PREFIX"))
        var rooms: [String] = []
        @Flag(help: "Let its deliveries wait until it is resumed.") var paused = false
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let url = self.url == "-" ? readLine() ?? "" : self.url
            let body: [String: JSONValue] = [
                "name": .string(self.name), "url": .string(url), "format": .string(self.format),
                "kinds": .array(self.kind.map(JSONValue.string)), "rooms": .array(self.rooms.map(JSONValue.string)),
                "isPaused": .bool(self.paused),
            ]
            let hook = try await api.post(["webhooks"], body)
            if self.options.json { return try Console.print(hook.indented()) }
            try Console.print(DisplayText.escaped(hook["secret"].plain ?? "-"))
            if !self.options.quiet {
                Console.complain(
                    DisplayText.escaped(
                        "webhook \(hook["webhookId"].plain ?? "-") \(self.name); keep the secret, it is not shown again"))
            }
        }
    }

    struct Change: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change a target; what is not given stays.",
            discussion: "Deliveries that wait go to the new URL. The secret stays.")
        @Argument(help: ArgumentHelp("The target's number.", valueName: "ID")) var webhook: Int64
        @Option(help: ArgumentHelp("Its new name.", valueName: "NAME")) var name: String?
        @Option(help: ArgumentHelp("Where events are posted; - reads it from standard input.", valueName: "URL")) var url: String?
        @Option(help: ArgumentHelp("Only events of this kind; may be given several times.", valueName: "KIND")) var kind: [String] = []
        @Flag(help: "Events of all kinds.") var allKinds = false
        @Option(
            help: ArgumentHelp("Only events of rooms whose ids begin so; may be given several times.", valueName: "PREFIX"))
        var rooms: [String] = []
        @Flag(help: "Events of all rooms.") var allRooms = false
        @OptionGroup var options: ServerOptions

        func validate() throws {
            guard self.kind.isEmpty || !self.allKinds else { throw ValidationError("--kind and --all-kinds exclude each other.") }
            guard self.rooms.isEmpty || !self.allRooms else { throw ValidationError("--rooms and --all-rooms exclude each other.") }
            guard self.name != nil || self.url != nil || self.allKinds || self.allRooms || !self.kind.isEmpty || !self.rooms.isEmpty else {
                throw ValidationError("Say what to change: --name, --url, --kind, --all-kinds, --rooms or --all-rooms.")
            }
        }

        func run(_ api: APIClient) async throws {
            var body: [String: JSONValue] = [:]
            if let name { body["name"] = .string(name) }
            if let url { body["url"] = .string(url == "-" ? readLine() ?? "" : url) }
            if !self.kind.isEmpty || self.allKinds { body["kinds"] = .array(self.kind.map(JSONValue.string)) }
            if !self.rooms.isEmpty || self.allRooms { body["rooms"] = .array(self.rooms.map(JSONValue.string)) }
            let id = self.webhook
            try self.options.report(try await api.patch(["webhooks", "\(id)"], body)) {
                "webhook \(id) \($0["name"].plain ?? "-") is changed: \(List.events($0)), \($0["url"].plain ?? "-")"
            }
        }
    }

    struct Test: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Send a signed test call, and show what came back.")
        @Argument(help: ArgumentHelp("The target's number.", valueName: "ID")) var webhook: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let result = try await api.post(["webhooks", "\(self.webhook)", "test"])
            if self.options.json {
                try Console.print(result.indented())
            } else if !self.options.quiet {
                var facts = Facts()
                facts.add("delivered", result["isDelivered"].plain)
                facts.add("status", result["status"].plain)
                facts.add("error", result["error"].string)
                facts.add("seconds", result["seconds"].plain)
                facts.add("answer", result["answer"].string)
                try facts.print()
            }
            guard result["isDelivered"].bool == true else {
                throw CommandFailure(.failed, "the target did not take the test call: \(DisplayText.escaped(result["error"].plain ?? "-"))")
            }
        }
    }

    struct Pause: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Let a target's deliveries wait.")
        @Argument(help: ArgumentHelp("The target's number.", valueName: "ID")) var webhook: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let id = self.webhook
            try self.options.report(try await api.post(["webhooks", "\(id)", "pause"])) { _ in "webhook \(id) is paused" }
        }
    }

    struct Resume: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Send a paused target its events again.")
        @Argument(help: ArgumentHelp("The target's number.", valueName: "ID")) var webhook: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let id = self.webhook
            try self.options.report(try await api.post(["webhooks", "\(id)", "resume"])) {
                "webhook \(id) is resumed; deliveries waiting: \($0["pending"].plain ?? "0")"
            }
        }
    }

    struct Redeliver: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Send failed deliveries again: a target's, or those of all targets.")
        @Argument(
            help: ArgumentHelp(
                "The target's number, or its id from `earshot webhooks targets`; without it all targets.", valueName: "TARGET"))
        var target: String?
        @Option(help: ArgumentHelp("Only deliveries of this kind; may be given several times.", valueName: "KIND")) var kind: [String] = []
        @Option(help: ArgumentHelp("Only deliveries of events at this time or later.", valueName: "TIME")) var from: String?
        @Option(help: ArgumentHelp("Only deliveries of events before this time.", valueName: "TIME")) var to: String?
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            var body: [String: JSONValue] = [:]
            if !self.kind.isEmpty { body["kinds"] = .array(self.kind.map(JSONValue.string)) }
            if let from { body["from"] = .string(from) }
            if let to { body["to"] = .string(to) }
            if let target { body["targetId"] = .string(Int64(target) == nil ? target : "webhook-\(target)") }
            let answer = try await api.post(["webhooks", "deliveries", "redeliver"], body)
            try self.options.report(answer) {
                let more = $0["isComplete"].bool == false ? "; there are more, repeat the command for them" : ""
                return "deliveries sent again: \($0["queued"].plain ?? "0")\(more)"
            }
        }
    }

    struct Remove: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Remove a target, and drop the deliveries that wait for it.")
        @Argument(help: ArgumentHelp("The target's number.", valueName: "ID")) var webhook: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let id = self.webhook
            try self.options.report(try await api.delete(["webhooks", "\(id)"])) {
                "webhook \(id) is removed; deliveries dropped: \($0["dropped"].plain ?? "0")"
            }
        }
    }
}
