package import Support

/// The id of a room, which never changes: 1–64 of `A–Z a–z 0–9 _ -`. After an ended room's retention it is free again.
package struct RoomID: Hashable, Sendable, Comparable, CustomStringConvertible {
    @ExactText package var rawValue: String

    package init(checking text: String) throws(FieldError) {
        guard Self.isID(text) else { throw FieldError("roomId", text, "expected 1 to 64 of A-Z a-z 0-9 _ -") }
        self._rawValue = text.exact
    }

    /// Makes an id from stored text, which was checked before it was stored.
    package init(stored text: String) { self._rawValue = text.exact }

    /// Returns "r" and 12 random letters and digits (59 bits), none of which look alike.
    package static func random() -> RoomID {
        let alphabet = Array("abcdefghjkmnpqrstuvwxyz23456789")
        return RoomID(stored: "r" + String((0..<12).map { _ in alphabet[Int.random(in: alphabet.indices)] }))
    }

    /// The rule for ids of rooms, users and devices.
    package static func isID(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    package static func < (left: RoomID, right: RoomID) -> Bool { left.rawValue < right.rawValue }
    package var description: String { self.rawValue }
}

/// A stream's address: app and name, joined as "app/name" everywhere that streams are keyed.
package struct StreamPath: Hashable, Sendable, CustomStringConvertible {
    @ExactText package var app: String
    @ExactText package var name: String

    package init(app: String, name: String) {
        self._app = app.exact
        self._name = name.exact
    }

    /// Splits "app/name"; nil without both parts.
    package init?(_ path: String) {
        guard let slash = path.firstIndex(of: "/"), slash != path.startIndex, path.index(after: slash) != path.endIndex else { return nil }
        self.init(app: String(path[..<slash]), name: String(path[path.index(after: slash)...]))
    }

    package var description: String { "\(self.app)/\(self.name)" }
}

/// The number of one push, from admission to end. Its begin and end share it; it grows with every push and is never reused.
package struct PushSequence: Hashable, Sendable, Comparable {
    package let rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
    package static func < (left: PushSequence, right: PushSequence) -> Bool { left.rawValue < right.rawValue }
}
