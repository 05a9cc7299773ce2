import ArgumentParser
import FoundationEssentials
import RoomRegistry
import Rooms
import Store

/// Compares a page of the room list with few rooms and with many. Two stores are asked in turn, in one process and one run.
struct Pages: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compare the cost of a page of rooms in a small store and in a large one.")

    @Option(help: "Rooms of the small store.")
    var few = 1_000
    @Option(help: "Rooms of the large store.")
    var many = 100_000
    @Option(help: "Rooms on a page.")
    var size = 50
    @Option(help: "Times that each kind of page is asked for.")
    var samples = 400
    @Option(help: "Write the figures to this file.")
    var json: String?

    func validate() throws {
        guard (100...10_000).contains(self.few), (1_000...1_000_000).contains(self.many), RoomQuery.sizes.contains(self.size),
            (10...100_000).contains(self.samples), self.many > self.few
        else {
            throw ValidationError(
                "expected --few 100...10000, --many 1000...1000000 and above --few, --size \(RoomQuery.sizes), --samples 10...100000")
        }
    }

    struct Row: Codable {
        var page: String
        var fewP50Ms: Double
        var manyP50Ms: Double
        var ratio: Double
    }

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "earshot-pages-\(ProcessInfo.processInfo.processIdentifier)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var stores: [RoomRegistry] = []
        for count in [self.few, self.many] {
            let path = folder.appending(path: "\(count)").path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let registry = try RoomRegistry(.folder(path), settings: RoomRegistry.Settings())
            try await registry.start()
            let begin = ContinuousClock.now
            try await Transitions.spread(Array(0..<count), over: 256) { _, index in
                var new = NewRoom(policy: RoomPolicy())
                new.id = try RoomID(checking: "room-\(index)")
                new.title = "Room \(index % 977) of \(index)"
                new.owner = "owner-\(index % 97)"
                new.isPublic = index % 2 == 0
                _ = try await registry.create(new, by: Actor("load"))
                if index % 3 == 0 { _ = try await registry.apply(.close, to: "room-\(index)", action: "close", by: Actor("load")) }
            }
            print("\(count) rooms made in \(ContinuousClock.now - begin)")
            stores.append(registry)
        }
        var rows: [Row] = []
        for (name, query) in Self.queries(size: self.size) {
            var small = Histogram()
            var large = Histogram()
            let lastPages = [try await Self.last(query, stores[0]), try await Self.last(query, stores[1])]
            for wantsLast in [false, true] {
                small = Histogram()
                large = Histogram()
                for _ in 0..<self.samples {
                    var query = query
                    if wantsLast { query.after = lastPages[0] }
                    small.record(microseconds: try await Self.time(query, stores[0]))
                    if wantsLast { query.after = lastPages[1] }
                    large.record(microseconds: try await Self.time(query, stores[1]))
                }
                let few = small.milliseconds(at: 0.5) ?? 0
                let many = large.milliseconds(at: 0.5) ?? 0
                let row = Row(
                    page: "\(name), \(wantsLast ? "last" : "first") page", fewP50Ms: few, manyP50Ms: many,
                    ratio: (many / few * 100).rounded() / 100)
                print("\(RunResult.pad(row.page, 48)) p50 \(few) ms with \(self.few) rooms, \(many) ms with \(self.many): \(row.ratio) x")
                rows.append(row)
            }
        }
        for store in stores { await store.stop() }
        if let json = self.json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(rows).write(to: URL(filePath: json))
        }
        if let worst = rows.max(by: { $0.ratio < $1.ratio }) {
            print("worst: \(worst.ratio) x (\(worst.page)); the target is at most 1.5 x")
        }
    }

    private static func queries(size: Int) -> [(String, RoomQuery)] {
        var all = RoomQuery()
        all.size = size
        var created = all
        created.states = [.created]
        var byTitle = created
        byTitle.order = .title
        var isPublic = created
        isPublic.isPublic = true
        var closed = all
        closed.states = [.closed]
        closed.order = .oldest
        return [
            ("all, newest first", all), ("state created", created), ("state created, by title", byTitle),
            ("state created, public", isPublic), ("state closed, oldest first", closed),
        ]
    }

    private static func time(_ query: RoomQuery, _ registry: RoomRegistry) async throws -> UInt64 {
        let begin = ContinuousClock.now
        let page = try await registry.rooms(query)
        let took = (ContinuousClock.now - begin).components
        guard !page.rooms.isEmpty else { throw APIFailure("a page is empty") }
        return UInt64(took.seconds) * 1_000_000 + UInt64(took.attoseconds / 1_000_000_000_000)
    }

    /// The cursor of the last full page.
    private static func last(_ query: RoomQuery, _ registry: RoomRegistry) async throws -> String? {
        var query = query
        let size = query.size
        query.size = RoomQuery.sizes.upperBound
        var cursor: String?
        var read = 0
        let total = try await registry.rooms(query).total
        while total - read > size * 2 {
            query.size = min(RoomQuery.sizes.upperBound, total - read - size)
            query.after = cursor
            let page = try await registry.rooms(query)
            read += page.rooms.count
            guard let next = page.next else { break }
            cursor = next
        }
        return cursor
    }
}
