import ArgumentParser
import CommandSupport
import Rooms
import Support

/// `earshot sessions`: connections of publishers and players.
struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions",
        abstract: "List connections, look at one, end one, or ask its client to connect again.",
        discussion: """
            EXAMPLES
              earshot sessions list --stream live/r1
              earshot sessions list --sort behind --limit 10
              earshot sessions show 42
              earshot sessions kick 42
              earshot sessions reconnect 42 --to rtmp://other.example.com/live
              earshot sessions trace 42

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Show.self, Kick.self, Reconnect.self, Trace.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the connections that push or play.",
            discussion: "BEHIND shows how far a player is behind live; SKIPPED shows how many frames it missed because it was slow.")
        @Option(help: ArgumentHelp("Only those that push (publisher) or play (player).", valueName: "ROLE"))
        var role: String?
        @Option(help: ArgumentHelp("Only those of this stream.", valueName: "APP/NAME"))
        var stream: StreamArgument?
        @Option(help: ArgumentHelp("The order: by number (id), or furthest behind live first (behind).", valueName: "ORDER"))
        var sort = Order.id
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        enum Order: String, ExpressibleByArgument, CaseIterable { case id, behind }

        /// Largest page. A list sorted by delay has only one page.
        private static let largestPage = 1_000

        func validate() throws {
            guard self.sort == .id || (!self.page.all && self.page.limit <= Self.largestPage) else {
                throw ValidationError("--sort behind shows the first \(Self.largestPage) at most; use --limit, without --all.")
            }
        }

        func run(_ api: APIClient) async throws {
            let stream = self.stream.map { "\($0.app)/\($0.name)" }
            let listing = Listing(
                path: ["sessions"], query: [("role", self.role), ("stream", stream), ("sort", self.sort == .behind ? "-behind" : nil)],
                things: "sessions",
                columns: [
                    .right("ID"), .left("BY"), .text("ADDRESS"), .right("FOR"), .text("PUSHES"), .text("PLAYS"), .right("IN"),
                    .right("OUT"),
                    .right("BEHIND"), .right("SKIPPED"), .text("CLIENT"),
                ],
                id: { $0["sessionId"].plain }, row: Self.row, size: ("limit", Self.largestPage))
            try await listing.show(api, self.options, count: self.page.count)
        }

        private static func row(_ session: JSONValue) -> [Table.Cell] {
            let plays = session["playing"].list
            let behind = plays.compactMap { $0["behindMs"].integer }.max()
            return [
                .init(session["sessionId"].plain), .init(session["transport"].plain), .init(session["address"].plain),
                .init(TimeText.duration(seconds: session["seconds"])),
                .init(session["publishing"].list.compactMap(\.string).joined(separator: " ")),
                .init(plays.compactMap { $0["stream"].string }.joined(separator: " ")),
                .init(HumanUnits.bytes(session["bytesIn"].integer)), .init(HumanUnits.bytes(session["bytesOut"].integer)),
                .init(behind.map { "\($0) ms" }, behind ?? 0 > 1_000 ? .yellow : nil),
                .init(plays.isEmpty ? nil : "\(plays.compactMap { $0["framesSkipped"].integer }.reduce(0) { $0 &+ $1 })"),
                .init(session["client"].plain),
            ]
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a connection's details.")
        @Argument(help: ArgumentHelp("Its number, as in the list.", valueName: "ID")) var session: UInt64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let session = try await api.get(["sessions", "\(self.session)"])
            if self.options.json { return try Console.print(session.indented()) }
            if self.options.quiet { return try Console.print("\(self.session)") }
            var facts = Facts()
            facts.add("session", session["sessionId"].plain)
            facts.add("connected by", session["transport"].plain)
            facts.add("address", session["address"].string)
            facts.add("app", session["app"].string)
            facts.add("client", session["client"].string)
            facts.add("for", TimeText.duration(seconds: session["seconds"]))
            if let bytesIn = HumanUnits.bytes(session["bytesIn"].integer), let bytesOut = HumanUnits.bytes(session["bytesOut"].integer) {
                facts.add("traffic", "\(bytesIn) in, \(bytesOut) out")
            }
            for stream in session["publishing"].list { facts.add("pushes", stream.string) }
            for play in session["playing"].list {
                let behind = play["behindMs"].integer.map { ", \($0) ms behind live" } ?? ""
                let skipped = play["framesSkipped"].integer.flatMap { $0 > 0 ? ", \($0) frames skipped" : nil } ?? ""
                facts.add("plays", "\(play["stream"].string ?? "-")\(behind)\(skipped)")
                facts.add("line", Self.line(play["line"]))
            }
            try facts.print()
        }

        /// "lossy: 7.5 % lost, 812 packets sent again, 40 ms there and back, 3 ms in queues"
        private static func line(_ line: JSONValue?) -> String? {
            guard let verdict = line["verdict"].plain, verdict != "unknown" else { return nil }
            let sends = line["sends"].string.flatMap { $0 == "all" ? nil : $0 == "sound" ? "gets sound alone" : "gets keyframes and sound" }
            let parts = [
                sends, line["lossPercent"].plain.map { "\($0) % lost" },
                line["repeats"].integer.flatMap { $0 > 0 ? "\($0) packets sent again" : nil },
                line["roundTripMs"].plain.map { "\($0) ms there and back" }, line["queuedMs"].plain.map { "\($0) ms in queues" },
            ]
            return "\(verdict): " + parts.compactMap { $0 }.joined(separator: ", ")
        }
    }

    struct Kick: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "End a connection; its client may come back.")
        @Argument(help: ArgumentHelp("Its number, as in the list.", valueName: "ID")) var session: UInt64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let session = self.session
            try self.options.report(try await api.delete(["sessions", "\(session)"])) { _ in "session \(session) is ended" }
        }
    }

    struct Reconnect: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ask a client to connect again, here or elsewhere.",
            discussion: "Only clients of Enhanced RTMP that have said that they can (capsEx 1). `earshot sessions kick` ends any other.")
        @Argument(help: ArgumentHelp("Its number, as in the list.", valueName: "ID")) var session: UInt64
        @Option(help: ArgumentHelp("Where to connect. (default: where it did before)", valueName: "URL")) var to: String?
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let session = self.session
            let body = self.to.map { ["tcUrl": JSONValue.string($0)] } ?? [:]
            try self.options.report(try await api.post(["sessions", "\(session)", "reconnect"], body)) { _ in
                "the client of session \(session) is asked to connect again\(self.to.map { " to \($0)" } ?? "")"
            }
        }
    }
}
