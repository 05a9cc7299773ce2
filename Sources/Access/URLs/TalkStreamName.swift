package import RTMP
package import Rooms
package import Support
package import Talk

/// A name in a room's talk channel.
///
/// `talk/<room>/<me>` is a voice, `talk/<room>/mix-<me>` the mix of everybody but me, `talk/<room>/mix` the mix of all. The names also work on a
/// connection to the app `live` (`live` / `talk/<room>/…`), so that a device needs only one. A value.
package struct TalkStreamName: Sendable, Equatable {
    /// The app of the talk channels.
    package static let app = "talk"
    /// The app whose connections may use these names too.
    private static let host = "live"

    package private(set) var roomID: RoomID
    package let target: TalkAddress

    package var path: String { Self.path(self.roomID, self.target) }

    package static func path(_ room: RoomID, _ target: TalkAddress) -> String { "\(self.prefix(of: room))\(target.name)" }

    /// The same participant's name in another room's channel.
    package func of(_ room: RoomID) -> TalkStreamName {
        var other = self
        other.roomID = room
        return other
    }

    /// Prefix of every stream of the room's channel.
    package static func prefix(of room: RoomID) -> String { "\(Self.app)/\(room)/" }

    package static func isTalk(path: String) -> Bool { path.hasPrefix("\(Self.app)/") }

    /// Whether the server makes this stream itself.
    package static func isMix(_ path: StreamPath) -> Bool {
        guard path.app == Self.app, let name = path.name.split(separator: "/").last.map(String.init) else { return false }
        return (try? TalkAddress(name))?.isMix == true
    }

    package static func isTalk(_ address: StreamAddress) -> Bool { self.name(address) != nil }

    /// Parses an address. Throws the problem if it is no name of a talk channel.
    package init(_ address: StreamAddress) throws(TalkStreamNameError) {
        let name = Self.name(address) ?? address.path
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw .form }
        do throws(FieldError) { self.roomID = try RoomID(checking: String(parts[0])) } catch { throw .room(error) }
        do throws(TalkAddressError) { self.target = try TalkAddress(String(parts[1])) } catch { throw .name(error) }
    }

    /// The address in the app `talk`.
    package static func canonical(_ address: StreamAddress) -> StreamAddress {
        guard address.app != Self.app, let name = Self.name(address) else { return address }
        // The longer form was accepted, so this one is valid.
        let canonical = try? StreamAddress(app: Self.app, name: address.query.isEmpty ? name : "\(name)?\(address.query)")
        return canonical ?? address
    }

    /// The same name with another query, which is a part of its present one.
    package static func address(_ address: StreamAddress, query: String) -> StreamAddress {
        // The longer query was accepted, so this one is valid.
        (try? StreamAddress(app: address.app, name: query.isEmpty ? address.name : "\(address.name)?\(query)")) ?? address
    }

    private static func name(_ address: StreamAddress) -> String? {
        if address.app == Self.app { return address.name }
        // Names of other forms may be streams.
        guard address.app == Self.host, address.name.hasPrefix("\(Self.app)/") else { return nil }
        let name = address.name.dropFirst(Self.app.utf8.count + 1)
        return name.count { $0 == "/" } == 1 ? String(name) : nil
    }
}

/// The reason why a name is not valid for a talk channel.
package enum TalkStreamNameError: Error, Equatable, CustomStringConvertible {
    case form
    case room(FieldError)
    case name(TalkAddressError)

    package var description: String {
        switch self {
        case .form: "expected talk/<room>/<name>, talk/<room>/mix-<name> or talk/<room>/mix"
        case .room(let error): "\(error)"
        case .name(let error): "\(error)"
        }
    }
}
