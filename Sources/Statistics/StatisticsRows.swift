import Streaming

/// A finished play or push with the times of its begin and end. A value.
package struct Finished<Session: Sendable & Equatable>: Sendable, Equatable {
    package var session: Session
    /// Milliseconds since 1970.
    package var beganMs: Int64
    package var endedMs: Int64
}

/// Rows that wait to be written. Bounded: rows beyond the limit are lost, and counted. A value.
struct PendingRows: Sendable {
    private(set) var figures: [FigureKey: Figures] = [:]
    private(set) var plays: [Finished<FinishedPlay>] = []
    private(set) var pushes: [Finished<FinishedPush>] = []

    /// Rows of each kind: about 6 MB of plays.
    static let most = 20_000

    var count: Int { self.figures.count + self.plays.count + self.pushes.count }
    var isEmpty: Bool { self.count == 0 }

    /// Returns the number of rows lost.
    mutating func add(_ key: FigureKey, _ figures: Figures, most: Int = Self.most) -> Int {
        guard self.figures[key] != nil || self.figures.count < most else { return 1 }
        self.figures[key, default: Figures()].add(figures)
        return 0
    }

    mutating func add(_ play: Finished<FinishedPlay>, most: Int = Self.most) -> Int {
        guard self.plays.count < most else { return 1 }
        self.plays.append(play)
        return 0
    }

    mutating func add(_ push: Finished<FinishedPush>, most: Int = Self.most) -> Int {
        guard self.pushes.count < most else { return 1 }
        self.pushes.append(push)
        return 0
    }

    /// Puts rows that could not be written in front of the newer ones again. Returns the number of rows lost: the newest.
    mutating func putBack(_ former: PendingRows, most: Int = Self.most) -> Int {
        var lost = 0
        let newer = self
        self = former
        for (key, figures) in newer.figures { lost += self.add(key, figures, most: most) }
        for play in newer.plays { lost += self.add(play, most: most) }
        for push in newer.pushes { lost += self.add(push, most: most) }
        return lost
    }
}
