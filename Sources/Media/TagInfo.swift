package import NIOCore

/// The contents of a tag's header, read without touching the coded data.
///
/// A plain value without references: parsing and copying one does not allocate or count references.
package struct TagInfo: Sendable, Equatable {
    /// The properties of a message that relaying needs. An opaque message (of an unknown packet type) has none of `sequenceHeader`,
    /// `coded`, `endOfSequence`, `metadata`, `channelConfig` and `command`.
    package struct Flags: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) { self.rawValue = rawValue }

        // Other modules would run SetAlgebra's generic code, some ten times for each frame.
        @inlinable package func contains(_ member: Flags) -> Bool { self.rawValue & member.rawValue == member.rawValue }
        @inlinable package func isDisjoint(with other: Flags) -> Bool { self.rawValue & other.rawValue == 0 }

        /// Coded video that decoding can start from. With `multitrack` it applies to all tracks of the message.
        package static let keyframe = Flags(rawValue: 1 << 0)
        /// Codec configuration: AVC or AAC packet type 0, SequenceStart, MPEG2TSSequenceStart.
        package static let sequenceHeader = Flags(rawValue: 1 << 1)
        package static let endOfSequence = Flags(rawValue: 1 << 2)
        /// An Enhanced RTMP video Metadata packet (HDR colour information), or script data named `onMetaData`.
        package static let metadata = Flags(rawValue: 1 << 3)
        /// What late joiners need: see ``HeaderSlot``.
        package static let header: Flags = [.sequenceHeader, .metadata, .channelConfig]
        /// What does not go out as it came, alone and once.
        package static let headerOrTracks: Flags = [.sequenceHeader, .metadata, .channelConfig, .multitrack]
        /// What neither sound nor a picture between keyframes has, in a form that nothing is wrong with.
        package static let special: Flags = [
            .keyframe, .untimed, .unusable, .sequenceHeader, .metadata, .channelConfig, .endOfSequence, .multitrack, .singleTrack,
        ]
        /// An Enhanced RTMP Multitrack packet; `trackID` is its first track.
        package static let multitrack = Flags(rawValue: 1 << 4)
        /// The header names its codec by FourCC.
        package static let enhanced = Flags(rawValue: 1 << 5)
        /// Video frame type 5: a one-byte command (client-side seek) in place of coded data.
        package static let command = Flags(rawValue: 1 << 6)
        /// Carries media samples: the body is coded data and is not empty.
        package static let coded = Flags(rawValue: 1 << 7)
        /// An Enhanced RTMP audio MultichannelConfig packet (speaker layout).
        package static let channelConfig = Flags(rawValue: 1 << 8)
        /// Video frame type 3: may be dropped, no other frame refers to it.
        package static let disposable = Flags(rawValue: 1 << 9)
        /// Script data for servers or about the connection, which players do not receive. See `parseData`.
        package static let notForPlayers = Flags(rawValue: 1 << 10)
        /// Script data that arrived at time 0 in a running stream: it has no time of its own. Set by the relay.
        package static let untimed = Flags(rawValue: 1 << 11)
        /// Coded media that containers cannot hold as it came: see `FrameRepair`. Set by the relay.
        package static let unusable = Flags(rawValue: 1 << 12)
        /// Coded media without the sequence header that it needs, while the other kind can be decoded: players would wait for the header, and show
        /// nothing. Set by the relay.
        package static let headless = Flags(rawValue: 1 << 14)
        /// One track of a Multitrack message, for viewers that do not know Multitrack. Set by the relay; the whole message follows.
        package static let singleTrack = Flags(rawValue: 1 << 13)
    }

    /// The codec as the message names it.
    package enum Codec: Sendable, Hashable {
        case video(VideoCodec)
        case audio(AudioCodec)
    }

    package var flags: Flags
    /// nil in script data, enhanced commands, empty messages and messages with an unreadable codec.
    package var codec: Codec?
    /// The track of a OneTrack message, the first track of a ManyTracks one, otherwise 0.
    package var trackID: UInt8
    /// Presentation minus decode time of the (first) track's frame. Milliseconds; 24 bits on the wire.
    package var compositionTimeMs: Int32
    /// Nanoseconds to add to the message's timestamp, 0…999,999 (Enhanced RTMP v2, ModEx TimestampOffsetNano).
    package var timestampOffsetNanos: UInt32
    /// Offset of the (first) track's codec data, past every header. In bytes from the payload's first readable byte.
    package var bodyOffset: UInt32

    package init(
        flags: Flags = [], codec: Codec? = nil, trackID: UInt8 = 0, compositionTimeMs: Int32 = 0, timestampOffsetNanos: UInt32 = 0,
        bodyOffset: UInt32 = 0
    ) {
        self.flags = flags
        self.codec = codec
        self.trackID = trackID
        self.compositionTimeMs = compositionTimeMs
        self.timestampOffsetNanos = timestampOffsetNanos
        self.bodyOffset = bodyOffset
    }

    package var videoCodec: VideoCodec? { if case .video(let codec)? = self.codec { codec } else { nil } }

    package var audioCodec: AudioCodec? { if case .audio(let codec)? = self.codec { codec } else { nil } }

    /// Reads the header of a message of any kind. Throws if it is cut short or breaks its specification, but not for unknown packet types
    /// (returned as opaque) and unknown codecs.
    package static func parse(_ kind: Frame.Kind, _ payload: ByteBuffer) throws(MediaError) -> TagInfo {
        switch kind {
        case .audio: try Self.parseAudio(payload)
        case .video: try Self.parseVideo(payload)
        case .data: Self.parseData(payload)
        }
    }
}
