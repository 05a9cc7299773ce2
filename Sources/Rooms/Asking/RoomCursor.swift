package import Support

/// A position after a room in an ordered list. Opaque text to callers; checked when they return it.
package struct RoomCursor: Equatable {
    /// The room's sort key in the list.
    package enum Key: Equatable {
        case number(Int64)
        case text(String)
        /// The list is ordered by id alone.
        case none
    }
    package let order: RoomQuery.Order
    package let key: Key
    package let id: String

    private static let version = "1"
    private static let separator: Character = "\u{1F}"

    package var text: String {
        let key =
            switch self.key {
            case .number(let number): String(number)
            case .text(let text): text
            case .none: ""
            }
        return Base64URL.text([Self.version, self.order.rawValue, key, self.id].joined(separator: String(Self.separator)))
    }

    package init(order: RoomQuery.Order, key: Key, id: String) {
        self.order = order
        self.key = key
        self.id = id
    }

    /// Throws unless `text` is a cursor made for this order.
    package init(_ text: String, order: RoomQuery.Order) throws(FieldError) {
        let parts =
            text.utf8.count <= RoomQuery.longestCursor ? Base64URL.bytes(text).flatMap { String(validating: $0, as: UTF8.self) } : nil
        let fields = parts?.split(separator: Self.separator, omittingEmptySubsequences: false).map(String.init) ?? []
        guard fields.count == 4, fields[0] == Self.version, let made = RoomQuery.Order(rawValue: fields[1]), RoomID.isID(fields[3]) else {
            throw FieldError("after", text, "expected the previous page's `next`")
        }
        guard made == order else {
            throw FieldError("after", text, "expected the `next` of a page in the same order; this one is in order \(made.rawValue)")
        }
        switch order {
        case .newest, .oldest:
            guard let number = Int64(fields[2]) else { throw FieldError("after", text, "expected the previous page's `next`") }
            self.init(order: order, key: .number(number), id: fields[3])
        case .title, .titleDescending:
            self.init(order: order, key: .text(fields[2]), id: fields[3])
        case .id:
            self.init(order: order, key: .none, id: fields[3])
        }
    }
}

/// RFC 4648 §5, without padding.
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    package static func text(_ string: String) -> String {
        let bytes = Array(string.utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = group.reduce(0) { $0 << 8 | UInt32($1) }
            bits <<= UInt32(8 * (3 - group.count))
            for index in 0...group.count { text.append(self.alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)]) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes `text`; nil if ``text(_:)`` cannot have made it.
    package static func bytes(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for byte in text.utf8 {
            guard let value = self.alphabet.firstIndex(of: byte) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return count < 6 && bits & ((1 << UInt32(count)) - 1) == 0 ? bytes : nil
    }
}
