/// A participant of a talk channel. The name is 1 to 64 letters, digits, `_` and `-`, as in a stream's name.
///
/// A plain value. `mix` and all names that begin with `mix-` are reserved for the mixes.
package struct ParticipantID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let rawValue: String

    /// Bytes.
    package static let maxLength = 64

    /// Throws ``TalkAddressError`` for an invalid name.
    package init(_ text: String) throws(TalkAddressError) {
        guard !text.isEmpty else { throw .empty }
        guard text.utf8.count <= Self.maxLength else { throw .tooLong(found: text.utf8.count, max: Self.maxLength) }
        for (index, byte) in text.utf8.enumerated() {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): break
            case UInt8(ascii: "_"), UInt8(ascii: "-"): break
            default: throw .badCharacter(at: index)
            }
        }
        guard text != TalkAddress.mixName, !text.hasPrefix(TalkAddress.mixPrefix) else { throw .reserved(text) }
        self.rawValue = text
    }

    package var description: String { self.rawValue }

    package static func < (left: ParticipantID, right: ParticipantID) -> Bool { left.rawValue < right.rawValue }
}

/// The meaning of a stream's name within a room's talk channel.
///
///     talk/<room>/mix        everyone
///     talk/<room>/mix-<id>   everyone but this participant
///     talk/<room>/<id>       this participant's own voice: the only thing that can be published
///
/// A plain value.
package enum TalkAddress: Sendable, Hashable, CustomStringConvertible {
    case mix
    case mixWithout(ParticipantID)
    case voice(ParticipantID)

    /// Made by the server, not sent by a talker.
    package var isMix: Bool { if case .voice = self { false } else { true } }

    static let mixName = "mix"
    static let mixPrefix = "mix-"

    /// `name` is the part after the room, without the query.
    package init(_ name: String) throws(TalkAddressError) {
        if name == Self.mixName {
            self = .mix
        } else if name.hasPrefix(Self.mixPrefix) {
            let rest = String(name.dropFirst(Self.mixPrefix.count))
            guard !rest.isEmpty else { throw .missingParticipant }
            do throws(TalkAddressError) {
                self = .mixWithout(try ParticipantID(rest))
            } catch .badCharacter(let index) {
                throw .badCharacter(at: index + Self.mixPrefix.utf8.count)
            }
        } else {
            self = .voice(try ParticipantID(name))
        }
    }

    package var name: String {
        switch self {
        case .mix: Self.mixName
        case .mixWithout(let id): Self.mixPrefix + id.rawValue
        case .voice(let id): id.rawValue
        }
    }

    package var description: String { self.name }

    /// The speaker when this is published; throws `.notPublishable` for mixes, which the server makes.
    package func publisher() throws(TalkAddressError) -> ParticipantID {
        guard case .voice(let id) = self else { throw .notPublishable(self.name) }
        return id
    }
}

/// The reason why a name is invalid in a talk channel. Scope: the publish or play that named it.
package enum TalkAddressError: Error, Sendable, Equatable, CustomStringConvertible {
    case empty
    /// `mix-` without a participant.
    case missingParticipant
    /// Bytes.
    case tooLong(found: Int, max: Int)
    /// Bytes from the name's start.
    case badCharacter(at: Int)
    case reserved(String)
    case notPublishable(String)

    package var description: String {
        switch self {
        case .empty: "a participant's name is missing"
        case .missingParticipant: "mix- must be followed by a participant's name"
        case .tooLong(let found, let max): "a participant's name has \(found) bytes, at most \(max) accepted"
        case .badCharacter(let index): "character \(index + 1) of the name is not one of A-Z, a-z, 0-9, _ and -"
        case .reserved(let name): "\(name) is the name of a mix, not of a participant"
        case .notPublishable(let name): "\(name) is made by the server and cannot be published"
        }
    }
}
