import Support

/// The life of a connection, up to the one log line about its end. A value: it decides, and the connection acts.
///
/// ```
/// opening ──► open ──► closing ──► gone ──► over
/// ```
/// Each stage may be skipped: a refused connection is never open, and a connection that its peer ends is never closing.
enum ConnectionLifecycle: Equatable {
    /// The channel opens; the connection is not admitted yet.
    case opening
    /// The connection was admitted and counts against the limits.
    case open
    /// The close reason is final: output still leaves, input is ignored. `hasPlace`: the connection still counts against the limits.
    case closing(End, hasPlace: Bool)
    /// The channel is closed; messages that arrived before may still be read.
    case gone(End?, hasPlace: Bool)
    /// Everything was released and the end was logged.
    case over(End?)

    /// The reason why the connection ended.
    struct End: Equatable {
        let reason: CloseReason
        let detail: String?
    }

    /// An action for the connection to carry out.
    enum Action: Equatable {
        case giveBackPlace
        /// Count and log the end.
        case log(End)
    }

    var end: End? {
        switch self {
        case .opening, .open: nil
        case .closing(let end, _): end
        case .gone(let end, _), .over(let end): end
        }
    }

    /// Whether there is a reason to end. Asked for each message, so it copies nothing.
    var isEnding: Bool {
        switch self {
        case .closing, .gone(.some, _), .over(.some): true
        case .opening, .open, .gone(nil, _), .over(nil): false
        }
    }

    /// Whether the channel is closed.
    var isGone: Bool {
        switch self {
        case .gone, .over: true
        case .opening, .open, .closing: false
        }
    }

    private var hasPlace: Bool {
        switch self {
        case .opening, .over: false
        case .open: true
        case .closing(_, let hasPlace), .gone(_, let hasPlace): hasPlace
        }
    }

    /// Records that the connection was admitted.
    mutating func admitted() { if self == .opening { self = .open } }

    /// Records the close reason; only the first one counts. Returns whether this is the first.
    mutating func note(_ reason: CloseReason, _ detail: String?) -> Bool {
        guard self.end == nil else { return false }
        let end = End(reason: reason, detail: detail)
        switch self {
        case .opening, .open, .closing: self = .closing(end, hasPlace: self.hasPlace)
        case .gone: self = .gone(end, hasPlace: self.hasPlace)
        case .over: self = .over(end)
        }
        return true
    }

    mutating func channelClosed() { if !self.isGone { self = .gone(self.end, hasPlace: self.hasPlace) } }

    /// Records the end and returns its actions, once for any number of calls. Without a reason, the client closed the connection.
    mutating func ended() -> [Action] {
        if case .over = self { return [] }
        let end = self.end
        let place: [Action] = self.hasPlace ? [.giveBackPlace] : []
        self = .over(end)
        return place + [.log(end ?? End(reason: .clientClosed, detail: nil))]
    }
}
