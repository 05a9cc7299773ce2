package import Rooms

// STUB: signatures to build against.

/// One second of a stream, for its history.
package struct StreamSecond: Sendable, Equatable {
    /// Milliseconds since 1970.
    package let at: Int64
    package let videoBitsPerSecond: Int
    package let audioBitsPerSecond: Int
    package let framesPerSecond: Double
    /// How unevenly messages arrive: mean deviation of arrival from timestamp, in ms (as RFC 3550 §6.4.1).
    package let arrivalJitterMs: Double
    /// Between the newest two keyframes.
    package let keyframeIntervalMs: Int64?
    package let viewers: Int
}

/// What can be done to streams and connections while they run.
extension ServerCore {
    /// Ends the push and tells its publisher why; viewers stay for the grace period unless `endsViewers`. False: there was none.
    package func cut(_ path: StreamPath, _ end: PushEnd, endsViewers: Bool) async -> Bool { preconditionFailure("stub") }
    /// Ends a connection; false when there is none with this id.
    package func endSession(_ id: UInt64) async -> Bool { preconditionFailure("stub") }
    /// Ends the connections that play the room's streams as this user. How many.
    package func endSessions(of user: String, in room: Room) async -> Int { preconditionFailure("stub") }
    /// The last minutes, oldest first; nil when the stream does not exist.
    package func history(of path: StreamPath) async -> [StreamSecond]? { preconditionFailure("stub") }
    /// Viewers now, by path; from memory.
    package func viewers(of path: StreamPath) -> Int { preconditionFailure("stub") }
}
