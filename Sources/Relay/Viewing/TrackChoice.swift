/// Which tracks a viewer gets of a stream with Multitrack messages.
package enum TrackChoice: Hashable, Sendable {
    /// The default track of each kind, in messages of its own: see ``DefaultTracks``.
    case standard
    /// All of them, as Multitrack messages.
    case all
    /// This track of each kind that has it, the default track of the others; in messages of their own. 1…``last``.
    case one(UInt8)

    /// Each chosen track is packed once for all who chose it, which bounds what one stream's viewers can cost.
    package static let last: UInt8 = 15

    /// Reads the value of `track=` in a player's query: `all`, or a number from 0 on. Nil for anything else, which is not ours.
    ///
    /// Track 0 is the default track, or the kind has another default and no track 0.
    package init?(_ text: String) {
        switch text {
        case "all": self = .all
        case "0": self = .standard
        default:
            guard let id = UInt8(text), (1...Self.last).contains(id), text.first != "+" else { return nil }
            self = .one(id)
        }
    }

    /// The track of one's own, if the viewer chose one.
    var track: UInt8? { if case .one(let id) = self { id } else { nil } }

    /// Messages in a form that is not for such a viewer.
    var unwanted: EncodedMessage.Flags { self == .all ? .single : .tracks }
}

/// What all viewers of a fanout get: a wire format and, where they chose one, a track.
struct FanoutForm: Hashable {
    /// What every stream has, and the others are made from.
    static let rtmp = FanoutForm(.rtmp)

    let wireFormat: WireFormat
    let track: UInt8?

    init(_ wireFormat: WireFormat, track: UInt8? = nil) {
        self.wireFormat = wireFormat
        self.track = wireFormat.carriesTags ? track : nil
    }

    /// Those without a chosen track.
    static let plain = WireFormat.allCases.map { FanoutForm($0) }
    static let all =
        Self.plain
        + WireFormat.allCases.filter(\.carriesTags).flatMap { wireFormat in
            (1...TrackChoice.last).map { FanoutForm(wireFormat, track: $0) }
        }
}
