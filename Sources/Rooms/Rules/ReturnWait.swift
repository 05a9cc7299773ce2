/// How long a room waits for a publisher to return: one rule, by the reason of its absence.
extension RoomPolicy {
    /// Milliseconds. Reasons other than absences wait as for a lost connection.
    package func waitMs(for reason: StateReason) -> Int64 {
        switch reason {
        case .stopped: self.cleanStopMs
        case .mediaIdle: self.idleGraceMs
        case .paused: self.pauseGraceMs
        default: self.graceMs
        }
    }
}

extension StateReason {
    /// Whether the server's end took the publisher away, which is through no fault of its own.
    package var isServersEnd: Bool { self == .serverRestart || self == .nodeLost }

    /// The reason that a push's end leaves behind.
    package init(after end: PushEnd) {
        switch end {
        case .clientStopped: self = .stopped
        case .dropped, .forbidden, .roomEnded: self = .dropped
        case .serverShutdown, .serverRestart: self = .serverRestart
        case .nodeLost: self = .nodeLost
        case .connectionLost, .mediaIdle, .takenOver, .protocolError, .refused: self = .publisherLost
        }
    }
}
