import ArgumentParser

/// `earshot sessions`: connections of publishers and players.
struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions",
        abstract: "List connections, or end one.",
        discussion: """
            EXAMPLES
              earshot sessions list --stream live/r1
              earshot sessions kick 42

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Kick.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the connections that push or play.",
            discussion: "BEHIND says how far behind live a player is; SKIPPED how many frames were left out because it was slow.")
        @Option(help: ArgumentHelp("Only those that push (publisher) or play (player).", valueName: "ROLE"))
        var role: String?
        @Option(help: ArgumentHelp("Only those of this stream.", valueName: "APP/NAME"))
        var stream: StreamArgument?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let stream = self.stream.map { "\($0.app)/\($0.name)" }
            let listing = Listing(
                path: ["sessions"], query: [("role", self.role), ("stream", stream)], things: "sessions",
                columns: [
                    .right("ID"), .left("BY"), .text("ADDRESS"), .right("FOR"), .text("PUSHES"), .text("PLAYS"), .right("IN"),
                    .right("OUT"),
                    .right("BEHIND"), .right("SKIPPED"), .text("CLIENT"),
                ],
                id: { $0["id"].plain }, row: Self.row, size: ("limit", 1_000))
            try await listing.show(api, self.options, count: self.page.count)
        }

        private static func row(_ session: JSONValue) -> [Table.Cell] {
            let plays = session["playing"].list
            let behind = plays.compactMap { $0["behindMs"].integer }.max()
            return [
                .init(session["id"].plain), .init(session["transport"].plain), .init(session["address"].plain),
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

    struct Kick: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "End a connection; its client may come back.")
        @Argument(help: ArgumentHelp("Its number, as in the list.", valueName: "ID")) var session: UInt64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let session = self.session
            try self.options.tell(try await api.delete(["sessions", "\(session)"])) { _ in "session \(session) is ended" }
        }
    }
}
