import ArgumentParser
import CommandSupport
import Support

/// `earshot links`: links to other servers.
struct LinksCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "links",
        abstract: "List links to other servers; add and remove them.",
        discussion: """
            A link sends a stream to another server (push) or fetches one from there (pull). The server keeps it up, over restarts too, \
            until it is removed. The address contains the other server's credential: to keep that out of process lists, give - and write \
            the address to standard input. No command prints it again.

            EXAMPLES
              earshot links add push live/cam1 rtmps://cdn.example.com/live/KEY
              earshot links add pull live/cam2 - --on-demand < address
              earshot links list
              earshot links remove 1

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Show.self, Add.self, Remove.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List links, the oldest first.")
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["links"], things: "links",
                columns: [
                    .right("ID"), .left("DIRECTION"), .left("STATE"), .right("FOR"), .right("IN"), .right("OUT"), .text("STREAM"),
                    .text("OTHER SERVER"), .text("LAST ERROR"),
                ],
                id: { $0["linkId"].plain }, row: LinkText.row)
            try await listing.show(api, self.options)
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a link's details.")
        @Argument(help: ArgumentHelp("The link's number.", valueName: "ID")) var link: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let link = try await api.get(["links", "\(self.link)"])
            if self.options.json { return try Console.print(link.indented()) }
            if self.options.quiet { return try Console.print("\(self.link)") }
            try LinkText.print(link)
        }
    }

    struct Add: ServerCommand {
        enum Direction: String, ExpressibleByArgument, CaseIterable { case push, pull }

        static let configuration = CommandConfiguration(abstract: "Send a stream to another server, or fetch one from there.")
        @Argument(help: "push: send the stream to the other server; pull: fetch it from there.") var direction: Direction
        @Argument(help: ArgumentHelp("The stream on this server.", valueName: "APP/NAME")) var stream: StreamArgument
        @Argument(help: ArgumentHelp("The stream's URL there, rtmp:// or rtmps://; - reads it from standard input.", valueName: "URL"))
        var url: String
        @Flag(help: "Pull only while somebody plays the stream.") var onDemand = false
        @OptionGroup var options: ServerOptions

        func validate() throws {
            guard !self.onDemand || self.direction == .pull else { throw ValidationError("--on-demand works only with pull.") }
        }

        func run(_ api: APIClient) async throws {
            let url = self.url == "-" ? readLine() ?? "" : self.url
            let body: [String: JSONValue] = [
                "direction": .string(self.direction.rawValue), "app": .string(self.stream.app), "name": .string(self.stream.name),
                "url": .string(url), "onDemand": .bool(self.onDemand),
            ]
            let link = try await api.post(["links"], body)
            if self.options.json { return try Console.print(link.indented()) }
            // The server chooses the number: print it as the answer.
            try Console.print(DisplayText.escaped(link["linkId"].plain ?? "-"))
            if !self.options.quiet { Console.complain(DisplayText.escaped(LinkText.sentence(link))) }
        }
    }

    struct Remove: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Remove a link for good.")
        @Argument(help: ArgumentHelp("The link's number.", valueName: "ID")) var link: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let id = self.link
            try self.options.report(try await api.delete(["links", "\(id)"])) { _ in "link \(id) is removed" }
        }
    }
}

/// Formats links as text.
enum LinkText {
    static func row(_ link: JSONValue) -> [Table.Cell] {
        [
            .init(link["linkId"].plain), .init(link["direction"].string), self.state(link), .init(TimeText.age(link["since"])),
            .init(HumanUnits.bytes(link["bytesIn"].integer)), .init(HumanUnits.bytes(link["bytesOut"].integer)), .init(self.stream(link)),
            .init(link["target"].string), .init(link["lastError"].string),
        ]
    }

    /// The state in traffic light colours.
    private static func state(_ link: JSONValue?) -> Table.Cell {
        let colour: Table.Colour? =
            switch link["state"].string {
            case "running": .green
            case "waiting", "connecting", "held": .yellow
            case "failed": .red
            default: nil
            }
        return .init(link["state"].plain, colour)
    }

    private static func stream(_ link: JSONValue?) -> String {
        "\(link["app"].plain ?? "-")/\(link["name"].plain ?? "-")"
    }

    /// "live/cam1 goes to rtmps://cdn.example.com/live/KE***".
    static func sentence(_ link: JSONValue?) -> String {
        let verb = link["direction"].string == "pull" ? "comes from" : "goes to"
        return "\(self.stream(link)) \(verb) \(link["target"].plain ?? "-")"
    }

    static func print(_ link: JSONValue?) throws {
        var facts = Facts()
        facts.add("link", link["linkId"].plain)
        let demand = link["onDemand"].bool == true ? ", only while somebody plays" : ""
        facts.add("what", self.sentence(link) + demand)
        facts.add("state", (link["state"].plain ?? "-") + (TimeText.age(link["since"]).map { ", for \($0)" } ?? ""))
        facts.add("last error", link["lastError"].string)
        facts.add("made", time: link["createdAt"])
        facts.add("attempts", link["attempts"].plain)
        for (name, way) in [("received", "In"), ("sent", "Out")] {
            let bytes = HumanUnits.bytes(link["bytes\(way)"].integer) ?? "-"
            facts.add(name, "\(bytes) in \(link["frames\(way)"].plain ?? "-") frames")
        }
        if let dropped = link["framesDropped"].integer, dropped > 0 { facts.add("frames left out", "\(dropped)") }
        try facts.print()
    }
}
