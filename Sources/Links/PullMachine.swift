import LinkTransport
import Media

/// What a pull does with what arrives: a state machine. `Publisher`: the stream's publisher here.
///
/// ```
/// idle --frame--> opening --opened--> publishing
///   any but deleted --hold--> held --its time--> idle      any --delete--> deleted
///   opening, publishing --connection ended--> idle
/// ```
struct PullMachine<Publisher: Sendable>: Sendable {
    private enum Phase {
        /// No frame since the connection was made, or no connection.
        case idle
        /// The room is being asked; the frames wait.
        case opening(EarlyFrames)
        case publishing(Publisher, sinceMs: Int64)
        /// Refused here; retried later.
        case held(words: String, untilMs: Int64)
        case deleted
    }

    enum FrameAction {
        case publish(Publisher)
        /// Ask the room; the frame waits. Pass the number on to ``opened(_:run:nowMs:)``.
        case open(run: Int)
        /// The frame waits, or is not wanted.
        case wait
    }

    private var phase = Phase.idle
    /// Number of the connection; a late answer must not apply to the next.
    private var run = 0
    /// Consecutive holds.
    private var holds = 0
    /// Held pulls are retried like broken connections.
    private static var policy: ReconnectPolicy { ReconnectPolicy() }

    var publisher: Publisher? { if case .publishing(let publisher, _) = self.phase { publisher } else { nil } }
    /// The reason why the pull is held; nil when it is not.
    var heldFor: String? { if case .held(let words, _) = self.phase { words } else { nil } }
    var isDeleted: Bool { if case .deleted = self.phase { true } else { false } }
    var mayStart: Bool { !self.isDeleted && self.heldFor == nil }

    mutating func received(_ frame: Frame) -> FrameAction {
        switch self.phase {
        case .publishing(let publisher, _): return .publish(publisher)
        case .opening(var early):
            early.append(frame)
            self.phase = .opening(early)
            return .wait
        case .idle:
            var early = EarlyFrames()
            early.append(frame)
            self.phase = .opening(early)
            return .open(run: self.run)
        case .held, .deleted: return .wait
        }
    }

    /// The room admitted the pull. Returns the frames that waited; nil if `publisher` is not wanted any more. `nowMs`: of the steady clock.
    mutating func opened(_ publisher: Publisher, run: Int, nowMs: Int64) -> [Frame]? {
        guard run == self.run, case .opening(let early) = self.phase else { return nil }
        self.phase = .publishing(publisher, sinceMs: nowMs)
        return early.frames
    }

    /// Whether an answer belongs to the present connection.
    func isCurrent(_ run: Int) -> Bool { run == self.run }

    /// Returns the publisher that ends with the connection.
    mutating func connectionEnded() -> Publisher? {
        self.run += 1
        let publisher = self.publisher
        if self.mayStart { self.phase = .idle }
        return publisher
    }

    /// This server refuses the pull, or has ended its publisher. False if it is deleted. `random`: 0 to 1, spreads the retries.
    mutating func hold(_ words: String, nowMs: Int64, random: Double) -> Bool {
        guard !self.isDeleted else { return false }
        if case .publishing(_, let sinceMs) = self.phase, nowMs - sinceMs >= Int64(Self.policy.stableMs) { self.holds = 0 }
        self.holds += 1
        self.phase = .held(words: words, untilMs: nowMs + Int64(Self.policy.delayMs(failures: self.holds, random: random)))
        return true
    }

    /// Ends a hold whose time is over; returns whether there was one.
    mutating func goesOn(nowMs: Int64) -> Bool {
        guard case .held(_, let untilMs) = self.phase, nowMs >= untilMs else { return false }
        self.phase = .idle
        return true
    }

    /// Ends for good. Returns the publisher, if there is one.
    mutating func delete() -> Publisher? {
        let publisher = self.publisher
        self.phase = .deleted
        return publisher
    }
}
