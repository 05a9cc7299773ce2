import LibC

/// Lets a busy loop look at its sockets less often, so that it finds several ready at a time.
///
/// With hundreds of small rooms each message wakes the loop for one socket, and the waking costs as much as the message. A loop that has taken more than
/// 2,000 turns a second, with fewer than two messages each, sleeps at the end of a turn until ``pauseNs`` after it woke last. An idle loop wakes at once. A
/// value; nanoseconds of the steady clock.
struct Gathering {
    /// Time between two looks at the sockets, at least; 0: the loop never sleeps.
    let pauseNs: UInt64
    private var turns = 0
    private var messages = 0
    private(set) var isOn = false
    private var wokeNs: UInt64 = 0

    /// Turns a second from which it pays.
    private static let busyTurns = 2_000

    init(pauseNs: UInt64) { self.pauseNs = pauseNs }

    /// Counts a turn and its messages.
    mutating func count(messages: Int) {
        self.turns &+= 1
        self.messages &+= messages
    }

    /// Judges the time since it was last called.
    mutating func judge(overMs: Int64) {
        let busy = Self.busyTurns * Int(overMs) / 1_000
        // While the loop sleeps it takes fewer turns, of more messages: then their number decides.
        self.isOn = self.pauseNs > 0 && (self.isOn ? self.messages >= busy : self.turns >= busy && self.messages < 2 * self.turns)
        (self.turns, self.messages) = (0, 0)
    }

    /// How long to sleep at the end of a turn, in nanoseconds.
    func rest(nowNs: UInt64) -> UInt64 {
        let since = nowNs &- self.wokeNs
        return since < self.pauseNs ? self.pauseNs - since : 0
    }

    mutating func woke(nowNs: UInt64) { self.wokeNs = nowNs }

    /// Sleeps without a lock, and without the event loop's own way of waiting, which any socket would end.
    static func sleep(_ ns: UInt64) {
        var time = timespec(tv_sec: 0, tv_nsec: Int(ns))
        nanosleep(&time, nil)
    }
}
