import ArgumentParser
import CommandSupport
import Support

/// `earshot relays`: links to other servers.
struct RelaysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "relays",
        abstract: "List links to other servers; add and remove them.",
        discussion: """
            A link forwards a stream to another server (push) or fetches one from there (pull). The server keeps it up, over restarts too, \
            until it is removed. The address contains the other server's credential: to keep that out of process lists, give - and write \
            the address to standard input. No command prints it again.

            EXAMPLES
              earshot relays add push live/cam1 rtmps://cdn.example.com/live/KEY
              earshot relays add pull live/cam2 - --on-demand < address
              earshot relays list
              earshot relays remove 1

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Show.self, Add.self, Remove.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List links, the oldest first.")
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["relay-tasks"], things: "links",
                columns: [
                    .right("ID"), .left("DIRECTION"), .left("STATE"), .right("FOR"), .right("IN"), .right("OUT"), .text("STREAM"),
                    .text("OTHER SERVER"), .text("LAST ERROR"),
                ],
                id: { $0["taskId"].plain }, row: RelayText.row)
            try await listing.show(api, self.options)
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a link's details.")
        @Argument(help: ArgumentHelp("The link's number.", valueName: "ID")) var task: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let task = try await api.get(["relay-tasks", "\(self.task)"])
            if self.options.json { return try Console.print(task.indented()) }
            if self.options.quiet { return try Console.print("\(self.task)") }
            try RelayText.print(task)
        }
    }

    struct Add: ServerCommand {
        enum Direction: String, ExpressibleByArgument, CaseIterable { case push, pull }

        static let configuration = CommandConfiguration(abstract: "Forward a stream to another server, or fetch one from there.")
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
            let task = try await api.post(["relay-tasks"], body)
            if self.options.json { return try Console.print(task.indented()) }
            // The server chooses the number: print it as the answer.
            try Console.print(DisplayText.escaped(task["taskId"].plain ?? "-"))
            if !self.options.quiet { Console.complain(DisplayText.escaped(RelayText.sentence(task))) }
        }
    }

    struct Remove: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Remove a link for good.")
        @Argument(help: ArgumentHelp("The link's number.", valueName: "ID")) var task: Int64
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let id = self.task
            try self.options.report(try await api.delete(["relay-tasks", "\(id)"])) { _ in "link \(id) is removed" }
        }
    }
}

/// Formats links as text.
enum RelayText {
    static func row(_ task: JSONValue) -> [Table.Cell] {
        [
            .init(task["taskId"].plain), .init(task["direction"].string), self.state(task), .init(TimeText.age(task["since"])),
            .init(HumanUnits.bytes(task["bytesIn"].integer)), .init(HumanUnits.bytes(task["bytesOut"].integer)), .init(self.stream(task)),
            .init(task["target"].string), .init(task["lastError"].string),
        ]
    }

    /// The state in traffic light colours.
    private static func state(_ task: JSONValue?) -> Table.Cell {
        let colour: Table.Colour? =
            switch task["state"].string {
            case "running": .green
            case "waiting", "connecting", "held": .yellow
            case "failed": .red
            default: nil
            }
        return .init(task["state"].plain, colour)
    }

    private static func stream(_ task: JSONValue?) -> String {
        "\(task["app"].plain ?? "-")/\(task["name"].plain ?? "-")"
    }

    /// "live/cam1 goes to rtmps://cdn.example.com/live/KE***".
    static func sentence(_ task: JSONValue?) -> String {
        let verb = task["direction"].string == "pull" ? "comes from" : "goes to"
        return "\(self.stream(task)) \(verb) \(task["target"].plain ?? "-")"
    }

    static func print(_ task: JSONValue?) throws {
        var facts = Facts()
        facts.add("link", task["taskId"].plain)
        let demand = task["onDemand"].bool == true ? ", only while somebody plays" : ""
        facts.add("what", self.sentence(task) + demand)
        facts.add("state", (task["state"].plain ?? "-") + (TimeText.age(task["since"]).map { ", for \($0)" } ?? ""))
        facts.add("last error", task["lastError"].string)
        facts.add("made", time: task["createdAt"])
        facts.add("attempts", task["attempts"].plain)
        for (name, way) in [("received", "In"), ("sent", "Out")] {
            let bytes = HumanUnits.bytes(task["bytes\(way)"].integer) ?? "-"
            facts.add(name, "\(bytes) in \(task["frames\(way)"].plain ?? "-") frames")
        }
        if let dropped = task["framesDropped"].integer, dropped > 0 { facts.add("frames left out", "\(dropped)") }
        try facts.print()
    }
}
