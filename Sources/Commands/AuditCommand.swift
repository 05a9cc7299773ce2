import ArgumentParser
import CommandSupport
import Rooms
import Support

/// `earshot audit`: shows changes and their authors.
struct AuditCommand: ServerCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "List who changed what, the newest first.",
        discussion: """
            Every change by the API or this command has a line, also one that failed or was refused. Heartbeats, likes and reads have none.

            EXAMPLES
              earshot audit --token ops-laptop --from 2026-11-25T00:00:00Z
              earshot audit --stream live/walk
              earshot audit --result unauthorized --limit 500

            \(ExitStatus.explanation)
            """)
    @Option(help: ArgumentHelp("Only calls with the token of this name.", valueName: "NAME")) var token: String?
    @Option(help: ArgumentHelp("Only calls by this tool: api, cli, console or tencent.", valueName: "TOOL")) var via: String?
    @Option(help: ArgumentHelp("Only this operation, such as closeRoom.", valueName: "OPERATION")) var operation: String?
    @Option(help: ArgumentHelp("Only calls on this room.", valueName: "ID")) var roomId: String?
    @Option(help: ArgumentHelp("Only calls that name this stream.", valueName: "APP/NAME")) var stream: StreamArgument?
    @Option(help: ArgumentHelp("Only this result: ok, or an error's type such as forbidden.", valueName: "RESULT")) var result: String?
    @Option(help: ArgumentHelp("Only calls at this time or later.", valueName: "TIME")) var from: String?
    @Option(help: ArgumentHelp("Only calls before this time.", valueName: "TIME")) var to: String?
    @OptionGroup var page: PageOptions
    @OptionGroup var options: ServerOptions

    func run(_ api: APIClient) async throws {
        let listing = Listing(
            path: ["audit"],
            query: [
                ("token", self.token), ("via", self.via), ("operation", self.operation), ("roomId", self.roomId),
                ("stream", self.stream.map { "\($0.app)/\($0.name)" }), ("result", self.result), ("from", self.from), ("to", self.to),
            ],
            things: "lines of the audit trail",
            columns: [
                .right("ID"), .left("AT"), .text("TOKEN"), .left("VIA"), .left("ADDRESS"), .left("OPERATION"), .left("RESULT"), .text("ON"),
                .text("CHANGE"),
            ],
            id: { $0["auditId"].plain }, row: Self.row, size: ("limit", 10_000), cursor: "before")
        try await listing.show(api, self.options, count: self.page.count)
    }

    private static func row(_ line: JSONValue) -> [Table.Cell] {
        let things = ["roomId", "stream", "object"].compactMap { line[$0].plain }
        let isOK = line["result"].string == "ok"
        return [
            .init(line["auditId"].plain), .init(line["at"].string.map(TimeText.short)),
            .init(line["token"].plain ?? line["tokenHash"].plain.map { "unknown, hash \($0)" }), .init(line["via"].plain),
            .init(line["address"].plain),
            .init(line["operation"].plain), .init(line["result"].plain, isOK ? nil : .red), .init(things.joined(separator: " ")),
            .init(Self.change(line)),
        ]
    }

    /// "state live > closed".
    private static func change(_ line: JSONValue?) -> String {
        let (before, after) = (line["before"], line["after"])
        let names = Set((before.fields + after.fields).map(\.name)).sorted()
        return names.map { "\($0) \(before[$0].plain ?? "-") > \(after[$0].plain ?? "-")" }.joined(separator: ", ")
    }
}
