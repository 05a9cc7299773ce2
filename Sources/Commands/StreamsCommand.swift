import ArgumentParser
import CommandSupport
import Support

/// `earshot streams`: shows streams; drops and forbids pushes.
struct StreamsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "streams",
        abstract: "List streams with their figures; drop or forbid their pushes.",
        discussion: """
            A stream is what a device pushes, under APP/NAME. The first stream of room r1 is live/r1, the second live/r1-2.

            EXAMPLES
              earshot streams list
              earshot streams why live/r1             how it does, and what to do
              earshot streams stats live/r1
              earshot streams drop live/r1            the device may push again at once
              earshot streams forbid live/r1 --for 1h
              earshot streams refused                 who was not let in lately, and why

            \(ExitStatus.explanation)
            """,
        subcommands: [
            List.self, Show.self, Why.self, Stats.self, Drop.self, Forbid.self, Resume.self, Forbidden.self, Refused.self,
            Published.self,
        ],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List the streams that somebody pushes or plays.")
        @Option(help: ArgumentHelp("Only streams in this state: live, interrupted, waiting.", valueName: "STATE"))
        var state: String?
        @Option(help: ArgumentHelp("Only streams of this app.", valueName: "NAME"))
        var app: String?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["streams"], query: [("state", self.state), ("app", self.app)], things: "streams",
                columns: [
                    .left("STREAM"), .left("STATE"), .left("HEALTH"), .right("FOR"), .right("VIEWERS"), .left("VIDEO"), .left("SIZE"),
                    .right("FPS"),
                    .left("AUDIO"), .right("BIT RATE"), .text("FROM"), .text("ROOM"),
                ],
                id: StreamText.path, row: StreamText.row, size: ("limit", 1_000))
            try await listing.show(api, self.options, count: self.page.count)
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a stream's state, even if nobody pushes or plays it.")
        @Argument(help: ArgumentHelp("The stream.", valueName: "APP/NAME")) var stream: StreamArgument
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let state = try await api.get(self.stream.segments)
            if self.options.json { return try Console.print(state.indented()) }
            if self.options.quiet { return try Console.print(self.stream.description) }
            try StreamText.print(state)
        }
    }

    struct Stats: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a stream's last minutes, second by second.",
            discussion: "JITTER shows how unevenly the device's messages arrive; KEYFRAME is the time between the last two keyframes.")
        @Argument(help: ArgumentHelp("The stream.", valueName: "APP/NAME")) var stream: StreamArgument
        @Option(help: ArgumentHelp("How far back, at most 10m.", valueName: "TIME"))
        var last = Span(seconds: 60)
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: self.stream.segments + ["stats"], query: [("seconds", "\(max(1, self.last.milliseconds / 1_000))")],
                things: "figures yet",
                columns: [
                    .left("TIME"), .right("VIDEO"), .right("AUDIO"), .right("FPS"), .right("JITTER"), .right("KEYFRAME"), .right("VIEWERS"),
                ],
                id: { $0["at"].string },
                row: { second in
                    [
                        .init(second["at"].string.map(TimeText.short)), .init(HumanUnits.bitRate(second["videoBitsPerSecond"].integer)),
                        .init(HumanUnits.bitRate(second["audioBitsPerSecond"].integer)),
                        .init(HumanUnits.decimal(second["fps"].number, digits: 1)),
                        .init(HumanUnits.decimal(second["arrivalJitterMs"].number, digits: 1).map { "\($0) ms" }),
                        .init(second["keyframeIntervalMs"].integer.map { "\($0) ms" }), .init(second["viewers"].plain),
                    ]
                })
            try await listing.show(api, self.options)
        }
    }

    struct Drop: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Cut a push; the device may push again at once.")
        @Argument(help: ArgumentHelp("The stream.", valueName: "APP/NAME")) var stream: StreamArgument
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let answer = try await api.post(self.stream.segments + ["drop"])
            guard answer["wasDropped"].bool != false else {
                throw CommandFailure(.notFound, "nobody pushes \(self.stream); `earshot streams list` shows who does")
            }
            try self.options.report(answer) { _ in "the push of \(self.stream) is cut" }
        }
    }

    struct Forbid: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Cut a stream's push, and refuse pushes and plays for a time.")
        @Argument(help: ArgumentHelp("The stream.", valueName: "APP/NAME")) var stream: StreamArgument
        @OptionGroup var ban: BanOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let ban = try await api.post(self.stream.segments + ["forbid"], self.ban.body)
            try self.options.report(ban) {
                "\(self.stream) is forbidden until \($0["forbiddenUntil"].string.map(TimeText.short) ?? "further notice")"
            }
        }
    }

    struct Resume: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Lift a stream's ban: it can be pushed and played again.")
        @Argument(help: ArgumentHelp("The stream.", valueName: "APP/NAME")) var stream: StreamArgument
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            try self.options.report(try await api.post(self.stream.segments + ["resume"])) { _ in "\(self.stream) may be pushed to again" }
        }
    }

    struct Forbidden: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List the forbidden streams.")
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["streams", "forbidden"], things: "forbidden streams",
                columns: [.left("STREAM"), .right("SINCE"), .left("UNTIL"), .text("REASON")],
                id: StreamText.path,
                row: { ban in
                    [
                        .init(StreamText.path(ban)), .init(TimeText.age(ban["createdAt"])),
                        .init(ban["forbiddenUntil"].string.map(TimeText.short)),
                        .init(ban["reason"].plain),
                    ]
                }, size: ("limit", 1_000))
            try await listing.show(api, self.options, count: self.page.count)
        }
    }

    struct Refused: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the pushes and plays that were refused lately, the newest first.",
            discussion: "The server keeps them in memory, repetitions as one. With --quiet only the streams.")
        @Option(help: ArgumentHelp("Only attempts on this stream.", valueName: "APP/NAME"))
        var stream: StreamArgument?
        @Option(help: ArgumentHelp("Only these: publish, play.", valueName: "WHAT"))
        var action: String?
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["streams", "refused"], query: [("app", self.stream?.app), ("name", self.stream?.name), ("action", self.action)],
                things: "refusals",
                columns: [
                    .left("LAST"), .right("TIMES"), .left("WHAT"), .left("STREAM"), .text("FROM"), .left("REASON"), .text("ANSWER"),
                ],
                id: StreamText.path,
                row: { refusal in
                    [
                        .init(refusal["lastAt"].string.map(TimeText.short)), .init(refusal["count"].plain), .init(refusal["action"].plain),
                        .init(StreamText.path(refusal)), .init(refusal["clientAddress"].plain), .init(refusal["reason"].plain),
                        .init(refusal["message"].plain),
                    ]
                })
            try await listing.show(api, self.options)
        }
    }

    struct Published: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the pushes of the last days, the newest first.",
            discussion: """
                EXAMPLES
                  earshot streams published --stream live/r1
                  earshot streams published --from 2026-11-20 --to 2026-11-21 --all --json
                """)
        @Option(help: ArgumentHelp("Only pushes of this stream.", valueName: "APP/NAME"))
        var stream: StreamArgument?
        @Option(help: ArgumentHelp("Only pushes that began at this time or later.", valueName: "WHEN"))
        var from: Moment?
        @Option(help: ArgumentHelp("Only pushes that began before this time.", valueName: "WHEN"))
        var to: Moment?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let query = [
                ("app", self.stream?.app), ("name", self.stream?.name), ("from", self.from?.description), ("to", self.to?.description),
            ]
            let listing = Listing(
                path: ["streams", "published"], query: query, things: "pushes",
                columns: [
                    .right("SEQUENCE"), .left("STREAM"), .left("BEGUN"), .right("LASTED"), .left("END"), .left("SIZE"), .text("FROM"),
                    .text("ROOM"),
                ],
                id: { $0["sequence"].plain }, row: StreamText.pushRow, size: ("limit", 1_000), cursor: "before")
            try await listing.show(api, self.options, count: self.page.count)
        }
    }
}

/// `APP/NAME`; the name may contain slashes.
struct StreamArgument: ExpressibleByArgument, CustomStringConvertible {
    let app: String
    let name: String

    init?(argument: String) {
        let parts = argument.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        self.app = parts[0]
        self.name = parts[1]
    }

    /// The stream's segments in API paths.
    var segments: [String] { ["streams", self.app, self.name] }

    var description: String { DisplayText.escaped("\(self.app)/\(self.name)") }
}

/// Formats streams as text.
enum StreamText {
    static func path(_ item: JSONValue?) -> String? {
        guard let app = item["app"].string, let name = item["name"].string else { return nil }
        return "\(app)/\(name)"
    }

    static func row(_ stream: JSONValue) -> [Table.Cell] {
        let video = stream["video"]
        let audio = stream["audio"]
        let rates = [video["bitsPerSecond"].integer, audio["bitsPerSecond"].integer].compactMap { $0 }
        return [
            .init(self.path(stream)), RoomText.state(stream["state"]), HealthText.cell(stream["health"]),
            .init(TimeText.duration(seconds: stream["uptimeSeconds"])),
            .init(stream["viewers"].plain), .init(video["codec"].plain), .init(self.size(video)),
            .init(HumanUnits.decimal(video["fps"].number, digits: 1)), .init(audio["codec"].plain),
            .init(rates.isEmpty ? nil : HumanUnits.bitRate(rates.reduce(0) { $0 &+ $1 })), .init(stream["publisher"]["address"].plain),
            .init(stream["roomId"].plain),
        ]
    }

    static func pushRow(_ push: JSONValue?) -> [Table.Cell] {
        let begun = push["startedAt"].string.flatMap(Moment.init(argument:))
        let ended = push["endedAt"].string.flatMap(Moment.init(argument:)) ?? Moment.now
        return [
            .init(push["sequence"].plain), .init(self.path(push)), .init(push["startedAt"].string.map(TimeText.short)),
            .init(begun.map { Span.short(milliseconds: ended.milliseconds - $0.milliseconds) }),
            push["endedAt"].isNull ? .init("running", .green) : .init(push["stopReason"].plain), .init(self.size(push)),
            .init(push["clientAddress"].plain), .init(push["roomId"].plain),
        ]
    }

    private static func size(_ item: JSONValue?) -> String? {
        guard let width = item["width"].integer, let height = item["height"].integer else { return nil }
        return "\(width)x\(height)"
    }

    static func print(_ state: JSONValue?) throws {
        let stream = state["stream"]
        let publisher = stream["publisher"]
        var facts = Facts()
        facts.add("stream", self.path(state))
        facts.add("state", state["state"].plain.map { $0 == "forbid" ? "forbidden" : $0 })
        facts.add("room", state["roomId"].plain)
        facts.add("forbidden until", time: state["forbid"]["forbiddenUntil"])
        facts.add("forbidden for", state["forbid"]["reason"].plain)
        if let address = publisher["address"].plain {
            let session = publisher["sessionId"].plain.map { ", session \($0)" } ?? ""
            facts.add("pushed from", address + session + (publisher["client"].plain.map { ", \($0)" } ?? ""))
        }
        facts.add("health", HealthText.summary(stream["health"]))
        facts.add("up", TimeText.duration(seconds: stream["uptimeSeconds"]))
        facts.add("viewers", stream["viewers"].plain)
        facts.add("video", self.format(stream["video"]))
        facts.add("audio", self.format(stream["audio"]))
        if let bytesIn = HumanUnits.bytes(stream["bytesIn"].integer), let bytesOut = HumanUnits.bytes(stream["bytesOut"].integer) {
            facts.add("traffic", "\(bytesIn) in, \(bytesOut) out")
        }
        try facts.print()
    }

    /// "H.264 High 4.0, 1280x720, 25 fps, 2.1 Mb/s, a keyframe every 2 s".
    private static func format(_ track: JSONValue?) -> String? {
        guard !track.isNull else { return nil }
        let name = [track["codec"].plain, track["profile"].plain, track["level"].plain].compactMap { $0 }.joined(separator: " ")
        let parts = [
            name, self.size(track), HumanUnits.decimal(track["fps"].number, digits: 1).map { "\($0) fps" },
            track["sampleRate"].plain.map { "\($0) Hz" },
            track["channels"].integer.map { $0 == 1 ? "mono" : $0 == 2 ? "stereo" : "\($0) channels" },
            HumanUnits.bitRate(track["bitsPerSecond"].integer),
            track["keyframeIntervalMs"].number.flatMap { HumanUnits.decimal($0 / 1_000) }.map { "a keyframe every \($0) s" },
        ]
        return parts.compactMap { $0 }.joined(separator: ", ")
    }
}
