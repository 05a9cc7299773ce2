import Foundation
import Rooms

/// What SQLite and PostgreSQL cannot say in the same words. All other statements are SQLite's, in a form that ``translated`` turns into
/// PostgreSQL's.
enum StoreDialect: Sendable {
    case sqlite
    case postgres

    /// The column that orders rooms by title, without regard to the case of ASCII letters.
    var titleKey: String { self == .sqlite ? "title" : "title_key" }

    // MARK: - Events

    /// The newest id ever given.
    var lastEventID: String {
        switch self {
        case .sqlite: "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
        case .postgres: "SELECT event FROM heads"
        }
    }

    /// Inserts an event and returns its id. Ids are in the order of commits, without a gap: in PostgreSQL one row counts them, which a
    /// sequence would not do.
    var insertEvent: String {
        switch self {
        case .sqlite:
            "INSERT INTO events (number, kind, room_id, instance, at, data, app, subject) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
        case .postgres:
            """
            WITH head AS (UPDATE heads SET event = event + 1 RETURNING event)
            INSERT INTO events (id, number, kind, room_id, instance, at, data, app, subject)
            VALUES ((SELECT event FROM head), ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
            """
        }
    }

    /// A member of a column's JSON object, as text.
    func member(_ name: String, of column: String) -> String {
        self == .sqlite ? "json_extract(\(column), '$.\(name)')" : "(\(column)::json ->> '\(name)')"
    }

    // MARK: - Files

    /// Writes the store's id anew, which shows that a log belongs to this file. Nil where the store is no file.
    func markStore(_ id: Int64) -> String? { self == .sqlite && id != 0 ? "PRAGMA user_version = \(id)" : nil }

    /// The store's random id, made with its schema; 0 if it has none. Nil where the store is no file.
    var storeID: String? { self == .sqlite ? "PRAGMA user_version" : nil }

    /// Makes the connection overwrite what it deletes or changes. Nil where the store is no file.
    var overwriteDeleted: String? { self == .sqlite ? "PRAGMA secure_delete = ON" : nil }

    // MARK: - Words of rooms

    var insertWords: String {
        switch self {
        case .sqlite: "INSERT INTO room_words (rowid, words) VALUES (?, ?)"
        case .postgres: "INSERT INTO room_words (row, words) VALUES (?, ?::tsvector)"
        }
    }

    var updateWords: String {
        switch self {
        case .sqlite: "UPDATE room_words SET words = ? WHERE rowid = (SELECT row FROM rooms WHERE id = ?)"
        case .postgres: "UPDATE room_words SET words = ?::tsvector WHERE row = (SELECT row FROM rooms WHERE id = ?)"
        }
    }

    var deleteWords: String {
        switch self {
        case .sqlite: "DELETE FROM room_words WHERE rowid = (SELECT row FROM rooms WHERE id = ?)"
        case .postgres: "DELETE FROM room_words WHERE row = (SELECT row FROM rooms WHERE id = ?)"
        }
    }

    /// Rows of rooms with these words, the newest first: words and limit are its arguments.
    var matches: String {
        switch self {
        case .sqlite: "SELECT rowid AS match FROM room_words WHERE room_words MATCH ? ORDER BY rowid DESC LIMIT ?"
        case .postgres: "SELECT row AS match FROM room_words WHERE words @@ ?::tsquery ORDER BY row DESC LIMIT ?"
        }
    }

    /// Whether there is a match after this many.
    var deepMatch: String {
        switch self {
        case .sqlite: "SELECT 1 FROM room_words WHERE room_words MATCH ? LIMIT 1 OFFSET ?"
        case .postgres: "SELECT 1 FROM room_words WHERE words @@ ?::tsquery LIMIT 1 OFFSET ?"
        }
    }

    /// Joins matches with rooms. SQLite keeps the order of the left side.
    var matchJoin: String { self == .sqlite ? "CROSS JOIN" : "JOIN" }
    var matchOrder: String { self == .sqlite ? "" : "ORDER BY match DESC" }

    /// A room's words, as the column takes them.
    func words(of room: Room) -> String {
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
    func query(_ text: String) -> String? {
        guard self == .postgres else { return RoomWords.query(text) }
        let phrases = RoomWords.phrases(text).map { words in words.map { "'\(Self.folded($0))'" }.joined(separator: " <-> ") }
        return phrases.isEmpty ? nil : phrases.joined(separator: " & ") + ":*"
    }

    /// Without case, and without diacritics of Latin letters, as SQLite's search folds words.
    static func folded(_ word: String) -> String {
        var kept = String.UnicodeScalarView()
        var isOfLatin = false
        for scalar in word.lowercased().decomposedStringWithCanonicalMapping.unicodeScalars {
            if (0x300...0x36F).contains(scalar.value), isOfLatin { continue }
            isOfLatin = scalar.isASCII
            kept.append(scalar)
        }
        return String(kept).precomposedStringWithCanonicalMapping
    }

    // MARK: - Translation

    /// A statement of SQLite's in PostgreSQL's words: `?` and `?2` are `$1` and `$2`, hints for indexes go.
    static func translated(_ sql: String) -> String {
        var result = ""
        var (highest, quote): (Int, Character?) = (0, nil)
        var rest = sql[...]
        func starts(_ word: String) -> Bool { rest.hasPrefix(word) }
        while let character = rest.first {
            if let open = quote {
                if character == open { quote = nil }
                result.append(character)
                rest.removeFirst()
                continue
            }
            switch character {
            case "'", "\"":
                quote = character
                result.append(character)
                rest.removeFirst()
            case "?":
                rest.removeFirst()
                let digits = rest.prefix { $0.isASCII && $0.isNumber }
                rest.removeFirst(digits.count)
                let number = Int(digits) ?? highest + 1
                highest = max(highest, number)
                result += "$\(number)"
            // A column that no index may serve; PostgreSQL chooses for itself.
            case "+" where rest.dropFirst().first.map { $0.isLetter } == true:
                rest.removeFirst()
            case "I" where starts("INDEXED BY "):
                rest.removeFirst("INDEXED BY ".count)
                rest = rest.drop { $0 != " " }
            case "i" where starts("instr("):
                result += "strpos"
                rest.removeFirst("instr".count)
            default:
                result.append(character)
                rest.removeFirst()
            }
        }
        return result
    }
}
