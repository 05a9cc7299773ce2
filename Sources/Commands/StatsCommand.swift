import ArgumentParser
import CommandSupport
import Support

/// `earshot stats`: figures over time, and the plays and pushes that are over.
struct StatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show figures over time, and the plays and pushes that are over.",
        discussion: """
            Figures are kept by the minute for a day, and by ten minutes after that (stats.keep).

            EXAMPLES
              earshot stats                               the last hour, with its largest streams
              earshot stats --last 7d
              earshot stats plays --stream live/r1 --reason too_slow
              earshot stats pushes --from 2026-11-20 --all --json

            \(ExitStatus.explanation)
            """,
        subcommands: [Show.self, Streams.self, Plays.self, Pushes.self],
        defaultSubcommand: Show.self)

    /// The time range of the figures.
    struct TimeOptions: ParsableArguments {
        @Option(help: ArgumentHelp("How far back from the end.", valueName: "TIME"))
        var last = Span(seconds: 3_600)
        @Option(help: ArgumentHelp("The end. (default: now)", valueName: "WHEN"))
        var to: Moment?

        func validate() throws {
            guard self.last.milliseconds >= 60_000 else { throw ValidationError("--last must be at least 1m.") }
        }

        var query: [(String, String?)] {
            let end = self.to ?? Moment.now
            let from = Moment(milliseconds: max(0, end.milliseconds - self.last.milliseconds))
            return [("from", from.description), ("to", self.to?.description)]
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the figures of all streams together, and the largest streams.",
            discussion: "Ten seconds may pass until the newest figures show. --json prints the figures of all, step by step.")
        @OptionGroup var time: TimeOptions
        @Option(help: ArgumentHelp("How many of the largest streams to show, at most 1000.", valueName: "N"))
        var top = 10
        @OptionGroup var options: ServerOptions

        func validate() throws {
            guard (1...1_000).contains(self.top) else { throw ValidationError("--top must be 1 to 1000.") }
        }

        func run(_ api: APIClient) async throws {
            let query = self.time.query
            if self.options.json { return try Console.print(try await api.get(["stats"], query).indented()) }
            if !self.options.quiet {
                try StatsText.print(try await api.get(["stats"], query))
                try Console.print("")
            }
            try await StatsText.streams(query, sort: nil).show(api, self.options, count: self.top)
        }
    }

    struct Streams: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List the streams with their figures, the largest first.")
        @OptionGroup var time: TimeOptions
        @Option(help: ArgumentHelp("Sort by bytesOut, bytesIn, viewers (the peak), viewerTime or plays.", valueName: "FIGURE"))
        var sort: String?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            try await StatsText.streams(self.time.query, sort: self.sort).show(api, self.options, count: self.page.count)
        }
    }

    /// Which finished sessions to list.
    struct FilterOptions: ParsableArguments {
        @Option(help: ArgumentHelp("Only those of this stream.", valueName: "APP/NAME"))
        var stream: StreamArgument?
        @Option(help: ArgumentHelp("Only those of this room.", valueName: "ID"))
        var room: String?
        @Option(help: ArgumentHelp("Only those of this user.", valueName: "ID"))
        var user: String?
        @Option(help: ArgumentHelp("Only those that ended for this reason.", valueName: "REASON"))
        var reason: String?
        @Option(help: ArgumentHelp("Only those that ended at this time or later.", valueName: "WHEN"))
        var from: Moment?
        @Option(help: ArgumentHelp("Only those that ended before this time.", valueName: "WHEN"))
        var to: Moment?

        var query: [(String, String?)] {
            [
                ("stream", self.stream.map { "\($0.app)/\($0.name)" }), ("roomId", self.room), ("userId", self.user),
                ("reason", self.reason), ("from", self.from?.description), ("to", self.to?.description),
            ]
        }
    }

    struct Plays: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the plays that are over, the newest first.",
            discussion: "BEHIND shows how far behind live the player was seen at worst; SKIPPED how many frames it missed.")
        @OptionGroup var filter: FilterOptions
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["stats", "plays"], query: self.filter.query, things: "finished plays",
                columns: [
                    .right("ID"), .left("STREAM"), .left("ENDED"), .right("LASTED"), .left("BY"), .text("ADDRESS"), .right("OUT"),
                    .left("REASON"), .right("SKIPPED"), .right("BEHIND"), .text("USER"), .text("CLIENT"),
                ],
                id: { $0["playId"].plain }, row: StatsText.playRow, size: ("limit", 1_000), cursor: "before")
            try await listing.show(api, self.options, count: self.page.count)
        }
    }

    struct Pushes: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the pushes that are over, the newest first.",
            discussion: "`earshot streams published` lists running pushes, too, from the store of rooms.")
        @OptionGroup var filter: FilterOptions
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["stats", "pushes"], query: self.filter.query, things: "finished pushes",
                columns: [
                    .right("ID"), .left("STREAM"), .left("ENDED"), .right("LASTED"), .left("BY"), .text("ADDRESS"), .right("IN"),
                    .left("REASON"), .left("VIDEO"), .left("SIZE"), .left("AUDIO"), .text("USER"), .text("CLIENT"),
                ],
                id: { $0["pushId"].plain }, row: StatsText.pushRow, size: ("limit", 1_000), cursor: "before")
            try await listing.show(api, self.options, count: self.page.count)
        }
    }
}

/// Formats figures as text.
enum StatsText {
    static func streams(_ query: [(String, String?)], sort: String?) -> Listing {
        Listing(
            path: ["stats", "streams"], query: query + [("sort", sort)], things: "streams with figures",
            columns: [
                .left("STREAM"), .right("IN"), .right("OUT"), .right("PLAYS"), .right("VIEWERS"), .right("PEAK"), .right("WATCHED"),
            ],
            id: StreamText.path,
            row: { stream in
                [
                    .init(StreamText.path(stream)), .init(HumanUnits.bytes(stream["bytesIn"].integer)),
                    .init(HumanUnits.bytes(stream["bytesOut"].integer)), .init(stream["plays"].plain),
                    .init(HumanUnits.decimal(stream["viewersAverage"].number)), .init(stream["viewersPeak"].plain),
                    .init(TimeText.duration(seconds: stream["viewerSeconds"])),
                ]
            }, size: ("limit", 1_000))
    }

    static func print(_ stats: JSONValue?) throws {
        let totals = stats["totals"]
        var facts = Facts()
        if let from = stats["from"].string, let to = stats["to"].string {
            facts.add("time", "\(TimeText.short(from)) to \(TimeText.short(to))")
        }
        facts.add("received", HumanUnits.bytes(totals["bytesIn"].integer))
        facts.add("sent", HumanUnits.bytes(totals["bytesOut"].integer))
        facts.add("plays", totals["plays"].plain)
        if let average = HumanUnits.decimal(totals["viewersAverage"].number), let peak = totals["viewersPeak"].plain {
            facts.add("viewers", "\(average) on average, \(peak) at most")
        }
        let connections = stats["connections"].list.compactMap { part -> String? in
            guard let transport = part["transport"].plain, let average = HumanUnits.decimal(part["average"].number) else { return nil }
            return "\(transport) \(average)"
        }
        facts.add("connections", connections.joined(separator: ", "))
        if let lost = stats["lost"].integer, lost > 0 { facts.add("rows lost", "\(lost)") }
        if stats["isPaused"].bool == true { facts.add("paused", "the statistics cannot be written; the server's log says why") }
        try facts.print()
    }

    static func playRow(_ play: JSONValue?) -> [Table.Cell] {
        [
            .init(play["playId"].plain), .init(StreamText.path(play)), .init(play["endedAt"].string.map(TimeText.short)),
            .init(TimeText.duration(seconds: play["seconds"])), .init(play["transport"].plain), .init(play["address"].plain),
            .init(HumanUnits.bytes(play["bytes"].integer)), .init(play["reason"].plain), .init(play["framesSkipped"].plain),
            .init(play["behindMs"].integer.map { "\($0) ms" }), .init(play["userId"].plain), .init(play["client"].plain),
        ]
    }

    static func pushRow(_ push: JSONValue?) -> [Table.Cell] {
        let size = push["width"].integer.flatMap { width in push["height"].integer.map { "\(width)x\($0)" } }
        return [
            .init(push["pushId"].plain), .init(StreamText.path(push)), .init(push["endedAt"].string.map(TimeText.short)),
            .init(TimeText.duration(seconds: push["seconds"])), .init(push["transport"].plain), .init(push["address"].plain),
            .init(HumanUnits.bytes(push["bytes"].integer)), .init(push["reason"].plain), .init(push["videoCodec"].plain), .init(size),
            .init(push["audioCodec"].plain), .init(push["userId"].plain), .init(push["client"].plain),
        ]
    }
}
