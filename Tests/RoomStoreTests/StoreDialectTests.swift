import Testing

@testable import RoomStore

/// What SQLite's statements become in PostgreSQL.
@Suite struct StoreDialectTests {
    @Test(arguments: [
        ("SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"),
        ("VALUES (?1, ?12, ?)", "VALUES ($1, $12, $13)"),
        ("SELECT '?', \"a?\" FROM t WHERE b = ?", "SELECT '?', \"a?\" FROM t WHERE b = $1"),
        ("SELECT 'it''s ?' WHERE a = ?", "SELECT 'it''s ?' WHERE a = $1"),
        ("WHERE +state = ? AND a + ? > 1", "WHERE state = $1 AND a + $2 > 1"),
        ("FROM t INDEXED BY t_a WHERE a < ?", "FROM t  WHERE a < $1"),
        ("WHERE instr(name, ?) > 0", "WHERE strpos(name, $1) > 0"),
    ]) func aStatementIsTranslated(_ sql: String, _ expected: String) {
        #expect(StoreDialect.translated(sql) == expected)
    }

    /// As SQLite's full-text search folds them: case everywhere, diacritics of Latin letters alone.
    @Test(arguments: [
        ("Café", "cafe"), ("ÅNGSTRÖM", "angstrom"), ("が", "が"), ("Й", "й"), ("한국", "한국"), ("กิน", "กิน"),
    ]) func aWordIsFolded(_ word: String, _ expected: String) {
        #expect(StoreDialect.folded(word) == expected)
    }

    @Test func aSearchIsPhrasesOfWhichTheLastIsABeginning() {
        #expect(StoreDialect.postgres.query("front-door Cam") == "'front' <-> 'door' & 'cam':*")
        #expect(StoreDialect.postgres.query("' | !") == nil)
    }
}
