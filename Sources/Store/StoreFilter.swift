package import Rooms

/// The conditions of a statement that is put together, and its values: each has the number of its first use, as both databases take it. A value.
package struct StoreFilter {
    private var conditions: [String] = []
    private var values: [(any StoreConvertible)?]

    /// `values`: those that come before the conditions, `$1` and so on.
    package init(_ values: [(any StoreConvertible)?] = []) { self.values = values }

    /// All conditions together.
    package var sql: String { self.conditions.isEmpty ? "TRUE" : self.conditions.joined(separator: " AND ") }
    package var arguments: StoreArguments { StoreArguments(self.values) }

    package mutating func and(_ condition: String) { self.conditions.append(condition) }

    /// Takes a value, and returns what stands for it.
    package mutating func mark(_ value: (any StoreConvertible)?) -> String {
        self.values.append(value)
        return "$\(self.values.count)"
    }

    /// The same for each of a list, with commas between.
    package mutating func marks(_ values: [some StoreConvertible]) -> String { values.map { self.mark($0) }.joined(separator: ", ") }

    // MARK: - Scopes of tokens

    /// For rows with an app and the name of a stream or id of a room.
    package mutating func and(_ scope: TokenScope, app: String, name: String) {
        if !scope.apps.isEmpty { self.and("\(app) IN (\(self.marks(scope.apps)))") }
        self.and(name, of: scope)
    }

    /// For recordings, pictures and the like. Talk has an app of its own, and belongs to its room's app.
    package mutating func and(_ scope: TokenScope, app: String, name: String, room: String) {
        if !scope.apps.isEmpty {
            let apps = self.marks(scope.apps)
            self.and(
                """
                CASE WHEN \(app) = 'talk' THEN EXISTS (SELECT 1 FROM slots s WHERE s.room_id = \(room) AND s.number = 1 AND s.app IN (\(apps)))
                ELSE \(app) IN (\(apps)) END
                """)
        }
        self.and(name, of: scope)
    }

    /// For rooms, whose app is that of their streams.
    package mutating func and(_ scope: TokenScope, room: String) {
        if !scope.apps.isEmpty {
            self.and("EXISTS (SELECT 1 FROM slots s WHERE s.room_id = \(room) AND s.number = 1 AND s.app IN (\(self.marks(scope.apps))))")
        }
        self.and(room, of: scope)
    }

    private mutating func and(_ name: String, of scope: TokenScope) {
        guard !scope.rooms.isEmpty else { return }
        let starts = scope.rooms.map { "substr(\(name), 1, \(self.mark($0.utf8.count))) = \(self.mark($0))" }
        self.and("(\(starts.joined(separator: " OR ")))")
    }
}
