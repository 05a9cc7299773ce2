import ArgumentParser
import CommandSupport
import Support

/// `earshot nodes`: the servers that share a registry.
struct NodesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nodes",
        abstract: "List the servers that share one PostgreSQL database; end one of them.",
        discussion: """
            Any of them answers for all. A server that is alone has no nodes.

            EXAMPLES
              earshot nodes list
              earshot nodes drain b --within 10m --wait
              earshot nodes drain b --restart

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Drain.self], defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the nodes by name, those that have left included.",
            discussion: """
                running: it has a lease. lost: its lease has ended, and its pushes are not ended yet. gone: it has left, or its pushes were \
                ended for it. The keeper applies deadlines and sends webhooks for all; the node that answers is marked by *.
                """)
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let listing = Listing(
                path: ["nodes"], things: "nodes: this server shares its registry with no other",
                columns: [
                    .left("NODE"), .left("STATE"), .left("KEEPER"), .right("PUSHES"), .right("LEASE"), .left("VERSION"), .right("AGE"),
                    .text("ADDRESS"),
                ],
                id: { $0["name"].plain },
                row: { node in
                    [
                        .init((node["name"].plain ?? "-") + (node["isSelf"].bool == true ? " *" : "")), Self.state(node),
                        .init(node["isKeeper"].bool == true ? "keeper" : nil), .init(node["pushes"].plain),
                        .init(node["leaseSeconds"].number == 0 ? nil : TimeText.duration(seconds: node["leaseSeconds"])),
                        .init(node["version"].plain), .init(TimeText.age(node["startedAt"])), .init(node["address"].string),
                    ]
                })
            try await listing.show(api, self.options)
        }

        private static func state(_ node: JSONValue?) -> Table.Cell {
            let state = node["state"].plain
            return .init(state, state == "running" ? .green : state == "lost" ? .red : .dim)
        }
    }

    struct Drain: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Have a node end, as `earshot drain` does with the server that is called.",
            discussion: """
                Another node than the one that is called is asked through the database and begins within a moment. Whether it could is in its \
                log and in `earshot audit`.
                """)
        @Argument(help: ArgumentHelp("The node's name.", valueName: "NODE")) var node: String
        @OptionGroup var drain: DrainOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let before = self.drain.wait ? try await self.fetch(api) : .null
            let name = "node \(self.node)"
            let answer = try await api.post(["nodes", self.node, "drain"], self.drain.body)
            try self.options.report(answer) { answer in
                answer["drain"].isNull ? "\(name) is asked to end" : DrainOptions.begun(answer["drain"], name)
            }
            guard self.drain.wait else { return }
            guard answer["drain"].isNull else { return try await self.drain.follow(api, self.options) }
            try await self.follow(api, since: before["startedAt"])
        }

        private func fetch(_ api: APIClient) async throws -> JSONValue {
            try await api.get(["nodes"])["list"].list.first { $0["name"].string == self.node } ?? .null
        }

        /// Waits until the node has left or, for a restart, has registered anew.
        private func follow(_ api: APIClient, since start: JSONValue?) async throws {
            var seconds = 0
            while true {
                try await Task.sleep(for: .seconds(1))
                seconds += 1
                let node = try await self.fetch(api)
                let isNew = node["startedAt"] != start
                if isNew || (!self.drain.restart && node["state"].string != "running") {
                    if !self.options.quiet { Console.complain(isNew ? "the node has ended, and was started again" : "the node has ended") }
                    return
                }
                guard seconds % 10 == 0, !self.options.quiet else { continue }
                let pushes = node["pushes"].integer ?? 0
                Console.complain("the node is \(node["state"].plain ?? "-"), with \(pushes) \(pushes == 1 ? "push" : "pushes")")
            }
        }
    }
}
