package import NIOCore

/// A set of track ids; holds all 256 without allocating.
package struct TrackSet: Hashable, Sendable, CustomStringConvertible {
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    package init() {}

    package init(_ id: UInt8) { self.insert(id) }

    package mutating func insert(_ id: UInt8) {
        let bit: UInt64 = 1 << UInt64(id & 63)
        switch id >> 6 {
        case 0: self.words.0 |= bit
        case 1: self.words.1 |= bit
        case 2: self.words.2 |= bit
        default: self.words.3 |= bit
        }
    }

    package func contains(_ id: UInt8) -> Bool { Self(id).isSubset(of: self) }

    package func isSubset(of other: TrackSet) -> Bool {
        self.words.0 & ~other.words.0 == 0 && self.words.1 & ~other.words.1 == 0
            && self.words.2 & ~other.words.2 == 0 && self.words.3 & ~other.words.3 == 0
    }

    package static func == (left: TrackSet, right: TrackSet) -> Bool { left.words == right.words }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.words.0)
        hasher.combine(self.words.1)
        hasher.combine(self.words.2)
        hasher.combine(self.words.3)
    }

    package var description: String {
        (0...UInt8.max).filter(self.contains).map { String($0) }.joined(separator: ",")
    }
}

/// The place of a cached header, which a new one for the same slot replaces. A late joiner needs the last message of every slot, oldest
/// first.
///
/// A plain value, made once per header message, never per frame.
package struct HeaderSlot: Hashable, Sendable {
    package enum Purpose: UInt8, Sendable, Hashable {
        /// Codec configuration. Enhanced RTMP v2: SequenceStart and MPEG2TSSequenceStart are mutually exclusive, so they share it.
        case sequenceHeader
        /// `onMetaData`, or a video Metadata packet (HDR colour information).
        case metadata
        /// An audio MultichannelConfig packet.
        case channelConfig
    }

    package var kind: Frame.Kind
    package var purpose: Purpose
    /// Without Multitrack: track 0.
    package var tracks: TrackSet

    package init(kind: Frame.Kind, purpose: Purpose, tracks: TrackSet = TrackSet(0)) {
        self.kind = kind
        self.purpose = purpose
        self.tracks = tracks
    }

    /// Finds the slot of a message; nil unless it is a header that late joiners need. Throws if a Multitrack header's tracks are broken
    /// (`TrackIterator`): such a header must not be cached.
    package init?(kind: Frame.Kind, tag: TagInfo, payload: ByteBuffer) throws(MediaError) {
        let purpose: Purpose
        if tag.flags.contains(.sequenceHeader) {
            purpose = .sequenceHeader
        } else if tag.flags.contains(.metadata) {
            purpose = .metadata
        } else if tag.flags.contains(.channelConfig) {
            purpose = .channelConfig
        } else {
            return nil
        }
        self.init(kind: kind, purpose: purpose)
        guard tag.flags.contains(.multitrack) else { return }
        self.tracks = TrackSet()
        var tracks = try TrackIterator(kind, payload)
        while let track = try tracks.next() { self.tracks.insert(track.id) }
    }

    /// Whether a header in this slot makes one in `other` obsolete. True for the same kind and purpose, if this slot has every track of
    /// `other`.
    package func supersedes(_ other: HeaderSlot) -> Bool {
        self.kind == other.kind && self.purpose == other.purpose && other.tracks.isSubset(of: self.tracks)
    }
}

extension Frame {
    /// Returns the slot to cache this message in; nil if it is not a header.
    package func headerSlot() throws(MediaError) -> HeaderSlot? {
        try HeaderSlot(kind: self.kind, tag: self.tag, payload: self.payload)
    }
}
