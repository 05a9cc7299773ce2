import Rooms
import Store
import Support

/// Pages of rooms.
///
/// Every page reads ranges of one index and merges them. There is one per state and visibility that the filter allows (at most 12). A range
/// is no longer than the offset plus the page. A text search sorts at most ``searchDepth`` of its newest matches instead.
extension StoreAccess {
    /// Maximum matches of a text search that are counted.
    static let searchLimit = 1_000
    /// Maximum matches of a text search: the newest are examined for state, owner and visibility, and sorted. Its pages end with them.
    static let searchDepth = 10_000

    /// A room's position in a list.
    private struct Position {
        let row: Int64
        let id: String
        let key: RoomCursor.Key
    }

    func rooms(_ query: RoomQuery) throws -> RoomPage {
        let plan = try RoomPlan(query, self.connection.dialect)
        let positions: [Position]
        let total: Int
        var isCapped = false
        if let words = plan.words {
            positions = try self.search(words, plan)
            (total, isCapped) = try self.countMatches(words, plan)
        } else if plan.isEmpty {
            return RoomPage(rooms: [], total: 0, totalIsCapped: false, next: nil)
        } else {
            positions = try self.merge(plan)
            total = try self.count(plan)
        }
        let page = positions.dropFirst(plan.offset).prefix(query.size)
        let rooms = try page.compactMap { try self.room(row: $0.row) }
        let hasMore = positions.count > plan.offset + query.size
        let next = hasMore ? page.last.map { RoomCursor(order: query.order, key: $0.key, id: $0.id).text } : nil
        return RoomPage(rooms: rooms, total: total, totalIsCapped: isCapped, next: next)
    }

    private func position(_ row: inout RowReader, _ plan: RoomPlan) -> Position {
        let number: Int64 = row.next()
        let id: String = row.next()
        let key: RoomCursor.Key =
            switch plan.keyColumn {
            case "created_at": .number(row.next())
            case self.connection.dialect.titleKey: .text(row.next())
            default: .none
            }
        return Position(row: number, id: id, key: key)
    }

    private func merge(_ plan: RoomPlan) throws -> [Position] {
        var positions: [Position] = []
        let ranges = plan.ranges
        for range in ranges {
            let (sql, arguments) = plan.statement(range)
            positions += try self.all(sql, arguments) { row in self.position(&row, plan) }
        }
        if ranges.count > 1 { positions.sort { plan.precedes(($0.key, $0.id), ($1.key, $1.id)) } }
        return positions
    }

    private func count(_ plan: RoomPlan) throws -> Int {
        let query = plan.query
        if query.scope.isLimited || query.deviceUid != nil { return try self.countWithin(plan) }
        var filter = StoreFilter()
        filter.and("owner = \(filter.mark(query.owner ?? ""))")
        if !query.states.isEmpty { filter.and("state IN (\(filter.marks(query.states.map(\.rawValue))))") }
        if let isPublic = query.isPublic { filter.and("is_public = \(filter.mark(isPublic))") }
        let sql = "SELECT coalesce(sum(n), 0) FROM room_counts WHERE \(filter.sql)"
        return try self.first(sql, filter.arguments) { (row: inout RowReader) -> Int in row.next() } ?? 0
    }

    /// Counts the rooms themselves: the counters know no scopes and devices.
    private func countWithin(_ plan: RoomPlan) throws -> Int {
        var filter = StoreFilter()
        Self.restrict(&filter, plan.query)
        return Int(try self.number("SELECT count(*) FROM rooms r WHERE \(filter.sql)", filter.arguments) ?? 0)
    }

    /// To rooms `r` that the query asks for.
    private static func restrict(_ filter: inout StoreFilter, _ query: RoomQuery) {
        if !query.states.isEmpty { filter.and("r.state IN (\(filter.marks(query.states.map(\.rawValue))))") }
        if let owner = query.owner { filter.and("r.owner = \(filter.mark(owner))") }
        if let device = query.deviceUid { filter.and("r.device_uid = \(filter.mark(device))") }
        if let isPublic = query.isPublic { filter.and("r.is_public = \(filter.mark(isPublic))") }
        filter.and(query.scope, room: "r.id")
    }

    /// The page's matches and one more, in the order of the query.
    private func search(_ words: String, _ plan: RoomPlan) throws -> [Position] {
        var filter = StoreFilter([words, Self.searchDepth])
        Self.restrict(&filter, plan.query)
        let (key, order) = plan.place(&filter, table: "r.")
        return try self.all(
            """
            SELECT r.row, r.id\(key) FROM \(self.matchingRooms) WHERE \(filter.sql) ORDER BY \(order) LIMIT \(filter.mark(plan.longest))
            """, filter.arguments
        ) { row in self.position(&row, plan) }
    }

    /// Rooms `r` that match: words and depth are the first two arguments.
    private var matchingRooms: String {
        let dialect = self.connection.dialect
        return "(\(dialect.matches)) AS matches \(dialect.matchJoin) rooms r ON r.row = match"
    }

    private func countMatches(_ words: String, _ plan: RoomPlan) throws -> (total: Int, isCapped: Bool) {
        var filter = StoreFilter([words, Self.searchDepth])
        Self.restrict(&filter, plan.query)
        let limit = filter.mark(Self.searchLimit + 1)
        let count =
            try self.number(
                "SELECT count(*) FROM (SELECT 1 FROM \(self.matchingRooms) WHERE \(filter.sql) LIMIT \(limit)) AS counted", filter.arguments
            ) ?? 0
        if count > Int64(Self.searchLimit) { return (Self.searchLimit, true) }
        return (Int(count), try self.number(self.connection.dialect.deepMatch, [words, Self.searchDepth]) != nil)
    }

    func roomCounts() throws -> [RoomState: Int] {
        var counts: [RoomState: Int] = [:]
        for state in RoomState.allCases { counts[state] = 0 }
        let rows = try self.all("SELECT state, n FROM room_counts WHERE owner = ''") { row in
            (state: try row.word(RoomState.self), n: row.next() as Int)
        }
        for row in rows { counts[row.state, default: 0] += row.n }
        return counts
    }
}

/// A checked query and its SQL. The init throws for invalid queries.
struct RoomPlan {
    let query: RoomQuery
    let cursor: RoomCursor?
    /// Rooms to skip.
    let offset: Int
    private let dialect: StoreDialect
    /// The query for words; nil without a search.
    let words: String?
    /// Whether the search text has no words and so finds nothing.
    let isEmpty: Bool

    /// One range of an index: equal values of the filter's columns.
    struct Range {
        var owner: String?
        var state: RoomState?
        var isPublic: Bool?
    }

    init(_ query: RoomQuery, _ dialect: StoreDialect = .sqlite) throws(FieldError) {
        guard RoomQuery.sizes.contains(query.size) else {
            throw FieldError("pageSize", String(query.size), "expected \(RoomQuery.sizes.lowerBound) to \(RoomQuery.sizes.upperBound)")
        }
        guard query.page >= 1 else { throw FieldError("page", String(query.page), "expected 1 or more") }
        guard query.after != nil || query.page <= RoomQuery.deepest / query.size else {
            throw FieldError(
                "page", String(query.page),
                "`page` reaches only the first \(RoomQuery.deepest) rooms; use `after` with `next` for the others")
        }
        if let owner = query.owner, !RoomID.isID(owner) { throw FieldError("owner", owner, "expected 1 to 64 of A-Z a-z 0-9 _ -") }
        if let device = query.deviceUid, !RoomID.isID(device) {
            throw FieldError("deviceUid", device, "expected 1 to 64 of A-Z a-z 0-9 _ -")
        }
        let text = query.text ?? ""
        guard text.unicodeScalars.count <= RoomLimits.searchLength else {
            throw FieldError("q", text, "expected at most \(RoomLimits.searchLength) characters")
        }
        self.query = query
        self.cursor = if let after = query.after { try RoomCursor(after, order: query.order) } else { nil }
        self.offset = query.after == nil ? (query.page - 1) * query.size : 0
        self.dialect = dialect
        self.words = dialect.query(text)
        self.isEmpty = self.words == nil && text.contains { !$0.isWhitespace }
    }

    /// The column of the order; empty if ordered by id alone.
    var keyColumn: String {
        switch self.query.order {
        case .newest, .oldest: "created_at"
        case .title, .titleDescending: self.dialect.titleKey
        case .id: ""
        }
    }

    private var isDescending: Bool { self.query.order == .newest || self.query.order == .titleDescending }

    var ranges: [Range] {
        let query = self.query
        guard !query.states.isEmpty || query.owner != nil || query.isPublic != nil else { return [Range()] }
        let states = RoomState.allCases.filter { query.states.isEmpty || query.states.contains($0) }
        let visible = query.isPublic.map { [$0] } ?? [true, false]
        return states.flatMap { state in visible.map { Range(owner: query.owner, state: state, isPublic: $0) } }
    }

    func statement(_ range: Range) -> (sql: String, arguments: StoreArguments) {
        var filter = StoreFilter()
        if let owner = range.owner { filter.and("owner = \(filter.mark(owner))") }
        if let device = self.query.deviceUid { filter.and("device_uid = \(filter.mark(device))") }
        if let state = range.state { filter.and("state = \(filter.mark(state.rawValue)) AND is_public = \(filter.mark(range.isPublic))") }
        filter.and(self.query.scope, room: "rooms.id")
        let (key, order) = self.place(&filter, table: "")
        return (
            "SELECT row, id\(key) FROM rooms WHERE \(filter.sql) ORDER BY \(order) LIMIT \(filter.mark(self.longest))", filter.arguments
        )
    }

    /// Rows that a statement needs for the page and for whether there is another.
    var longest: Int { self.offset + self.query.size + 1 }

    /// Begins behind the cursor. Returns the key's column, if any, as a statement selects it, and the order.
    func place(_ filter: inout StoreFilter, table: String) -> (key: String, order: String) {
        let columns = (self.keyColumn.isEmpty ? ["id"] : [self.keyColumn, "id"]).map { table + $0 }
        if let cursor = self.cursor {
            var marks: [String] = []
            switch cursor.key {
            case .number(let number): marks.append(filter.mark(number))
            case .text(let text):
                marks.append(filter.mark(self.dialect == .sqlite ? text : String(decoding: Self.folded(text), as: UTF8.self)))
            case .none: break
            }
            marks.append(filter.mark(cursor.id))
            filter.and("(\(columns.joined(separator: ", "))) \(self.isDescending ? "<" : ">") (\(marks.joined(separator: ", ")))")
        }
        let order = columns.map { $0 + (self.isDescending ? " DESC" : "") }.joined(separator: ", ")
        return (self.keyColumn.isEmpty ? "" : ", \(table)\(self.keyColumn)", order)
    }

    /// Compares in the order of the indexes.
    func precedes(_ left: (key: RoomCursor.Key, id: String), _ right: (key: RoomCursor.Key, id: String)) -> Bool {
        let (first, second) = self.isDescending ? (right, left) : (left, right)
        switch (first.key, second.key) {
        case (.number(let one), .number(let other)) where one != other: return one < other
        case (.text(let one), .text(let other)):
            let (one, other) = (Self.folded(one), Self.folded(other))
            if one != other { return one.lexicographicallyPrecedes(other) }
        default: break
        }
        return first.id.utf8.lexicographicallyPrecedes(second.id.utf8)
    }

    /// Folds case as SQLite's NOCASE does.
    private static func folded(_ text: String) -> [UInt8] {
        text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }
}
