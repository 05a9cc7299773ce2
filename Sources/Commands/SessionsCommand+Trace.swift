import ArgumentParser
import CommandSupport
import Support

extension SessionsCommand {
    /// `earshot sessions trace`: a connection's flight recorder as a table.
    struct Trace: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show what a connection said and did last.",
            discussion: """
                Commands and states of the connection, and the headers of a publisher's messages, for at least half a minute or as many as \
                fit. Works for five minutes after an abnormal end, too. Credentials are not in it.
                """)
        @Argument(help: ArgumentHelp("Its number, as in the list or in the log (conn).", valueName: "ID")) var session: UInt64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let trace = try await api.get(["sessions", "\(self.session)", "trace"])
            if self.options.json { return try Console.print(trace.indented()) }
            if self.options.quiet { return try Console.print("\(self.session)") }
            var table = Table([.right("AGO"), .left("WAY"), .left("KIND"), .left("WHAT"), .right("STREAM"), .text("DETAILS")])
            for entry in trace["entries"].list { table.add(Self.row(entry)) }
            if table.rows.isEmpty { Console.complain("nothing happened in session \(self.session) of late") }
            let lines = table.rows.isEmpty ? [] : table.lines(width: Console.width, colour: Console.usesColour)
            for line in lines { try Console.print(line) }
            if let reason = trace["reason"].string { Console.complain("the session has ended: \(DisplayText.escaped(reason))") }
        }

        private static func row(_ entry: JSONValue) -> [Table.Cell] {
            let transaction = entry["transactionId"].integer.flatMap { $0 > 0 ? " #\($0)" : nil } ?? ""
            return [
                .init(entry["agoMs"].integer.map(Self.ago)), .init(Self.sign(entry["direction"].string)), .init(entry["kind"].plain),
                .init(entry["name"].string.map { $0 + transaction }), .init(entry["messageStreamId"].plain), .init(Self.details(entry)),
            ]
        }

        private static func details(_ entry: JSONValue?) -> String? {
            guard let bytes = entry["message"]["bytes"].integer else { return entry["text"].string }
            let flags = entry["message"]["flags"].list.compactMap(\.string)
            return (["\(bytes) bytes at \(entry["message"]["timestampMs"].plain ?? "-")"] + flags).joined(separator: " ")
        }

        private static func sign(_ direction: String?) -> String {
            switch direction {
            case "received": "<-"
            case "sent": "->"
            default: "."
            }
        }

        /// "12.345s"
        private static func ago(_ ms: Int64) -> String {
            let rest = String(1_000 + max(0, ms) % 1_000).dropFirst()
            return "\(max(0, ms) / 1_000).\(rest)s"
        }
    }
}
