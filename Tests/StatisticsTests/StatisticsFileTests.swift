import Foundation
import Testing

@testable import Statistics

/// Statements and rows in plain values.
@Suite struct StatisticsFileTests {
    private static let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, r REAL, s TEXT) STRICT"

    @Test func whatIsWrittenIsRead() async throws {
        let path = NSTemporaryDirectory() + "earshot-statistics-\(UUID().uuidString).db"
        defer { for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) } }
        let file = try StatisticsFile(path: path) { try $0.runScript(Self.table) }
        let changed = try file.write { db in
            try db.run(
                "INSERT INTO t (n, r, s) VALUES (?, ?, ?)",
                forEach: [[Int64.max, 0.5, "é"], [7, 2.0, ""], [nil as Int?, nil as Double?, nil as String?]])
            return try [
                db.run("UPDATE t SET n = n WHERE n = ?1 OR s = ?2 OR n = ?1", [7, "é"]), db.run("DELETE FROM t WHERE id > ?", [99]),
            ]
        }
        #expect(changed == [2, 0])
        let (texts, sum, none) = try await file.read { db in
            let texts = try db.rows("SELECT * FROM t ORDER BY id").map { row in
                let (n, r, s): (Int64?, Double?, String?) = (row["n"], row["r"], row["s"])
                return "\(row["id"] as Int) \(n.map(String.init) ?? "-") \(r.map { "\($0)" } ?? "-") \(s ?? "-")"
            }
            return (texts, try db.number("SELECT count(*) FROM t WHERE n = ?", [7]), try db.number("SELECT n FROM t WHERE id = 3"))
        }
        #expect(texts == ["1 9223372036854775807 0.5 é", "2 7 2.0 ", "3 - - -"])
        #expect(sum == 1 && none == nil)
        try file.check()
        try file.close()
    }

    /// A failure of a statement is no damage; its description has neither the statement nor its values.
    @Test func failuresAndDamage() throws {
        let path = NSTemporaryDirectory() + "earshot-statistics-\(UUID().uuidString).db"
        defer { for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) } }
        let file = try StatisticsFile(path: path) { try $0.runScript(Self.table) }
        let error = try #require(throws: (any Error).self) {
            try file.write { try $0.run("INSERT INTO t (id, n) VALUES (1, ?)", ["secret"]) }
        }
        #expect(!StatisticsFile.isDamage(error) && StatisticsFile.describe(error).hasPrefix("SQLite "))
        #expect(!StatisticsFile.describe(error).contains("secret") && !StatisticsFile.describe(error).contains("INSERT"))
        try file.close()
        try Data(repeating: 0x55, count: 8_192).write(to: URL(fileURLWithPath: path))
        let damage = try #require(throws: (any Error).self) { try StatisticsFile(path: path) { _ in } }
        #expect(StatisticsFile.isDamage(damage))
    }
}
