import Testing

@testable import RoomRegistry
@testable import Store

/// What differs between the two databases.
@Suite struct StoreDialectTests {
    @Test(arguments: [
        ("SELECT a FROM t WHERE b = $1 AND c = $2", true), ("VALUES ($1, $2) SET a = $1, b = $3", true), ("SELECT 1", true),
        ("WHERE a > $2 AND b = $1", false), ("WHERE a = $1 AND b = $3", false), ("WHERE a = $0", false),
    ]) func valuesAreNumberedByFirstUse(_ sql: String, _ isSo: Bool) {
        #expect(StoreDialect.isNumberedByFirstUse(sql) == isSo)
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
