import ArgumentParser
import CommandSupport
import Support

/// `earshot gatherings`: the apps' channels, mesh rooms, classes and machines of a running server.
struct GatheringsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gatherings",
        abstract: "List, show and end channels, mesh rooms, classes and machines.",
        discussion: """
            EXAMPLES
              earshot gatherings list --kind mesh
              earshot gatherings show plain-cam1
              earshot gatherings end plain-cam1

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Show.self, End.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List the gatherings in use, by id.")
        @Option(help: ArgumentHelp("Only those of this kind: plain, mesh, class, machine.", valueName: "KIND")) var kind: String?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["gatherings"], query: [("kind", self.kind)], things: "gatherings",
                columns: [.text("ID"), .left("KIND"), .text("ROOM"), .right("MEMBERS"), .right("QUEUED"), .right("SINCE")],
                id: { $0["gatheringId"].plain },
                row: { row in
                    [
                        .init(row["gatheringId"].plain), .init(row["kind"].plain), .init(row["roomId"].plain), .init(row["members"].plain),
                        .init(row["queued"].plain), .init(TimeText.age(row["createdAt"])),
                    ]
                }, size: ("limit", 1_000))
            try await listing.show(api, self.options, count: self.page.count)
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a gathering's members and its queue.")
        @Argument(help: ArgumentHelp("The gathering's id, as in the list.", valueName: "ID")) var gathering: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let found = try await api.get(["gatherings", self.gathering])
            if self.options.json { return try Console.print(found.indented()) }
            if self.options.quiet { return try Console.print(DisplayText.escaped(self.gathering)) }
            var facts = Facts()
            facts.add("gathering", found["gatheringId"].string)
            facts.add("kind", found["kind"].string)
            facts.add("room", found["roomId"].string)
            facts.add("since", time: found["createdAt"])
            facts.add("queue", found["isPaused"].bool == true ? "takes nobody new" : nil)
            try facts.print()
            var people = Table([.text("MEMBER"), .text("NAME"), .left("ROLE"), .right("JOINED"), .right("AWAY FOR")])
            for person in found["people"].list {
                people.add([
                    .init(person["userId"].plain), .init(person["name"].plain), .init(person["role"].plain),
                    .init(TimeText.age(person["joinedAt"])), .init(TimeText.age(person["awaySince"]), .yellow),
                ])
            }
            var queue = Table([.text("QUEUED"), .right("FOR"), .text("VALUE")])
            for entry in found["queue"].list {
                queue.add([.init(entry["key"].plain), .init(TimeText.age(entry["at"])), .init(entry["value"].plain)])
            }
            for table in [people, queue] {
                for line in table.lines(width: Console.width, colour: Console.usesColour) { try Console.print(line) }
            }
        }
    }

    struct End: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "End a gathering: its connections are closed, its queue is gone.")
        @Argument(help: ArgumentHelp("The gathering's id, as in the list.", valueName: "ID")) var gathering: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let ended = try await api.post(["gatherings", self.gathering, "end"])
            try self.options.report(ended) { _ in "gathering \(DisplayText.escaped(self.gathering)) has ended" }
        }
    }
}
