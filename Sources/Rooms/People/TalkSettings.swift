/// The settings of a room's talk channel. A value; rooms without their own use the server's.
package struct TalkSettings: Sendable, Equatable {
    package enum Mode: String, Sendable, CaseIterable {
        /// All talkers are heard, up to ``maxOpen``.
        case open
        /// One at a time: push to talk.
        case ptt
    }

    package var mode = Mode.open
    /// Maximum participants who may send voice, at a time.
    package var talkers = 8
    package var listeners = 50
    /// Maximum open microphones at a time, in mode open.
    package var maxOpen = 8
    /// How long the floor may be held, in mode ptt.
    package var maxHoldMs: Int64 = 30_000
    /// Whether a higher role takes the floor at once.
    package var preempts = false
    /// Whether listeners hear less of the others while they speak themselves.
    package var ducks = false

    package init() {}

    package static let talkerRange = 1...32
    package static let listenerRange = 1...1_000
    package static let holdRange: ClosedRange<Int64> = 1_000...600_000
}
