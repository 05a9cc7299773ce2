import LibC

/// Lets a busy loop look at its sockets less often, so that it finds several ready at a time.
///
/// With hundreds of small rooms each message wakes the loop for one socket, and the waking costs as much as the message. A loop that has taken more than
/// 2,000 turns a second, with fewer than two messages each, sleeps at the end of a turn until ``pauseNs`` after it woke last. An idle loop wakes at once. A
/// value; nanoseconds of the steady clock.
struct Gathering {
    /// Time between two looks at the sockets, at least.
    let pauseNs: UInt64
    private var windowNs: UInt64 = 0
    private var turns = 0
    private var messages = 0
    private(set) var isOn = false
    private var wokeNs: UInt64 = 0

    /// Length of a window for which the turns are counted.
    private static let windowLength: UInt64 = 100_000_000
    /// Turns in a window from which it pays.
    private static let busyTurns = 200

    init(pauseNs: UInt64) { self.pauseNs = pauseNs }

    /// Counts a turn that ends now. Returns how long to sleep before the next, in nanoseconds.
    mutating func turnEnded(messages: Int, nowNs: UInt64) -> UInt64 {
        guard self.pauseNs > 0 else { return 0 }
        self.turns += 1
        self.messages += messages
        if nowNs &- self.windowNs >= Self.windowLength {
            // While it sleeps it takes fewer turns, of more messages: then their number decides.
            let isBusy = self.isOn ? self.messages >= Self.busyTurns : self.turns >= Self.busyTurns && self.messages < 2 * self.turns
            self.isOn = isBusy && nowNs &- self.windowNs < 2 * Self.windowLength
            (self.windowNs, self.turns, self.messages) = (nowNs, 0, 0)
        }
        guard self.isOn else { return 0 }
        let since = nowNs &- self.wokeNs
        return since < self.pauseNs ? self.pauseNs - since : 0
    }

    mutating func woke(nowNs: UInt64) { self.wokeNs = nowNs }

    /// The kernel's slack of 50 µs would be a tenth of the pause; a sleep by itself keeps no lock and wakes nobody.
    static func sleep(_ ns: UInt64) {
        var time = timespec(tv_sec: 0, tv_nsec: Int(ns))
        nanosleep(&time, nil)
    }
}
