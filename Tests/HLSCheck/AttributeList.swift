/// The values of a tag's attribute-list, RFC 8216bis §4.2.
package struct AttributeList: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
        case quoted(String)
        case bare(String)
    }

    private(set) var values: [String: Value] = [:]

    /// Returns nil if the text breaks the grammar or repeats a name.
    init?(_ text: Substring) {
        var rest = text.utf8
        while true {
            let name = rest.prefix { $0 != UInt8(ascii: "=") }
            guard !name.isEmpty, name.allSatisfy(Self.isNameByte) else { return nil }
            rest = rest.dropFirst(name.count)
            guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
            let value: Value
            if rest.first == UInt8(ascii: "\"") {
                let content = rest.dropFirst().prefix { $0 != UInt8(ascii: "\"") }
                rest = rest.dropFirst(content.count + 1)
                guard rest.popFirst() == UInt8(ascii: "\"") else { return nil }
                value = .quoted(String(Substring(content)))
            } else {
                let content = rest.prefix { $0 != UInt8(ascii: ",") }
                rest = rest.dropFirst(content.count)
                guard !content.isEmpty, !content.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: "\"") }) else { return nil }
                value = .bare(String(Substring(content)))
            }
            guard self.values.updateValue(value, forKey: String(Substring(name))) == nil else { return nil }
            guard let comma = rest.popFirst() else { return }
            guard comma == UInt8(ascii: ",") else { return nil }
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }

    func quoted(_ name: String) -> String? {
        if case .quoted(let text) = self.values[name] { text } else { nil }
    }

    func bare(_ name: String) -> String? {
        if case .bare(let text) = self.values[name] { text } else { nil }
    }

    /// Microseconds of a decimal-floating-point number of seconds.
    func seconds(_ name: String) -> Int64? { self.bare(name).flatMap { Decimal.micros($0[...]) } }
    func integer(_ name: String) -> Int? { self.bare(name).flatMap { Decimal.integer($0[...]) } }
}

/// Numbers and dates in the notation of playlists.
enum Decimal {
    /// decimal-integer: digits only, at most 20.
    static func integer(_ text: Substring) -> Int? {
        (1...20).contains(text.utf8.count) && text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
    }

    /// Millionths of an unsigned decimal-floating-point; digits beyond the sixth are dropped.
    static func micros(_ text: Substring) -> Int64? {
        let halves = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = halves.first.flatMap(Self.integer), whole < 1_000_000_000 else { return nil }
        guard halves.count == 2 else { return Int64(whole) * 1_000_000 }
        guard let fraction = Self.integer(String((String(halves[1]) + "000000").prefix(6))[...]), !halves[1].isEmpty,
            halves[1].utf8.allSatisfy({ (48...57).contains($0) })
        else { return nil }
        return Int64(whole) * 1_000_000 + Int64(fraction)
    }

    /// Milliseconds since 1970 of `YYYY-MM-DDThh:mm:ss[.fff](Z|±hh:mm)`.
    static func date(_ text: Substring) -> Int64? {
        let characters = Array(text.utf8)
        guard characters.count >= 20, characters[4] == 45, characters[7] == 45, characters[10] == 84, characters[13] == 58,
            characters[16] == 58
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            guard range.upperBound <= characters.count else { return nil }
            return Self.integer(Substring(decoding: characters[range], as: UTF8.self)).map(Int64.init)
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month), hour < 24, minute < 60, second < 61
        else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day >= 1, day <= lengths[Int(month) - 1] else { return nil }
        var days = lengths.prefix(Int(month) - 1).reduce(day - 1, +)
        for earlier in stride(from: Int64(1970), to: year, by: 1) {
            days += earlier % 4 == 0 && (earlier % 100 != 0 || earlier % 400 == 0) ? 366 : 365
        }
        var millis = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000
        var index = 19
        if characters[index] == 46 {
            let digits = characters[(index + 1)...].prefix { (48...57).contains($0) }
            guard !digits.isEmpty, digits.count <= 9 else { return nil }
            millis += Int64(String(String(decoding: digits, as: UTF8.self) + "000").prefix(3)) ?? 0
            index += 1 + digits.count
        }
        switch index < characters.count ? characters[index] : 0 {
        case 90 where index + 1 == characters.count: return millis
        case 43 where index + 6 == characters.count, 45 where index + 6 == characters.count:
            guard let hours = number(index + 1..<index + 3), let minutes = number(index + 4..<index + 6) else { return nil }
            return millis + (characters[index] == 43 ? -1 : 1) * (hours * 60 + minutes) * 60_000
        default: return nil
        }
    }
}
