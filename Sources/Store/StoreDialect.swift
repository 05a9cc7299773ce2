import Foundation
package import Rooms

/// What SQLite and PostgreSQL cannot say in the same words. All other statements serve both: values are `$1` and so on, numbered by first use.
package enum StoreDialect: Sendable {
    case sqlite
    case postgres

    /// The column that orders rooms by title, without regard to the case of ASCII letters.
    package var titleKey: String { self == .sqlite ? "title" : "title_key" }

    /// A column that no index of SQLite's serves. PostgreSQL chooses for itself.
    package func unindexed(_ column: String) -> String { self == .sqlite ? "+\(column)" : column }

    /// Makes SQLite use this index. PostgreSQL chooses for itself.
    package func index(_ name: String) -> String { self == .sqlite ? "INDEXED BY \(name)" : "" }

    /// The position of a text in a column, from 1; 0 where it is not.
    package func position(of text: String, in column: String) -> String { "\(self == .sqlite ? "instr" : "strpos")(\(column), \(text))" }

    /// Whether `$1`, `$2` and so on come first in this order: SQLite gives values to them by their first use, PostgreSQL by number.
    package static func isNumberedByFirstUse(_ sql: String) -> Bool {
        var highest = 0
        for piece in sql.split(separator: "$", omittingEmptySubsequences: false).dropFirst() {
            guard let number = Int(piece.prefix { $0.isASCII && $0.isNumber }) else { continue }
            guard (1...highest + 1).contains(number) else { return false }
            highest = max(highest, number)
        }
        return true
    }

    // MARK: - Events

    /// The newest id ever given.
    package var lastEventID: String {
        switch self {
        case .sqlite: "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
        case .postgres: "SELECT event FROM heads"
        }
    }

    /// Inserts an event and returns its id. Ids are in the order of commits, without a gap: in PostgreSQL one row counts them, which a
    /// sequence would not do.
    package var insertEvent: String {
        switch self {
        case .sqlite:
            "INSERT INTO events (number, kind, room_id, instance, at, data, app, subject) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id"
        case .postgres:
            """
            WITH head AS (UPDATE heads SET event = event + 1 RETURNING event)
            INSERT INTO events (id, number, kind, room_id, instance, at, data, app, subject)
            VALUES ((SELECT event FROM head), $1, $2, $3, $4, $5, $6, $7, $8) RETURNING id
            """
        }
    }

    /// A member of a column's JSON object, as text.
    package func member(_ name: String, of column: String) -> String {
        self == .sqlite ? "json_extract(\(column), '$.\(name)')" : "(\(column)::json ->> '\(name)')"
    }

    // MARK: - Files

    /// Writes the store's id anew, which shows that a log belongs to this file. Nil where the store is no file.
    package func markStore(_ id: Int64) -> String? { self == .sqlite && id != 0 ? "PRAGMA user_version = \(id)" : nil }

    /// The store's random id, made with its schema; 0 if it has none. Nil where the store is no file.
    package var storeID: String? { self == .sqlite ? "PRAGMA user_version" : nil }

    /// Makes the connection overwrite what it deletes or changes. Nil where the store is no file.
    package var overwriteDeleted: String? { self == .sqlite ? "PRAGMA secure_delete = ON" : nil }

    // MARK: - Words of rooms

    package var insertWords: String {
        switch self {
        case .sqlite: "INSERT INTO room_words (rowid, words) VALUES ($1, $2)"
        case .postgres: "INSERT INTO room_words (row, words) VALUES ($1, $2::tsvector)"
        }
    }

    package var updateWords: String {
        switch self {
        case .sqlite: "UPDATE room_words SET words = $1 WHERE rowid = (SELECT row FROM rooms WHERE id = $2)"
        case .postgres: "UPDATE room_words SET words = $1::tsvector WHERE row = (SELECT row FROM rooms WHERE id = $2)"
        }
    }

    package var deleteWords: String {
        switch self {
        case .sqlite: "DELETE FROM room_words WHERE rowid = (SELECT row FROM rooms WHERE id = $1)"
        case .postgres: "DELETE FROM room_words WHERE row = (SELECT row FROM rooms WHERE id = $1)"
        }
    }

    /// Rows of rooms with these words, the newest first: words and limit are its arguments.
    package var matches: String {
        switch self {
        case .sqlite: "SELECT rowid AS match FROM room_words WHERE room_words MATCH $1 ORDER BY rowid DESC LIMIT $2"
        case .postgres: "SELECT row AS match FROM room_words WHERE words @@ $1::tsquery ORDER BY row DESC LIMIT $2"
        }
    }

    /// Whether there is a match after this many.
    package var deepMatch: String {
        switch self {
        case .sqlite: "SELECT 1 FROM room_words WHERE room_words MATCH $1 LIMIT 1 OFFSET $2"
        case .postgres: "SELECT 1 FROM room_words WHERE words @@ $1::tsquery LIMIT 1 OFFSET $2"
        }
    }

    /// Joins matches with rooms. SQLite begins with the left side.
    package var matchJoin: String { self == .sqlite ? "CROSS JOIN" : "JOIN" }

    /// A room's words, as the column takes them.
    package func words(of room: Room) -> String {
        switch self {
        case .sqlite: RoomWords.indexed(room)
        case .postgres:
            RoomWords.indexed(room).split(separator: " ").prefix(Self.mostPositions).enumerated().map {
                "'\(Self.folded(String($1)))':\($0 + 1)"
            }.joined(separator: " ")
        }
    }

    /// Positions in a tsvector end here.
    private static let mostPositions = 16_383

    /// A search for this text, as `matches` takes it. Nil if it has no words.
    package func query(_ text: String) -> String? {
        guard self == .postgres else { return RoomWords.query(text) }
        let phrases = RoomWords.phrases(text).map { words in words.map { "'\(Self.folded($0))'" }.joined(separator: " <-> ") }
        return phrases.isEmpty ? nil : phrases.joined(separator: " & ") + ":*"
    }

    /// Without case, and without diacritics of Latin letters, as SQLite's search folds words.
    package static func folded(_ word: String) -> String {
        var kept = String.UnicodeScalarView()
        var isOfLatin = false
        for scalar in word.lowercased().decomposedStringWithCanonicalMapping.unicodeScalars {
            if (0x300...0x36F).contains(scalar.value), isOfLatin { continue }
            isOfLatin = scalar.isASCII
            kept.append(scalar)
        }
        return String(kept).precomposedStringWithCanonicalMapping
    }
}
