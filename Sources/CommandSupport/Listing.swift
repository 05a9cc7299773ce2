import ArgumentParser
package import Support

/// The part of a long list to fetch.
package struct PageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Show at most this many.", valueName: "N"))
    package var limit = 50
    @Flag(help: "Show all, page by page.")
    package var all = false

    package init() {}

    package func validate() throws {
        guard (1...1_000_000).contains(self.limit) else { throw ValidationError("--limit must be 1 to 1000000; --all has no limit.") }
    }

    package var count: Int { self.all ? .max : self.limit }
}

/// Describes a list of the API: its path, paging, and the shown fields.
package struct Listing {
    package let path: [String]
    package var query: [(String, String?)]
    /// The plural name of its items.
    package let things: String
    package let columns: [Table.Column]
    package let id: (JSONValue) -> String?
    package let row: (JSONValue) -> [Table.Cell]
    /// The parameter for a page's size, and the largest size; nil for lists without pages.
    package var size: (name: String, largest: Int)?
    /// The parameter for the `next` of a page.
    package var cursor: String
    /// The first value for `cursor`; nil starts at the beginning.
    package var first: String?

    package init(
        path: [String], query: [(String, String?)] = [], things: String, columns: [Table.Column],
        id: @escaping (JSONValue) -> String?, row: @escaping (JSONValue) -> [Table.Cell], size: (name: String, largest: Int)? = nil,
        cursor: String = "after", first: String? = nil
    ) {
        self.path = path
        self.query = query
        self.things = things
        self.columns = columns
        self.id = id
        self.row = row
        self.size = size
        self.cursor = cursor
        self.first = first
    }

    /// Fetches and prints up to `count` items.
    package func show(_ api: APIClient, _ options: ServerOptions, count: Int = .max) async throws {
        if options.json, self.size.map({ count <= $0.largest }) ?? true {
            // One page holds everything: print the answer unchanged, with its cursor.
            return try Console.print(try await self.page(api, count, after: self.first).indented())
        }
        var table = Table(self.columns)
        var shown = 0
        var total: Int64?
        var next = self.first
        repeat {
            let data = try await self.page(api, count - shown, after: next)
            let items = data["list"].list.prefix(count - shown)
            for item in items {
                if options.json {
                    try Console.print(shown == 0 ? "{\n  \"list\": [" : ",")
                    try Console.print("    " + item.indented(depth: 2), end: "")
                } else if options.quiet {
                    if let id = self.id(item) { try Console.print(DisplayText.escaped(id)) }
                } else {
                    table.add(self.row(item))
                }
                shown += 1
            }
            total = data["total"].integer ?? total
            let before = next
            next = self.cursor(of: data)
            // Stop at a server that returns the same page for ever.
            if items.isEmpty || next == before { next = nil }
        } while next != nil && shown < count
        if options.json {
            try Console.print(shown == 0 ? "{\n  \"list\": []," : "\n  ],")
            return try Console.print("  \"total\": \(total ?? Int64(shown))\n}")
        }
        if options.quiet { return }
        guard shown > 0 else { return Console.complain("no \(self.things)") }
        for line in table.lines(width: Console.width, colour: Console.usesColour) { try Console.print(line) }
        if next != nil || total.map({ $0 > Int64(shown) }) ?? false {
            let part = total.map { "\(shown) of \($0) \(self.things)" } ?? "the first \(shown) \(self.things)"
            Console.complain("\(part); --all shows them all")
        }
    }

    private func page(_ api: APIClient, _ wanted: Int, after next: String?) async throws -> JSONValue {
        let size = self.size.map { ($0.name, Optional("\(min($0.largest, wanted))")) }
        return try await api.get(self.path, self.query + [size].compactMap { $0 } + (next == nil ? [] : [(self.cursor, next)]))
    }

    /// Most lists return the cursor as `next`. Events return the `last` id and whether that was all.
    private func cursor(of data: JSONValue) -> String? {
        data["isComplete"].bool == false ? data["last"].plain : data["next"].plain
    }
}
