import Rooms

/// A token's scope as a condition of SQL. A value.
struct ScopeCondition {
    /// Begins with " AND "; empty for an unlimited token.
    let sql: String
    let arguments: [(any StoreConvertible)?]

    /// For rows with an app and the name of a stream or id of a room.
    init(_ scope: TokenScope, app: String, name: String) {
        self.init(scope, apps: { "\(app) IN (\($0))" }, name: name)
    }

    /// For recordings, pictures and the like. Talk has an app of its own, and belongs to its room's app.
    init(_ scope: TokenScope, app: String, name: String, room: String) {
        self.init(
            scope,
            apps: {
                """
                CASE WHEN \(app) = 'talk' THEN EXISTS (SELECT 1 FROM slots s WHERE s.room_id = \(room) AND s.number = 1 AND s.app IN (\($0)))
                ELSE \(app) IN (\($0)) END
                """
            }, name: name, repeats: 2)
    }

    /// For rooms, whose app is that of their streams.
    init(_ scope: TokenScope, room: String) {
        self.init(
            scope, apps: { "EXISTS (SELECT 1 FROM slots s WHERE s.room_id = \(room) AND s.number = 1 AND s.app IN (\($0)))" }, name: room)
    }

    private init(_ scope: TokenScope, apps: (_ marks: String) -> String, name: String, repeats: Int = 1) {
        var conditions: [String] = []
        var arguments: [(any StoreConvertible)?] = []
        if !scope.apps.isEmpty {
            conditions.append(apps(scope.apps.map { _ in "?" }.joined(separator: ", ")))
            for _ in 0..<repeats { arguments += scope.apps as [(any StoreConvertible)?] }
        }
        if !scope.rooms.isEmpty {
            conditions.append("(\(scope.rooms.map { _ in "substr(\(name), 1, ?) = ?" }.joined(separator: " OR ")))")
            for start in scope.rooms { arguments += [start.utf8.count, start] }
        }
        self.sql = conditions.map { " AND \($0)" }.joined()
        self.arguments = arguments
    }
}
