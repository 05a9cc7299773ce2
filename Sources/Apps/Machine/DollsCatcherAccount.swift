/// A guest of the `/dollsCatcher/` API, and the rules for accounts' names. A value.
package struct DollsCatcherAccount: Sendable, Equatable {
    /// `player<sequence><2 digits>`.
    package let accid: String
    /// `玩家<6 digits>`.
    package let nickname: String

    /// An existing account.
    package init(accid: String, nickname: String) {
        self.accid = accid
        self.nickname = nickname
    }

    /// `sequence` is counted by the caller and makes the account unique; `random` gives the digits.
    package init(sequence: UInt32, random: UInt32) {
        self.accid = "player\(sequence)\(Self.digits(random % 100, 2))"
        self.nickname = "玩家\(Self.digits(random / 100 % 1_000_000, 6))"
    }

    private static func digits(_ number: UInt32, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }

    /// 1 to 20 of `a–z A–Z 0–9 @ . _ -`.
    package static func isAccid(_ text: String) -> Bool {
        (1...20).contains(text.utf8.count) && text.utf8.allSatisfy { self.isAlphanumeric($0) || "@._-".utf8.contains($0) }
    }

    /// 1 to 10 letters, digits, or Chinese characters.
    package static func isNickname(_ text: String) -> Bool {
        (1...10).contains(text.unicodeScalars.count)
            && text.unicodeScalars.allSatisfy { scalar in
                (0x4E00...0x9FA5).contains(scalar.value) || UInt8(exactly: scalar.value).map(self.isAlphanumeric) ?? false
            }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: false
        }
    }
}
