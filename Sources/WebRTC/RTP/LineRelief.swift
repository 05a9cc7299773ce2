/// How much of a stream a viewer gets whose line does not take it: everything, then keyframes, then sound alone, then nothing. A value; the time is an input.
///
/// ```
/// all --overwhelmed for 4 s--> keyframes --still--> sound --still--> none
///  <-----well for 5 s, twice as long after each relapse------
/// ```
package struct LineRelief: Sendable, Equatable {
    package enum Stage: String, Sendable, CaseIterable {
        case all, keyframes, sound
        /// The viewer is to go.
        case none
    }

    package private(set) var stage = Stage.all
    private var illSinceMs: Int64?
    private var wellSinceMs: Int64?
    private var changedMs: Int64 = .min / 2
    private var patienceMs = LineRelief.wellMs

    /// A joiner's burst fills the queues of a line that takes the stream for so long at most.
    private static let illMs: Int64 = 4_000
    private static let wellMs: Int64 = 5_000
    private static let longestWellMs: Int64 = 60_000
    /// A stage that lasted for less was a relapse.
    private static let steadyMs: Int64 = 60_000

    package init() {}

    /// Notes how the line does, about once a second. `isWell`: nil while nothing is known. `hasSound`: sound goes out besides pictures. Returns whether the
    /// stage has changed.
    package mutating func note(isWell: Bool?, hasSound: Bool, nowMs: Int64) -> Bool {
        guard let isWell, self.stage != .none else { return false }
        if isWell {
            self.illSinceMs = nil
            let since = self.wellSinceMs ?? nowMs
            self.wellSinceMs = since
            guard self.stage != .all, nowMs - since >= self.patienceMs else { return false }
            self.change(to: self.stage == .sound ? .keyframes : .all, nowMs: nowMs)
        } else {
            self.wellSinceMs = nil
            let since = self.illSinceMs ?? nowMs
            self.illSinceMs = since
            guard nowMs - since >= Self.illMs else { return false }
            self.patienceMs = nowMs - self.changedMs < Self.steadyMs ? min(Self.longestWellMs, 2 * self.patienceMs) : Self.wellMs
            self.change(to: self.stage == .all ? .keyframes : self.stage == .keyframes && hasSound ? .sound : .none, nowMs: nowMs)
        }
        return true
    }

    private mutating func change(to stage: Stage, nowMs: Int64) {
        (self.stage, self.changedMs, self.illSinceMs, self.wellSinceMs) = (stage, nowMs, nil, nil)
    }
}
