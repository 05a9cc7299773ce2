import ArgumentParser
import CommandSupport
import Rooms
import Support

/// `earshot rooms`: commands that change rooms.
extension RoomsCommand {
    struct Create: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a room; it becomes live when media arrives.",
            discussion: """
                Give times of the policy with their unit. What is not given comes from the server's settings: `earshot config print` \
                lists them under rooms.policy.

                EXAMPLES
                  earshot rooms create --title "Front door" --device cam42
                  earshot rooms create --room-id stage --slots 2 --owner anna --policy grace=60s --policy maxDuration=2h
                  earshot rooms create --room-id walk --policy record=always
                """)

        @Option(
            name: .option(.roomID),
            help: ArgumentHelp("1 to 64 characters of A-Z a-z 0-9 _ -. (default: a random id)", valueName: "ID"))
        var id: String?
        @Option(help: ArgumentHelp("The title that lists show.", valueName: "TEXT"))
        var title: String?
        @Option(help: ArgumentHelp("The owner's user id.", valueName: "USER"))
        var owner: String?
        @Option(
            name: .option(.deviceUID),
            help: ArgumentHelp("The device that pushes the room's first stream.", valueName: "UID"))
        var device: String?
        @Option(help: ArgumentHelp("The number of the room's streams. (default: 1)", valueName: "N"))
        var slots: Int?
        @Option(help: ArgumentHelp("The app of its streams. (default: live)", valueName: "NAME"))
        var app: String?
        @Flag(name: .customLong("private"), help: "Mark the room as private: not for public lists.")
        var isPrivate = false
        @Option(help: ArgumentHelp("The app's own data about the room: a JSON object.", valueName: "JSON"))
        var custom: String?
        @Option(help: ArgumentHelp("A setting of its policy, such as grace=60s; may be repeated.", valueName: "NAME=VALUE"))
        var policy: [PolicyOption] = []
        @OptionGroup var options: ServerOptions

        func validate() throws { _ = try self.customObject() }

        private func customObject() throws -> JSONValue? {
            guard let custom else { return nil }
            guard let value = try? JSONValue.answer(custom.utf8), case .object = value else {
                throw ValidationError("--custom is not a JSON object; expected something like '{\"colour\":\"red\"}'.")
            }
            return value
        }

        func run(_ api: APIClient) async throws {
            var body: [String: JSONValue] = [:]
            body["roomId"] = self.id.map(JSONValue.string)
            body["title"] = self.title.map(JSONValue.string)
            body["owner"] = self.owner.map(JSONValue.string)
            body["deviceUid"] = self.device.map(JSONValue.string)
            body["slots"] = self.slots.map { .integer(Int64($0)) }
            body["app"] = self.app.map(JSONValue.string)
            if self.isPrivate { body["isPublic"] = false }
            body["custom"] = try self.customObject()
            if !self.policy.isEmpty {
                body["policy"] = .of(Dictionary(self.policy.map { ($0.name, $0.value) }) { $1 })
            }
            let room = try await api.post(["rooms"], body)
            if self.options.json { return try Console.print(room.indented()) }
            // The server may have chosen the id: print it as the answer.
            try RoomText.printID(room)
            guard !self.options.quiet, let id = room["roomId"].string.map(DisplayText.escaped) else { return }
            Console.complain(
                "room \(id) is \(room["state"].plain.map(DisplayText.escaped) ?? "-"); `earshot rooms push-url \(id)` prints its push URL")
        }
    }

    struct Close: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "End a room for good, also an expired one: cut its pushes and end its viewers' streams.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            try self.options.report(try await api.post(["rooms", self.room, "close"])) { RoomText.sentence($0) }
        }
    }

    struct Expire: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "End a room as if its time were over; the next valid push opens it again.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            try self.options.report(try await api.post(["rooms", self.room, "expire"])) { RoomText.sentence($0) }
        }
    }

    struct Forbid: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cut a room's pushes, and refuse pushes and plays for a time.",
            discussion: """
                An expired room can be forbidden too: otherwise its device's URL would open it again.

                EXAMPLES
                  earshot rooms forbid demo --for 12h
                  earshot rooms forbid demo --forbidden-until 2026-12-24T18:00Z --reason "not before Christmas"
                """)
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var ban: BanOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            try self.options.report(try await api.post(["rooms", self.room, "forbid"], self.ban.body)) { RoomText.sentence($0) }
        }
    }

    struct Resume: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Lift a room's ban: it can be pushed and played again.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            try self.options.report(try await api.post(["rooms", self.room, "resume"])) { RoomText.sentence($0) }
        }
    }

    struct Renew: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give a room more time.",
            discussion: "If another deadline comes first, such as that of missed heartbeats, the command says so.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @Option(help: ArgumentHelp("The time to add. (default: the countdown starts again)", valueName: "TIME"))
        var by: Span?
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            var body: [String: JSONValue] = [:]
            body["seconds"] = self.by?.json
            try self.options.report(try await api.post(["rooms", self.room, "renew"], body)) { room in
                RoomText.sentence(room) + Self.deadline(room)
            }
        }

        /// The renewed deadline, and an earlier one if there is any.
        static func deadline(_ room: JSONValue?) -> String {
            func when(_ time: JSONValue?) -> String? {
                time.string.map { "\(TimeText.short($0))\(TimeText.relative($0).map { " (\($0))" } ?? "")" }
            }
            let renewed = when(room["renewedUntil"]).map { "; renewed until \($0)" } ?? ""
            guard let next = when(room["expiresAt"]), room["expiresAt"] != room["renewedUntil"] else { return renewed }
            let reason = room["expiresReason"].string
            let why = reason.flatMap { Self.reasons[$0] } ?? reason ?? "next deadline"
            return "\(renewed), but before that \(next): \(why)"
        }

        private static let reasons = [
            "heartbeatLost": "the room ends for lack of heartbeats (heartbeatLost)",
            "ownerAway": "the owner counts as away for lack of heartbeats (ownerAway)",
            "ownerOffline": "the room ends because its owner is away (ownerOffline)",
            "maxDuration": "the room reaches its maximum duration (maxDuration)",
        ]
    }

    struct Delete: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Close a room if it is open, and forget it; its id is free at once.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let room = self.room
            try self.options.report(try await api.delete(["rooms", room])) { _ in "room \(room) is deleted" }
        }
    }
}

extension RoomText {
    /// "room r1 is forbidden until 2026-11-28T10:00:00Z".
    static func sentence(_ room: JSONValue?) -> String {
        let until = room["state"].string == "forbidden" ? room["forbiddenUntil"].string.map { " until \(TimeText.short($0))" } : nil
        return "room \(room["roomId"].plain ?? "-") is \(room["state"].plain ?? "-")\(until ?? "")"
    }
}

/// One setting of a room's policy: `grace=60s`, `heartbeatMisses=5`, `record=always`.
struct PolicyOption: ExpressibleByArgument {
    let name: String
    let value: JSONValue

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts[0].isEmpty else { return nil }
        self.name = parts[0]
        // A number without a unit counts seconds, as in the API.
        if let number = Int64(parts[1]) {
            self.value = .integer(number)
        } else if let span = Span(argument: parts[1]) {
            self.value = span.json
        } else if case .words? = RoomPolicy.fields.first(where: { $0.name == parts[0] })?.kind, !parts[1].isEmpty {
            self.value = .string(parts[1])
        } else {
            return nil
        }
    }
}

/// The length of a ban, and its reason.
struct BanOptions: ParsableArguments {
    @Option(name: .customLong("for"), help: ArgumentHelp("The length of the ban, at most 90d. (default: 7d)", valueName: "TIME"))
    var duration: Span?
    @Option(
        name: .option(.forbiddenUntil),
        help: ArgumentHelp("The end of the ban, such as 2026-12-24T18:00Z; without a zone, UTC.", valueName: "WHEN"))
    var until: Moment?
    @Option(help: ArgumentHelp("The reason, which refused clients get to see.", valueName: "TEXT"))
    var reason: String?

    func validate() throws {
        guard self.duration == nil || self.until == nil else { throw ValidationError("--for and --forbidden-until exclude each other.") }
    }

    var body: [String: JSONValue] {
        var body: [String: JSONValue] = [:]
        body["seconds"] = self.duration?.json
        body["forbiddenUntil"] = (self.until?.description).map(JSONValue.string)
        body["reason"] = self.reason.map(JSONValue.string)
        return body
    }
}

extension ServerOptions {
    /// Prints a change's result: the sentence, the answer's data with --json, nothing with --quiet.
    func report(_ data: JSONValue, _ sentence: (JSONValue) -> String) throws {
        if self.json {
            try Console.print(data.indented())
        } else if !self.quiet {
            try Console.print(DisplayText.escaped(sentence(data)))
        }
    }
}
