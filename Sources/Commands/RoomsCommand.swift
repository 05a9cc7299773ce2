import ArgumentParser
import CommandSupport
import Support

/// `earshot rooms`: commands that show rooms.
struct RoomsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rooms",
        abstract: "List rooms, create them, end or forbid them, and get their URLs.",
        discussion: """
            A room is what an app shows its users: one or more streams, an owner, a title. It is created, becomes live with the first \
            media, is interrupted when the device drops, and in the end expires or is closed.

            EXAMPLES
              earshot rooms list --state live
              earshot rooms create --room-id demo --title "My first room"
              ffmpeg -re -i VIDEO -c copy -f flv "$(earshot rooms push-url demo --quiet)"
              earshot rooms forbid demo --for 2h --reason "until we have talked"

            \(ExitStatus.explanation)
            """,
        subcommands: [
            List.self, Show.self, Create.self, Close.self, Expire.self, Forbid.self, Resume.self, Renew.self, PushURL.self, PlayURLs.self,
            Members.self, Delete.self,
        ],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List rooms, the newest first.",
            discussion: """
                EXAMPLES
                  earshot rooms list --state live,interrupted --sort title
                  earshot rooms list --q "camera 3" --all --json
                """)

        @Option(
            help: ArgumentHelp(
                "Only rooms in one of these states, separated by commas: created, live, interrupted, forbidden, expired, closed.",
                valueName: "STATE"))
        var state: String?
        @Option(help: ArgumentHelp("Only rooms with these words in title, id or owner; the last may be incomplete.", valueName: "TEXT"))
        var q: String?
        @Option(help: ArgumentHelp("Only this user's rooms.", valueName: "USER"))
        var owner: String?
        @Flag(name: .customLong("public"), inversion: .prefixedNo, help: "Only public rooms, or only private ones.")
        var isPublic: Bool?
        @Option(help: ArgumentHelp("createdAt, title or id; -createdAt or -title for the reverse order.", valueName: "ORDER"))
        var sort: String?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let query = [
                ("state", self.state), ("q", self.q), ("owner", self.owner), ("isPublic", self.isPublic.map { $0 ? "true" : "false" }),
                ("sort", self.sort),
            ]
            let listing = Listing(
                path: ["rooms"], query: query, things: "rooms",
                columns: [
                    .left("ROOM"), .left("STATE"), .left("BECAUSE"), .right("FOR"), .right("ONLINE"), .right("PEAK"), .right("PUSHES"),
                    .text("OWNER"), .text("TITLE"),
                ],
                id: { $0["roomId"].string }, row: RoomText.row, size: ("pageSize", 200))
            try await listing.show(api, self.options, count: self.page.count)
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a room's details.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let room = try await api.get(["rooms", self.room])
            if self.options.json { return try Console.print(room.indented()) }
            if self.options.quiet { return try RoomText.printID(room) }
            try RoomText.print(room)
        }
    }

    struct Members: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List a room's members, by user id.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["rooms", self.room, "members"], things: "members",
                columns: [.left("USER"), .right("JOINED"), .right("SEEN"), .text("NICK")],
                id: { $0["userId"].string },
                row: {
                    [
                        .init($0["userId"].plain), .init(TimeText.age($0["joinedAt"])), .init(TimeText.age($0["seenAt"])),
                        .init($0["nick"].plain),
                    ]
                },
                size: ("limit", 1_000))
            try await listing.show(api, self.options, count: self.page.count)
        }
    }
}

/// Formats rooms as text.
enum RoomText {
    static func row(_ room: JSONValue) -> [Table.Cell] {
        let streams = room["streams"].list
        let active = streams.count { $0["isActive"].bool == true }
        return [
            .init(room["roomId"].plain), self.state(room["state"]), .init(self.reason(room)), .init(TimeText.age(self.since(room))),
            .init(room["online"].plain), .init(room["peak"].plain), .init("\(active)/\(streams.count)"), .init(room["owner"].plain),
            .init(room["title"].plain),
        ]
    }

    /// The state in traffic light colours.
    static func state(_ state: JSONValue?) -> Table.Cell {
        let colour: Table.Colour? =
            switch state.string {
            case "live": .green
            case "interrupted": .yellow
            case "forbidden": .red
            case "expired", "closed": .dim
            default: nil
            }
        return .init(state.plain, colour)
    }

    /// The reason for the state; nil when it is the same word.
    private static func reason(_ room: JSONValue?) -> String? {
        room["stateReason"] == room["state"] ? nil : room["stateReason"].plain
    }

    /// The start of the current state. The API's `since` keeps counting from when the room became live.
    private static func since(_ room: JSONValue?) -> JSONValue? {
        switch room["state"].string {
        case "interrupted": room["interruptedAt"]
        case "expired", "closed": room["endedAt"]
        // The API does not report it.
        case "forbidden": nil
        default: room["since"]
        }
    }

    static func printID(_ room: JSONValue?) throws {
        if let id = room["roomId"].string { try Console.print(DisplayText.escaped(id)) }
    }

    static func print(_ room: JSONValue?) throws {
        var facts = Facts()
        func text(_ key: String) -> String { room[key].plain ?? "-" }
        facts.add("room", text("roomId") + (room["instance"].integer.map { $0 > 1 ? ", instance \($0) of this id" : "" } ?? ""))
        let state = text("state") + (self.reason(room).map { " (\($0))" } ?? "")
        facts.add("state", state + (TimeText.age(self.since(room)).map { ", for \($0)" } ?? ""))
        facts.add("title", room["title"].string)
        facts.add("owner", room["owner"].string)
        facts.add("device", room["deviceUid"].string)
        let flags = [room["isPublic"].bool == false ? "private" : "public", room["isAdHoc"].bool == true ? "made by a push" : nil]
        facts.add("kind", flags.compactMap { $0 }.joined(separator: ", "))
        facts.add("people", "\(text("online")) online, \(text("peak")) at most, \(text("members")) members, \(text("likes")) likes")
        facts.add("created", time: room["createdAt"])
        facts.add("live since", time: room["liveSince"])
        facts.add("interrupted", time: room["interruptedAt"])
        facts.add("ended", time: room["endedAt"])
        facts.add("forbidden until", time: room["forbiddenUntil"])
        facts.add("forbidden for", room["forbidReason"].string)
        let deadline = self.deadlines[room["expiresReason"].string ?? ""] ?? "next deadline"
        facts.add(deadline, time: room["expiresAt"])
        facts.add("policy", self.policy(room["policy"]))
        if let custom = room["custom"], !custom.fields.isEmpty { facts.add("custom", custom.text) }
        for (scheme, url) in room["playUrls"].fields { facts.add("play \(scheme)", url.string) }
        try facts.print()
        var table = Table([.right("SLOT"), .left("STREAM"), .left("PUSH"), .right("SEQUENCE"), .right("VIEWERS")])
        for stream in room["streams"].list {
            let push: Table.Cell =
                stream["isForbidden"].bool == true
                ? .init("forbidden", .red) : stream["isActive"].bool == true ? .init("active", .green) : .init("none")
            table.add([
                .init(stream["slot"].plain), .init("\(stream["app"].plain ?? "-")/\(stream["name"].plain ?? "-")"), push,
                .init(stream["sequence"].plain), .init(stream["viewers"].plain),
            ])
        }
        if !table.rows.isEmpty { try Console.print("") }
        for line in table.lines(width: Console.width, colour: Console.usesColour) { try Console.print(line) }
    }

    /// The effect of the next deadline, by its reason.
    private static let deadlines = [
        "neverStarted": "expires", "graceOver": "expires", "maxDuration": "expires", "heartbeatLost": "expires (heartbeats)",
        "ownerOffline": "expires (owner away)", "ownerAway": "owner away", "resumeTime": "ban ends", "retention": "forgotten",
    ]

    private static func policy(_ policy: JSONValue?) -> String {
        policy.fields.map { name, value in
            let isCount = name == "heartbeatMisses"
            return "\(name)=\((isCount ? nil : TimeText.exactDuration(seconds: value)) ?? value.plain ?? "-")"
        }.joined(separator: " ")
    }
}
