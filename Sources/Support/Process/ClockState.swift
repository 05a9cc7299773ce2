import CFileStatus

/// Whether something, such as chrony or systemd-timesyncd, keeps the machine's clock right.
package enum ClockState: Sendable, Equatable {
    case synchronised
    case free
    /// The kernel does not say, as in some containers.
    case unknown

    /// adjtimex(2). Changes nothing.
    package static var now: ClockState {
        switch earshot_clock_state() {
        case 0...4: .synchronised
        case 5: .free
        default: .unknown
        }
    }
}
