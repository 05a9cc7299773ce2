import Rooms
import Support

/// Pages of rooms.
///
/// Every page reads ranges of one index and merges them. There is one per state and visibility that the filter allows (at most 12). A range
/// is no longer than the offset plus the page. A text search sorts at most ``searchLimit`` of its newest matches instead.
extension StoreAccess {
    /// Maximum matches of a text search that are sorted and counted.
    static let searchLimit = 1_000
    /// Maximum text matches examined for state, owner and visibility.
    static let searchDepth = 10_000

    /// A room's position in a list.
    private struct Place {
        let row: Int64
        let id: String
        let key: RoomCursor.Key
    }

    func rooms(_ query: RoomQuery) throws -> RoomPage {
        let plan = try RoomPlan(query, self.connection.dialect)
        var places: [Place]
        let total: Int
        var isCapped = false
        if let words = plan.words {
            var found = try self.search(words, plan)
            isCapped = found.isCapped
            total = found.places.count
            found.places.sort { plan.precedes(($0.key, $0.id), ($1.key, $1.id)) }
            if let cursor = plan.cursor { found.places.removeAll { !plan.precedes((cursor.key, cursor.id), ($0.key, $0.id)) } }
            places = found.places
        } else if plan.isEmpty {
            return RoomPage(rooms: [], total: 0, totalIsCapped: false, next: nil)
        } else {
            places = try self.merge(plan)
            total = try self.count(plan)
        }
        let page = places.dropFirst(plan.offset).prefix(query.size)
        let rooms = try page.compactMap { try self.room(row: $0.row) }
        let hasMore = places.count > plan.offset + query.size
        let next = hasMore ? page.last.map { RoomCursor(order: query.order, key: $0.key, id: $0.id).text } : nil
        return RoomPage(rooms: rooms, total: total, totalIsCapped: isCapped, next: next)
    }

    private func place(_ row: inout RowReader, _ plan: RoomPlan) -> Place {
        let number: Int64 = row.next()
        let id: String = row.next()
        let key: RoomCursor.Key =
            switch plan.keyColumn {
            case "created_at": .number(row.next())
            case self.connection.dialect.titleKey: .text(row.next())
            default: .none
            }
        return Place(row: number, id: id, key: key)
    }

    private func merge(_ plan: RoomPlan) throws -> [Place] {
        var places: [Place] = []
        let ranges = plan.ranges
        for range in ranges {
            places += try self.all(plan.sql(range), plan.arguments(range)) { row in self.place(&row, plan) }
        }
        if ranges.count > 1 { places.sort { plan.precedes(($0.key, $0.id), ($1.key, $1.id)) } }
        return places
    }

    private func count(_ plan: RoomPlan) throws -> Int {
        let query = plan.query
        if query.scope.isLimited { return try self.countWithin(plan) }
        var sql = "SELECT coalesce(sum(n), 0) FROM room_counts WHERE owner = ?"
        var arguments: [(any StoreConvertible)?] = [query.owner ?? ""]
        if !query.states.isEmpty {
            sql += " AND state IN (\(Self.marks(query.states.count)))"
            arguments += query.states.map(\.rawValue)
        }
        if let isPublic = query.isPublic {
            sql += " AND is_public = ?"
            arguments.append(isPublic)
        }
        return try self.first(sql, StoreArguments(arguments)) { (row: inout RowReader) -> Int in row.next() } ?? 0
    }

    /// Counts the rooms themselves: the counters know no scopes.
    private func countWithin(_ plan: RoomPlan) throws -> Int {
        let (query, seen) = (plan.query, ScopeCondition(plan.query.scope, room: "r.id"))
        var sql = "SELECT count(*) FROM rooms r WHERE 1 = 1"
        var arguments: [(any StoreConvertible)?] = []
        if let owner = query.owner {
            sql += " AND r.owner = ?"
            arguments.append(owner)
        }
        if !query.states.isEmpty {
            sql += " AND r.state IN (\(Self.marks(query.states.count)))"
            arguments += query.states.map(\.rawValue)
        }
        if let isPublic = query.isPublic {
            sql += " AND r.is_public = ?"
            arguments.append(isPublic)
        }
        return Int(try self.number(sql + seen.sql, StoreArguments(arguments + seen.arguments)) ?? 0)
    }

    private static func marks(_ count: Int) -> String { Array(repeating: "?", count: count).joined(separator: ", ") }

    private func search(_ words: String, _ plan: RoomPlan) throws -> (places: [Place], isCapped: Bool) {
        var conditions: [String] = []
        var arguments: [(any StoreConvertible)?] = []
        if !plan.query.states.isEmpty {
            conditions.append("r.state IN (\(Self.marks(plan.query.states.count)))")
            arguments += plan.query.states.map(\.rawValue)
        }
        if let owner = plan.query.owner {
            conditions.append("r.owner = ?")
            arguments.append(owner)
        }
        if let isPublic = plan.query.isPublic {
            conditions.append("r.is_public = ?")
            arguments.append(isPublic)
        }
        if plan.query.scope.isLimited {
            let seen = ScopeCondition(plan.query.scope, room: "r.id")
            conditions.append("1 = 1\(seen.sql)")
            arguments += seen.arguments
        }
        let filter = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
        let depth = conditions.isEmpty ? Self.searchLimit + 1 : Self.searchDepth
        let key = plan.keyColumn.isEmpty ? "" : ", r.\(plan.keyColumn)"
        let places = try self.all(
            """
            SELECT r.row, r.id\(key) FROM (
                \(self.connection.dialect.matches)
            ) AS matches \(self.connection.dialect.matchJoin) rooms r ON r.row = match \(filter) \(self.connection.dialect.matchOrder) LIMIT \(Self.searchLimit + 1)
            """, StoreArguments([words, depth] + arguments)
        ) { row in self.place(&row, plan) }
        if places.count > Self.searchLimit { return (Array(places.prefix(Self.searchLimit)), true) }
        let hasMore =
            try !conditions.isEmpty
            && self.number(self.connection.dialect.deepMatch, [words, Self.searchDepth]) != nil
        return (places, hasMore)
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

    func sql(_ range: Range) -> String {
        var conditions: [String] = []
        if range.owner != nil { conditions.append("owner = ?") }
        if range.state != nil { conditions.append("state = ? AND is_public = ?") }
        let order = self.keyColumn.isEmpty ? ["id"] : [self.keyColumn, "id"]
        if self.cursor != nil {
            let marks = order.map { _ in "?" }.joined(separator: ", ")
            conditions.append("(\(order.joined(separator: ", "))) \(self.isDescending ? "<" : ">") (\(marks))")
        }
        if self.query.scope.isLimited { conditions.append("1 = 1\(ScopeCondition(self.query.scope, room: "rooms.id").sql)") }
        let filter = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
        let direction = self.isDescending ? " DESC" : ""
        let key = self.keyColumn.isEmpty ? "" : ", \(self.keyColumn)"
        return "SELECT row, id\(key) FROM rooms \(filter) ORDER BY \(order.map { $0 + direction }.joined(separator: ", ")) LIMIT ?"
    }

    func arguments(_ range: Range) -> StoreArguments {
        var arguments: [(any StoreConvertible)?] = []
        if let owner = range.owner { arguments.append(owner) }
        if let state = range.state { arguments += [state.rawValue, range.isPublic] }
        if let cursor = self.cursor {
            switch cursor.key {
            case .number(let number): arguments.append(number)
            case .text(let text): arguments.append(self.dialect == .sqlite ? text : String(decoding: Self.folded(text), as: UTF8.self))
            case .none: break
            }
            arguments.append(cursor.id)
        }
        arguments += ScopeCondition(self.query.scope, room: "rooms.id").arguments
        return StoreArguments(arguments + [self.offset + self.query.size + 1])
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
